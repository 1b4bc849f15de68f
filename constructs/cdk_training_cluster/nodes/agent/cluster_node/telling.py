"""Where the result of a verification is seen: on the node, on its console, in CloudWatch, and in its tags."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from cluster_contract import node_files
from cluster_contract.claims import verified_value
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import VERIFICATION_FAILED, NodeReport, ReportedCheck, ReportedFault, ReportKind
from cluster_contract.tags import VERIFIED_TAG
from cluster_contract.times import time_text

from . import drain_files, progress
from .checking import Check
from .node_facts import Facts, boot_id, settings
from .programs import ROOT, ask

_SECONDS = 60


def action_of(checks: Sequence[Check]) -> FaultAction | None:
    """Return what ends the faults of failed checks. None: no other host would help, so an operator has to.

    Args:
        checks: What was checked.
    """
    actions = [check.action for check in checks if check.fails and check.action]
    return max(actions, key=lambda action: action is FaultAction.REPLACE, default=None)


def summary(checks: Sequence[Check]) -> str:
    """Return the result in a line.

    Args:
        checks: What was checked.
    """
    failed = [check.sentence for check in checks if check.fails]
    missed = [check.sentence for check in checks if not check.passed and not check.fails]
    said = f"verification failed: {'. '.join(failed)}" if failed else f"verified, {len(checks)} checks passed"
    return ". ".join([said, *missed])


def drain(checks: Sequence[Check]) -> None:
    """Ask that the node takes no job where its verification failed, and no longer where it passed.

    Args:
        checks: What was checked.
    """
    if any(check.fails for check in checks):
        action = action_of(checks) or FaultAction.OBSERVE
        drain_files.add(drain_files.VERIFICATION, summary(checks), code="verify", action=action.value)
    else:
        drain_files.remove(drain_files.VERIFICATION)
        # After a reboot Kubernetes keeps the taint of a drained node until there is a folder, and nothing in it.
        drain_files.make_folder()


def record(facts: Facts, checks: Sequence[Check], instance_id: str, more: dict[str, object]) -> None:
    """Write the result down.

    Args:
        facts: What the node is.
        checks: What was checked.
        instance_id: The node's instance.
        more: What else to write down.
    """
    known = {"instance_id": instance_id, "instance_type": facts.instance_type, "boot_id": boot_id(), **more}
    content = {
        "passed": not any(check.fails for check in checks),
        "at": time_text(datetime.now(timezone.utc)),
        **known,
        "checks": [check._asdict() for check in checks],
    }
    progress.write(Path(ROOT + node_files.VERIFICATION), content)


def tell(facts: Facts, checks: Sequence[Check], instance_id: str) -> Iterator[str]:
    """Tell the result to those who are not on the node; yield a sentence for each way that fails.

    Args:
        facts: What the node is.
        checks: What was checked.
        instance_id: The node's instance.
    """
    failed = [check.name for check in checks if check.fails]
    with contextlib.suppress(OSError), Path(f"{ROOT}/dev/console").open("a", encoding="utf-8") as console:
        console.write(f"cdk-training-cluster: {summary(checks)}\n")
    now = time_text(datetime.now(timezone.utc))
    data = json.loads(settings().get("FAILURE_METRIC") or "[]")
    metric = [{**series, "MetricName": VERIFICATION_FAILED, "Value": int(bool(failed))} for series in data]
    tag = verified_value(boot_id(), failed, now)
    calls = (
        (
            "counted",
            "cloudwatch",
            "put-metric-data",
            "--namespace",
            facts.namespace,
            "--metric-data",
            json.dumps(metric),
        ),
        (
            *("written to the instance's tags", "ec2", "create-tags", "--resources", instance_id, "--tags"),
            json.dumps([{"Key": VERIFIED_TAG, "Value": tag}]),
        ),
    )
    for what, *call in calls if instance_id else calls[:1]:
        answer = ask(["aws", "--region", facts.region, *call], _SECONDS)
        if not answer.succeeded:
            yield f"the result could not be {what}: {answer.trouble}"


def node_report(facts: Facts, checks: Sequence[Check], instance_id: str, serials: Mapping[str, str]) -> NodeReport:
    """Return what the node reports of a verification.

    Args:
        facts: What the node is.
        checks: What was checked.
        instance_id: The node's instance.
        serials: The serials of its GPUs by device.
    """
    return NodeReport(
        cluster=facts.cluster,
        node_group=facts.node_group,
        instance_id=instance_id,
        boot_id=boot_id(),
        kind=ReportKind.VERIFIED,
        at=datetime.now(timezone.utc),
        faults=tuple(
            ReportedFault(
                check.name, FaultKind.CHECK, check.action, check.device, 1, check.found, serials.get(check.device, "")
            )
            for check in checks
            if check.is_fault and check.action
        ),
        serials=tuple(serials.values()),
        checks=tuple(ReportedCheck(check.name, check.passed, check.found, check.floor) for check in checks),
        provisional=not all(check.passed for check in checks) and not any(check.fails for check in checks),
    )
