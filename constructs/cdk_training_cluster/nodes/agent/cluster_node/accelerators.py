"""The checks of accelerators: number and model, memory, links between GPUs, and NVIDIA's fabric manager."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from cluster_contract import node_files

from .checking import FLOORS, Check, counted, not_checked, verdict
from .gpus import IN_PROGRESS, NOT_STARTED, Gpu, Reading, read_gpus
from .node_facts import Facts, instance_id, partitions, paths, read_text
from .programs import ROOT, ask

_SECONDS = 30
_NEURON_NODES = "/dev/neuron[0-9]*"
_NEURON_DEVICES = "/sys/devices/virtual/neuron_device"
_UNCORRECTED = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")
# The driver shows these while the repair waits for it to be loaded again; of Trainium1 it shows none.
_REPAIRABLE = "mem_ecc_repairable_uncorrected"
# EC2's names of devices, and the driver's: https://github.com/aws-neuron/aws-neuron-driver
_NEURON_MODELS = {"Trainium": "Trainium1", "Trainium2": "Trainium2"}


def read_gpus_when_ready(facts: Facts, seconds: float) -> Reading:
    """Ask the driver for every GPU when NVIDIA's fabric manager has set them up.

    Args:
        facts: What the node has when all is well.
        seconds: How long it may take.
    """
    end = time.monotonic() + seconds
    waits = _machine(facts).get("fabric_manager", False)
    while waits and (state := _manager_state()[0]) != "active":
        if state != "activating" or time.monotonic() >= end:
            waits = False
        else:
            time.sleep(1)
    while True:
        reading = read_gpus() if facts.gpus else Reading("", [], [])
        registers = any(gpu.fabric in (NOT_STARTED, IN_PROGRESS) and not gpu.divided for gpu in reading.gpus)
        if not (waits and registers and time.monotonic() < end):
            return reading
        time.sleep(1)


def check_gpus(facts: Facts, reading: Reading) -> Iterator[Check]:
    """Yield what the driver says of the GPUs; nothing for a type without any.

    Args:
        facts: What the node has when all is well.
        reading: What the driver said.
    """
    if not facts.gpus:
        return
    gpus = reading.gpus
    if not gpus and reading.troubles and not reading.driver:
        # The image may have no driver: another instance would not help.
        yield verdict("gpu_driver", reading.troubles, "")
        return
    said = f"the driver lists {counted(len(gpus), 'GPU')}, and {facts.instance_type} has {facts.gpus}"
    few = len(gpus) < facts.gpus
    lost = reading.troubles if few else []
    yield verdict("gpu_lost", [f"{said}: {'; '.join(lost)}"] if lost else [], "each GPU that is listed answers")
    if lost:
        yield not_checked("gpu_count", "a GPU does not answer")
    else:
        yield Check("gpu_count", not few, said, str(facts.gpus))
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
    over = "has had more uncorrectable errors of its SRAM than NVIDIA's threshold"
    yield _of_each("sram_threshold", gpus, lambda gpu: gpu.sram_over, over)
    yield _of_each("recovery_action", gpus, lambda gpu: gpu.recovery, "asks for {} to recover from a fault")
    yield from _fabric(_machine(facts), gpus)


def _machine(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = FLOORS["machines"].get(facts.instance_type, {})
    return found


def _fabric(machine: dict[str, Any], gpus: list[Gpu]) -> Iterator[Check]:
    manager = _fabric_manager() if machine.get("fabric_manager") else None
    # An image without a fabric manager that fits leaves the links of every instance alone.
    why = manager.found if manager and not manager.passed else ""
    if manager:
        yield manager
    if machine.get("nvlinks"):
        yield not_checked("nvlink_down", why) if why else _links(gpus, machine["nvlinks"])
    if manager:
        yield not_checked("fabric_state", why) if why else _registered(gpus)


def _registered(gpus: list[Gpu]) -> Check:
    whole = [gpu for gpu in gpus if not gpu.divided]
    if not whole:
        return not_checked("fabric_state", "the GPUs are in MIG mode")
    trouble = "is not registered with the fabric of NVSwitch: {}"
    return _of_each("fabric_state", whole, lambda gpu: gpu.fabric, trouble)


def _model(facts: Facts, gpus: list[Gpu]) -> Check:
    wanted = {word.casefold() for word in facts.gpu.split()}
    others = [gpu for gpu in gpus if not wanted <= {word.casefold() for word in re.split(r"[\s-]+", gpu.name)}]
    troubles = [f"GPU {gpu.number} is {gpu.name!r}, and {facts.instance_type} has {facts.gpu}" for gpu in others]
    check = verdict("gpu_model", troubles, gpus[0].name, device=others[0].pci if others else "")
    # How the driver spells the models of other types is not known.
    return check._replace(provisional=facts.gpu not in FLOORS["gpu_models"])


def _of_each(name: str, gpus: list[Gpu], value: Callable[[Gpu], int | str | None], trouble: str) -> Check:
    known = [(gpu, value(gpu)) for gpu in gpus]
    bad = [(gpu, found) for gpu, found in known if found]
    troubles = [f"GPU {gpu.number} {trouble.format(found)}" for gpu, found in bad]
    silent = [str(gpu.number) for gpu, found in known if found is None]
    if silent and not troubles:
        return not_checked(name, f"the driver does not say of GPU {', '.join(silent)}")
    return verdict(name, troubles, f"none on {counted(len(gpus), 'GPU')}", device=bad[0][0].pci if bad else "")


def _links(gpus: list[Gpu], expected: int) -> Check:
    # MIG mode turns the NVLinks of a GPU off: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    whole = [gpu for gpu in gpus if not gpu.divided]
    if not whole:
        return not_checked("nvlink_down", "the GPUs are in MIG mode")
    bad: list[Gpu] = []
    silent = []
    for gpu in whole:
        if gpu.links is None or (gpu.links < expected and gpu.divided is None):
            silent.append(str(gpu.number))
        elif gpu.links < expected:
            bad.append(gpu)
    if silent and not bad:
        return not_checked("nvlink_down", f"the driver does not say of GPU {', '.join(silent)}")
    troubles = [f"GPU {gpu.number} has {gpu.links} active NVLinks of {expected}" for gpu in bad]
    return verdict(
        "nvlink_down", troubles, f"{expected} on each GPU", floor=str(expected), device=bad[0].pci if bad else ""
    )


def _manager_state() -> tuple[str, str]:
    """Return the state of the fabric manager, and why it is not known."""
    answer = ask(["systemctl", "is-active", "nvidia-fabricmanager.service"], _SECONDS)
    return answer.text.strip(), answer.trouble


def _fabric_manager() -> Check:
    said, trouble = _manager_state()
    if not said:
        return not_checked("fabric_manager", trouble or "systemd does not say")
    if said == "active":
        return verdict("fabric_manager", [], said)
    name = "fabric_manager_stopped" if fabric_manager_ran() else "fabric_manager"
    return verdict(name, [f"nvidia-fabricmanager.service is {said}"], "")


def fabric_manager_ran() -> bool:
    """Return whether the last verification of this instance met a fabric manager that runs, or has run before."""
    try:
        last = json.loads(read_text(node_files.VERIFICATION) or "{}")
    except ValueError:
        return False
    if last.get("instance_id") != instance_id():
        return False
    found = {check["name"]: check for check in last["checks"]}
    return "fabric_manager_stopped" in found or found.get("fabric_manager", {}).get("found") == "active"


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
        f"the GPUs have {counted(found[name], 'partition')} {name}, and the node group asks for {count * facts.gpus}"
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
    found = len(paths(_NEURON_NODES))
    said = f"the node has {counted(found, 'Neuron device')}, and {facts.instance_type} has {facts.neuron_devices}"
    yield Check("neuron_count", not lacks_neuron_devices(facts), said, str(facts.neuron_devices))
    devices = _neuron_devices()
    yield _neuron_model(facts, {name: said["device_name"] for name, said in devices.items() if "device_name" in said})
    yield _neuron_counters("neuron_hardware", devices, _UNCORRECTED, "uncorrected errors")
    yield _neuron_counters("neuron_repairable", devices, (_REPAIRABLE,), "repairable errors")


def lacks_neuron_devices(facts: Facts) -> bool:
    """Say whether the node has fewer Neuron devices than its instance type.

    Args:
        facts: What the node has when all is well.
    """
    return len(paths(_NEURON_NODES)) < facts.neuron_devices


def uncorrected_neuron_devices() -> frozenset[str]:
    """Return the Neuron devices whose driver counted uncorrected errors of their memory, such as `neuron0`."""
    return frozenset(
        device for device, said in _neuron_devices().items() if any(int(said.get(name, 0)) for name in _UNCORRECTED)
    )


def _neuron_devices() -> dict[str, dict[str, str]]:
    return {PurePath(path).name: _neuron_files(path) for path in paths(f"{_NEURON_DEVICES}/neuron[0-9]*")}


def _neuron_counters(check: str, devices: dict[str, dict[str, str]], names: tuple[str, ...], what: str) -> Check:
    counters = {(device, name): said[name] for device, said in devices.items() for name in names if name in said}
    if not counters:
        return not_checked(check, f"the driver shows no counters of {what}")
    troubles = [f"{name} of {device} is {value}" for (device, name), value in counters.items() if int(value)]
    return verdict(check, troubles, f"no {what} of memory")


def _neuron_model(facts: Facts, models: dict[str, str]) -> Check:
    wanted = _NEURON_MODELS.get(facts.neuron)
    if not models or wanted is None:
        return not_checked("neuron_model", "the driver does not say" if wanted else "its driver's name is not known")
    troubles = [
        f"{device} is {model}, and {facts.instance_type} has {wanted}"
        for device, model in models.items()
        if model != wanted
    ]
    return verdict("neuron_model", troubles, wanted)


def _neuron_files(device: str) -> dict[str, str]:
    """Return what a device's files say, by their names: version 2.31 of the driver moved them to other folders."""
    found = {}
    for folder, folders, names in os.walk(ROOT + device):
        # Each core has hundreds, and none of these.
        folders[:] = [name for name in folders if not name.startswith("neuron_core")]
        for name in {"device_name", *_UNCORRECTED, _REPAIRABLE}.intersection(names):
            text = (read_text(f"{folder[len(ROOT) :]}/{name}") or "").strip()
            if text.isdigit() or (text and name == "device_name"):
                found[name] = text
    return found
