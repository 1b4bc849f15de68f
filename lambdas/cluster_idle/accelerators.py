"""Which instance types report what their accelerators do, and how; a test holds it to the catalog."""

import re
from collections.abc import Mapping

# NVIDIA GPUs and Neuron devices; AMD's GPUs (g4ad) and others report nothing here.
_MEASURED = re.compile(r"(?!g4ad\b)(?:p|g|gr|trn|inf)\d")
_NEURON = ("trn", "inf")

# How many NVIDIA GPUs a type has, by family and size.
_MANY = {"48xlarge": 8, "24xlarge": 4, "12xlarge": 4}
_ONE = dict.fromkeys(("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1)
_GPUS: Mapping[str, Mapping[str, int]] = {
    "g4dn": {**_ONE, "12xlarge": 4, "metal": 8},
    "g5": {**_ONE, **_MANY},
    "g5g": {**_ONE, "16xlarge": 2, "metal": 2},
    "g6": {**_ONE, **_MANY},
    "g6e": {**_ONE, **_MANY},
    "g6f": _ONE,
    "g7": {**_ONE, **_MANY, "12xlarge": 2},
    "g7e": {**_ONE, **_MANY, "12xlarge": 2},
    "gr6": _ONE,
    "gr6f": _ONE,
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "p6-b200": {"48xlarge": 8},
    "p6-b300": {"48xlarge": 8},
    "p6e-gb200": {"36xlarge": 4},
}


def is_measured(instance_type: str) -> bool:
    """Say whether an instance has NVIDIA GPUs or Neuron devices, whose use can be read."""
    return _MEASURED.match(_on_ec2(instance_type)) is not None


def has_neuron_cores(instance_type: str) -> bool:
    """Say whether an instance reports the use of NeuronCores, and not of GPUs."""
    return _on_ec2(instance_type).startswith(_NEURON)


def gpu_count(instance_type: str, more: Mapping[str, int]) -> int | None:
    """Return how many NVIDIA GPUs an instance has; None: that is not known.

    Args:
        instance_type: Its type.
        more: What is known besides, by type; it goes first.
    """
    family, _, size = _on_ec2(instance_type).partition(".")
    return more.get(instance_type) or _GPUS.get(family, {}).get(size)


def _on_ec2(instance_type: str) -> str:
    """Return what EC2 calls a type, whose name SageMaker begins with `ml.`."""
    return instance_type.removeprefix("ml.")
