"""The checks of accelerators: number and model, memory, links between GPUs, and NVIDIA's fabric manager."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from .checking import FLOORS, Check, not_checked, verdict
from .gpus import Gpu, Reading
from .node_facts import Facts, partitions, paths, read_text
from .programs import ask

_SECONDS = 30


def check_gpus(facts: Facts, reading: Reading, wait_seconds: float = 0) -> Iterator[Check]:
    """Yield what the driver says of the GPUs; nothing for a type without any.

    Args:
        facts: What the node has when all is well.
        reading: What the driver said.
        wait_seconds: How long a service that starts may take. Default: - no time.
    """
    if not facts.gpus:
        return
    gpus = reading.gpus
    if not gpus and reading.troubles and not reading.driver:
        # The image may have no driver: another instance would not help.
        yield verdict("gpu_driver", reading.troubles, "")
        return
    lost = "; ".join(reading.troubles)
    counted = f"the driver lists {len(gpus)} GPUs, and {facts.instance_type} has {facts.gpus}"
    few = len(gpus) < facts.gpus
    yield Check(
        "gpu_lost" if reading.troubles else "gpu_count",
        passed=not few,
        found=f"{counted}: {lost}" if few and lost else counted,
        floor=str(facts.gpus),
    )
    if not gpus:
        return
    yield _model(facts, gpus)
    yield _of_each("remap_failed", gpus, lambda gpu: gpu.remap_failed, "could not remap a row of its memory")
    yield _of_each(
        "remap_pending", gpus, lambda gpu: gpu.remap_pending, "has rows of memory to remap at its next reset"
    )
    yield _of_each(
        "ecc_uncorrectable",
        gpus,
        lambda gpu: gpu.uncorrected,
        "has {} uncorrected ECC errors since its driver was loaded",
    )
    machine: dict[str, Any] = FLOORS["machines"].get(facts.instance_type, {})
    if machine.get("nvlinks"):
        yield _links(gpus, machine["nvlinks"])
    if machine.get("fabric_manager"):
        yield _fabric_manager(wait_seconds)


def _model(facts: Facts, gpus: list[Gpu]) -> Check:
    wanted = {word.casefold() for word in facts.gpu.split()}
    others = [gpu for gpu in gpus if not wanted <= {word.casefold() for word in re.split(r"[\s-]+", gpu.name)}]
    troubles = [f"GPU {gpu.number} is {gpu.name!r}, and {facts.instance_type} has {facts.gpu}" for gpu in others]
    check = verdict("gpu_model", troubles, gpus[0].name, device=others[0].pci if others else "")
    # How the driver spells the models of other types is not known.
    return check._replace(provisional=facts.gpu not in FLOORS["gpu_models"])


def _of_each(name: str, gpus: list[Gpu], value: Callable[[Gpu], int | bool | None], trouble: str) -> Check:
    known = [(gpu, value(gpu)) for gpu in gpus]
    bad = [(gpu, found) for gpu, found in known if found]
    troubles = [f"GPU {gpu.number} {trouble.format(found)}" for gpu, found in bad]
    if not troubles and not any(found is not None for _, found in known):
        return not_checked(name, "the driver does not say")
    return verdict(name, troubles, f"none on {len(gpus)} GPUs", device=bad[0][0].pci if bad else "")


def _links(gpus: list[Gpu], expected: int) -> Check:
    # MIG mode turns the NVLinks of a GPU off: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    whole = [gpu for gpu in gpus if not gpu.divided]
    if not whole:
        return not_checked("nvlink_down", "the GPUs are in MIG mode")
    known = [gpu for gpu in whole if gpu.links is not None]
    if not known:
        return not_checked("nvlink_down", "the driver does not say")
    bad = [gpu for gpu in known if (gpu.links or 0) < expected]
    troubles = [f"GPU {gpu.number} has {gpu.links} active NVLinks of {expected}" for gpu in bad]
    return verdict(
        "nvlink_down", troubles, f"{expected} on each GPU", floor=str(expected), device=bad[0].pci if bad else ""
    )


def _fabric_manager(wait_seconds: float) -> Check:
    end = time.monotonic() + wait_seconds
    while True:
        state = ask(["systemctl", "is-active", "nvidia-fabricmanager.service"], _SECONDS)
        said = state.text.strip()
        if said != "activating" or time.monotonic() >= end:
            break
        time.sleep(1)
    if not said:
        return not_checked("fabric_manager", state.trouble or "systemd does not say")
    troubles = [] if said == "active" else [f"nvidia-fabricmanager.service is {said}"]
    return verdict("fabric_manager", troubles, "active")


def check_partitions(facts: Facts) -> Iterator[Check]:
    """Yield whether the GPUs are divided as the node group's settings ask; nothing where they ask for no partitions.

    Args:
        facts: What the node has when all is well.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
    """
    wanted = partitions()
    if not wanted:
        return
    answer = ask(["nvidia-smi", "--list-gpus"], _SECONDS)
    found = Counter(re.findall(r"^\s+MIG (\S+)\s+Device", answer.text, re.MULTILINE))
    troubles = [
        f"the GPUs have {found[name]} partitions {name}, and the node group asks for {count * facts.gpus}"
        for name, count in wanted.items()
        if found[name] != count * facts.gpus
    ]
    troubles = troubles if answer.succeeded else [answer.trouble]
    yield verdict("gpu_partitions", troubles, ", ".join(f"{found[name]} of {name}" for name in wanted))


def check_neuron_devices(facts: Facts) -> Iterator[Check]:
    """Yield what the Neuron driver says of its devices; nothing for a type without any.

    Args:
        facts: What the node has when all is well.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-sysfs-user-guide.html
    """
    if not facts.neuron_devices:
        return
    found = len(paths("/dev/neuron[0-9]*"))
    said = f"the node has {found} Neuron devices, and {facts.instance_type} has {facts.neuron_devices}"
    yield Check("neuron_count", found >= facts.neuron_devices, said, str(facts.neuron_devices))
    troubles = []
    for path in map(PurePath, paths("/sys/devices/virtual/neuron_device/neuron*/stats/hardware/*_ecc_uncorrected")):
        text = (read_text(str(path)) or "").strip()
        if text.isdigit() and int(text):
            troubles.append(f"{path.parts[-4]} has {text} errors in {path.name}")
    yield verdict("neuron_hardware", troubles, "no uncorrected errors of memory")
