"""`cluster-node verify`: check whether this node is fit to train, and judge the output of nccl-tests."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cluster_contract import node_files

from . import accelerators, machine, progress, reports, telling
from .affinity import check_affinity, read_affinity
from .all_reduce import check_all_reduce, judge
from .checking import Check
from .gpus import Reading, read_gpus
from .metadata import Metadata
from .node_facts import Facts, expected_facts, instance_id, instance_type
from .programs import ROOT
from .versions import check_versions, versions

PASSED, FAILED, WRONG_CALL, OTHER_HOST = 0, 1, 2, 3

_MOMENTS = {
    "boot": "every check, the tests of speed too, and the result is recorded and reported",
    "job-start": "what a job needs, without tests of speed",
    "job-end": "the devices",
    "job": "the devices, without asking a GPU, and a file system that was late before a job: under a job",
}
# A node that has just booted asks its time server first, and starts its services.
_BOOT_SECONDS = 60
# In its maintenance a file system is away for minutes.
_FILE_SYSTEM_SECONDS = 300


def main(arguments: list[str]) -> int:
    """Check what the arguments ask for; a sentence for each check that fails goes to standard output."""
    parser = argparse.ArgumentParser(
        prog="cluster-node verify",
        description="Check whether this node is fit to train: accelerators, network, limits, file system, clock, "
        "disks, versions and speed. A floor that was not measured on such nodes is called provisional and fails "
        "no node.",
        epilog="Exit status: 0 when all checks pass, 1 when one fails, 2 for a wrong call, 3 when one fails for "
        "which the fault table asks for a reboot or another instance.",
    )
    parser.add_argument(
        "--at", choices=_MOMENTS, default="boot", help="; ".join(f"{k}: {v}" for k, v in _MOMENTS.items())
    )
    parser.add_argument("--json", action="store_true", help="print every check as JSON")
    parser.add_argument("--dry-run", action="store_true", help="record and report nothing")
    parser.add_argument(
        "--nccl-output", type=Path, metavar="FILE", help="judge what all_reduce_perf printed into a file"
    )
    parser.add_argument("--nodes", type=int, default=1, help="over how many nodes it ran")
    parser.add_argument("--instance-type", default=instance_type(), help="their type; this node's if left out")
    given = parser.parse_args(arguments)
    if given.nccl_output:
        try:
            text = given.nccl_output.read_text(errors="replace")
        except OSError as error:
            sys.stderr.write(f"cluster-node verify: {given.nccl_output} cannot be read: {error.strerror}\n")
            return WRONG_CALL
        if not given.instance_type or given.nodes < 1:
            sys.stderr.write("cluster-node verify: give --instance-type, and --nodes of at least 1\n")
            return WRONG_CALL
        checks = list(judge(text, given.instance_type, given.nodes))
        # Which of the nodes is slow, such a run does not say.
        return min(_answer(checks, as_json=given.json, all_of_them=True), FAILED)
    facts = expected_facts(given.instance_type)
    if given.at != "boot":
        return _answer(_quick_checks(facts, given.at), as_json=given.json, all_of_them=False)
    checks = _verify(facts, record=not given.dry_run)
    return _answer(checks, as_json=given.json, all_of_them=True)


def _quick_checks(facts: Facts, moment: str) -> Iterator[Check]:
    yield from machine.check_drain_files()
    if moment == "job-start":
        yield from machine.check_set_up()
    if moment != "job" and facts.gpus:
        yield from accelerators.check_gpus(facts, read_gpus())
    yield from accelerators.check_neuron_devices(facts)
    yield from machine.check_efa_devices(facts)
    if moment != "job-end":
        yield from machine.check_file_system_of_job(facts, starts=moment == "job-start")


def _verify(facts: Facts, *, record: bool) -> list[Check]:
    start, instance = time.monotonic(), instance_id() or _metadata("instance-id")
    reading = accelerators.read_gpus_when_ready(facts, _BOOT_SECONDS)
    own = versions(reading.driver)
    affinity = read_affinity(reading.gpus)
    checks = list(_all_checks(facts, reading, own, instance))
    checks += check_affinity(affinity)
    if not record:
        return checks
    serials = {gpu.pci: gpu.serial for gpu in reading.gpus if gpu.serial}
    more = {"seconds": round(time.monotonic() - start, 1), "versions": own, "serials": list(serials.values())}
    steps: tuple[Callable[[], object], ...] = (
        # First what keeps jobs away, which needs no room on a disk.
        lambda: telling.drain(checks),
        lambda: progress.write(Path(ROOT + node_files.AFFINITY), affinity),
        lambda: telling.record(facts, checks, instance, more),
        lambda: reports.spool(telling.node_report(facts, checks, instance, serials)) if instance else None,
        lambda: _say(telling.tell(facts, checks, instance)),
        # A node that is replaced has no later. What cannot be sent now, the watchdog sends then.
        lambda: reports.send(facts.region),
    )
    for step in steps:
        try:
            step()
        except (OSError, ValueError, KeyError) as error:
            _say([f"a part of the result is not written down or sent: {type(error).__name__}: {error}"])
    return checks


def _say(troubles: Iterable[str]) -> None:
    sys.stderr.writelines(f"cluster-node verify: {trouble}\n" for trouble in troubles)


def _all_checks(facts: Facts, reading: Reading, own: dict[str, str], instance: str) -> Iterator[Check]:
    yield from machine.check_set_up()
    yield from accelerators.check_gpus(facts, reading)
    yield from accelerators.check_partitions(facts)
    yield from accelerators.check_neuron_devices(facts)
    yield from machine.check_efa_devices(facts)
    yield from machine.check_efa_provider(facts)
    yield from machine.check_limits()
    file_system = list(machine.check_file_system(facts, _FILE_SYSTEM_SECONDS))
    yield from file_system
    # Where it is not mounted, these would write to the root volume.
    if all(check.passed for check in file_system):
        yield from machine.check_throughput(facts)
        yield from check_versions(facts, own, instance, _metadata("ami-id"))
    yield from machine.check_clock(_BOOT_SECONDS)
    yield from machine.check_disks(facts)
    yield from check_all_reduce(facts, reading)


def _metadata(path: str) -> str:
    try:
        return Metadata().get(path) or ""
    except OSError:
        return ""


def _answer(checks: Iterable[Check], *, as_json: bool, all_of_them: bool) -> int:
    """Print the checks, those that fail last, and return the exit status."""
    done, failed = [], []
    for check in checks:
        done.append(check)
        if check.fails:
            failed.append(check)
            # Schedulers show the sentence alone, and may end this program before the last check.
            if not as_json and not all_of_them:
                sys.stdout.write(f"{check.found}\n")
                sys.stdout.flush()
    if as_json:
        sys.stdout.write(json.dumps([check._asdict() for check in done], indent=2) + "\n")
    elif all_of_them:
        sys.stdout.writelines(f"ok {check.name}: {check.found}\n" for check in done if check.passed)
        sys.stdout.writelines(f"-- {check.sentence}\n" for check in done if not check.passed and not check.fails)
        sys.stdout.writelines(f"{check.sentence}\n" for check in failed)
    if not failed:
        return PASSED
    return OTHER_HOST if telling.action_of(failed) else FAILED
