"""The checks of all that is not an accelerator: network, limits, file system, clock and disks."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path, PurePath

from cluster_contract import node_files

from . import drain_files, progress
from .checking import FLOORS, Check, counted, not_checked, verdict
from .node_facts import Facts, paths, read_text
from .programs import ROOT, Answer, ask, inside
from .walk import WORKING_DIRECTORY

_SECONDS = 30
_PAUSE_SECONDS = 2
# Slurm starts a batch job elsewhere whose nodes do not report it 20 seconds after it got them: a prolog cannot wait.
# https://slurm.schedmd.com/slurm.conf.html#OPT_BatchStartTimeout
_JOB_SECONDS = 5
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/maintenance-windows.html
_MAINTENANCE_MINUTES = 30
_MIB = 2**20
_SAMPLE_MIB = 256
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-store-volumes.html
_LOCAL_DISK = "Amazon EC2 NVMe Instance Storage"


def check_efa_devices(facts: Facts) -> Iterator[Check]:
    """Yield whether the Elastic Fabric Adapters are there and active; nothing for a node without any.

    Args:
        facts: What the node has when all is well.
    """
    if not facts.efa_devices:
        return
    devices = paths("/sys/class/infiniband/*")
    said = f"the node has {counted(len(devices), 'EFA device')}, and its launch template asks for {facts.efa_devices}"
    yield Check("efa_count", len(devices) >= facts.efa_devices, said, str(facts.efa_devices))
    states = {PurePath(device).name: read_text(f"{device}/ports/1/state") for device in devices}
    down = [f"{name} is {state.strip()}" for name, state in states.items() if state and "ACTIVE" not in state]
    yield verdict("efa_state", down, "all are active")


def check_efa_provider(facts: Facts) -> Iterator[Check]:
    """Yield whether libfabric reaches the adapters: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html.

    Args:
        facts: What the node has when all is well.
    """
    if not facts.efa_devices:
        return
    answer = ask(["fi_info", "-p", "efa", "-t", "FI_EP_RDM"], _SECONDS)
    if answer.status is None and "cannot be run" in answer.trouble:
        yield not_checked("efa_provider", "the image has no fi_info")
        return
    found = "provider: efa" in answer.text
    yield verdict("efa_provider", [] if found else [answer.trouble or "fi_info lists no provider efa"], "efa")


def check_limits() -> Iterator[Check]:
    """Yield whether services, and so jobs, may pin all memory, as EFA needs.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    """
    said = ask(["systemctl", "show", "--property=DefaultLimitMEMLOCK", "--value"], _SECONDS).text.strip()
    if not said:
        yield not_checked("memlock", "systemd does not say")
        return
    unlimited = said in {"infinity", str(2**64 - 1)}
    yield verdict("memlock", [] if unlimited else [f"services may pin {said} bytes, not all"], "unlimited")


def check_file_system(facts: Facts, wait_seconds: float = 0) -> Iterator[Check]:
    """Yield whether the file system is mounted and answers; nothing for a node without one.

    Args:
        facts: What the node has when all is well.
        wait_seconds: How long to wait for its answer: in its maintenance a file system is away for minutes, and
            operations succeed in the end. Default: - not at all.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/maintenance-windows.html
    """
    if not facts.mount_point:
        return
    end = time.monotonic() + wait_seconds
    while True:
        answer = _ask_file_system(facts, _SECONDS)
        if answer.succeeded or time.monotonic() >= end:
            break
        time.sleep(_PAUSE_SECONDS)
    yield _judge_file_system(facts, answer)


def check_file_system_of_job(facts: Facts, *, starts: bool) -> Iterator[Check]:
    """Yield whether a job has the file system; nothing for a node without one.

    In its maintenance a file system answers late, to every node: the job starts, and waits in its first operation. A
    node that has no answer for longer than a maintenance fails.

    Args:
        facts: What the node has when all is well.
        starts: Whether the job is about to start. A file system that has always answered is not asked under a job.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/maintenance-windows.html
    """
    late = Path(ROOT + node_files.FILE_SYSTEM_LATE)
    if not facts.mount_point or not (starts or late.exists()):
        return
    answer = _ask_file_system(facts, _JOB_SECONDS)
    if not answer.is_late:
        late.unlink(missing_ok=True)
        yield _judge_file_system(facts, answer)
        return
    if not late.exists():
        late.parent.mkdir(parents=True, exist_ok=True)
        late.touch()
    if time.time() - late.stat().st_mtime > _MAINTENANCE_MINUTES * 60:
        yield _judge_file_system(facts, answer)
    else:
        yield not_checked("file_system", f"{facts.mount_point} does not answer: {answer.trouble}")


def _ask_file_system(facts: Facts, seconds: float) -> Answer:
    return ask(["stat", "--file-system", "--format", "%T", ROOT + facts.mount_point], seconds)


def _judge_file_system(facts: Facts, answer: Answer) -> Check:
    kind = answer.text.strip()
    if not answer.succeeded:
        troubles = [f"{facts.mount_point} does not answer: {answer.trouble}"]
    elif kind != "lustre":
        troubles = [f"{facts.mount_point} is {kind}, not lustre: the file system is not mounted"]
    else:
        troubles = []
    return verdict("file_system", troubles, f"{facts.mount_point} is lustre")


def check_throughput(facts: Facts) -> Iterator[Check]:
    """Yield how quickly the node writes to the file system and reads from it, past its own cache.

    Args:
        facts: What the node has when all is well.
    """
    if not facts.mount_point:
        return
    top, folder = ROOT + facts.mount_point, f"{os.fsdecode(WORKING_DIRECTORY)}/verify"
    sample = f"{socket.gethostname()}.{os.getpid()}"
    blocks = ("bs=16M", f"count={_SAMPLE_MIB // 16}", "status=none")
    commands = (
        ("true",),
        # Pods write here, too: a link of theirs could lead to a disk of the node.
        ("dd", "if=/dev/zero", f"of={sample}", "oflag=direct", "conv=excl", *blocks),
        ("dd", f"if={sample}", "of=/dev/null", "iflag=direct", *blocks),
    )
    rates = []
    # Other programs open the files: one that a hung file system holds can be left.
    try:
        for command in commands:
            start = time.monotonic()
            answer = ask(inside(top, folder, *command), _SECONDS, name="dd")
            rates.append(_SAMPLE_MIB * _MIB / 1e6 / (time.monotonic() - start))
            if not answer.succeeded:
                # A full file system is no fault of the node; with root squash, root may write nowhere.
                yield not_checked("file_system_throughput", answer.trouble)
                return
    finally:
        # With what verifications that were killed have left.
        old = ("find", ".", "-type", "f", "(", "-name", sample, "-o", "-mmin", "+60", ")", "-delete")
        ask(inside(top, folder, *old), _SECONDS)
    del rates[0]
    floor = FLOORS["file_system_mb_per_s"]
    found = f"it writes {rates[0]:.0f} MB/s and reads {rates[1]:.0f} MB/s"
    passed = min(rates) >= floor["floor"]
    yield Check("file_system_throughput", passed, found, f"{floor['floor']} MB/s", provisional=floor["provisional"])


def check_clock(wait_seconds: float) -> Iterator[Check]:
    """Yield whether the clock is synchronized.

    Args:
        wait_seconds: How long a node that has just booted may take.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configure-ec2-ntp.html
    """
    end = time.monotonic() + wait_seconds
    while True:
        said = ask(["timedatectl", "show", "--property=NTPSynchronized", "--value"], _SECONDS).text.strip()
        # Without rtcsync chrony keeps the clock and does not tell the kernel.
        # https://chrony-project.org/doc/4.6/chronyc.html
        if said == "no" and ask(["chronyc", "-c", "tracking"], _SECONDS).text.strip().endswith(",Normal"):
            said = "yes"
        if said != "no" or time.monotonic() >= end:
            break
        time.sleep(min(2.0, wait_seconds))
    if not said:
        yield not_checked("clock", "systemd does not say")
        return
    yield verdict("clock", [] if said == "yes" else ["the clock is not synchronized"], "synchronized")


def check_disks(facts: Facts) -> Iterator[Check]:
    """Yield whether the local disks are there and the root volume has room.

    Args:
        facts: What the node has when all is well.
    """
    if facts.disks:
        models = [(read_text(path) or "").strip() for path in paths("/sys/class/nvme/*/model")]
        found = models.count(_LOCAL_DISK)
        said = f"the node has {counted(found, 'local NVMe disk')}, and {facts.instance_type} has {facts.disks}"
        yield Check("local_disks", found >= facts.disks, said, str(facts.disks))
    room = os.statvfs(ROOT or "/")
    free = room.f_bavail * room.f_frsize / 2**30
    floor = FLOORS["root_free_gib"]["floor"]
    yield Check("root_volume", free >= floor, f"{free:.1f} GiB of the root volume are free", f"{floor} GiB")


def check_set_up() -> Iterator[Check]:
    """Yield whether the node was set up to the end, and its last boot brought what each boot brings."""
    report = progress.read(Path(ROOT + node_files.SET_UP))
    # A verification that failed is no reason to fail the next, nor is an answer that Auto Scaling did not take; the
    # file system, which that step mounts too, has a check of its own.
    verified_or_later = Path(ROOT + node_files.SET_UP_ENDED).exists() and report.get("step") in ("verify", "hook")
    failed = report.get("state") == "failed" and not verified_or_later
    trouble = f"the set-up of the node failed at {report.get('step')}: {report.get('message')}"
    yield verdict("set_up", [trouble] if failed else [], str(report.get("state", "unknown")))


def check_drain_files() -> Iterator[Check]:
    """Yield whether a file asks that the node takes no job."""
    yield verdict("drain", [drain_files.sentence_of(name) for name in drain_files.names()[:1]], "no file asks for it")


def version_of_efa() -> str:
    """Return the version of the EFA installer; empty where it left none."""
    text = read_text("/opt/amazon/efa_installed_packages") or ""
    found = re.search(r"EFA installer version: (\S+)", text)
    return found[1] if found else ""
