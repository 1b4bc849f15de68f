"""Which instance types report what their accelerators do, and how; a test holds it to the catalog."""

import re

# NVIDIA GPUs and Neuron devices; AMD's GPUs (g4ad) and others report nothing here.
_MEASURED = re.compile(r"(?!g4ad\b)(?:p|g|gr|trn|inf)\d")
_NEURON = ("trn", "inf")


def is_measured(instance_type: str) -> bool:
    """Say whether an instance has NVIDIA GPUs or Neuron devices, whose use can be read."""
    return _MEASURED.match(instance_type) is not None


def has_neuron_cores(instance_type: str) -> bool:
    """Say whether an instance reports the use of NeuronCores, and not of GPUs."""
    return instance_type.startswith(_NEURON)
