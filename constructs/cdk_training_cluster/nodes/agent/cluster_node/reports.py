"""The node's reports: written down first, so that one that cannot be sent now is sent later."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cluster_contract.health import NODE_FAULT, REPORT_DETAIL_TYPE, NodeReport, ReportKind, report_source
from cluster_contract.node_files import SPOOL, SPOOL_IN_MEMORY

from .node_facts import settings
from .programs import ROOT, ask

# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
_MAX_ENTRIES = 10
_SECONDS = 60
# A node that has had no network for long keeps the newest.
_MAX_WAITING = 200


def spool(report: NodeReport) -> None:
    """Write a report where the watchdog sends it from.

    Args:
        report: The report.
    """
    name = f"{time.time_ns():020d}-{report.kind.value}.json"
    try:
        _write(_folders()[0] / name, report.to_json())
    except OSError:
        _write(_folders()[1] / name, report.to_json())
    for path in waiting()[:-_MAX_WAITING]:
        _forget(path)


def waiting() -> list[Path]:
    """Return the reports that have not been sent, oldest first."""
    return sorted((path for folder in _folders() for path in folder.glob("[0-9]*.json")), key=lambda path: path.name)


def send(region: str) -> bool:
    """Send what waits, and say whether nothing waits any more.

    Args:
        region: The node's region.

    Source: https://docs.aws.amazon.com/cli/latest/reference/events/put-events.html
    """
    found = [(path, text) for path in waiting()[:_MAX_ENTRIES] for text in _read(path)]
    if not found:
        return not waiting()
    try:
        source = report_source(settings().get("CLUSTER", ""), _user_id(region))
    except OSError as error:
        _say(f"{len(found)} reports could not be sent and are kept: {error}")
        return False
    entries = [{"Source": source, "DetailType": REPORT_DETAIL_TYPE, "Detail": text} for _, text in found]
    batch = _folders()[1] / f".entries-{os.getpid()}"
    _write(batch, json.dumps(entries))
    command = ("aws", "--region", region, "events", "put-events", "--output", "json", "--entries", f"file://{batch}")
    answer = ask(command, _SECONDS)
    _forget(batch)
    if not answer.succeeded:
        _say(f"{len(found)} reports could not be sent and are kept: {answer.trouble}")
        return False
    # EventBridge may take some of them only.
    taken = [("EventId" in entry, entry) for entry in json.loads(answer.text)["Entries"]]
    for (path, text), (is_taken, entry) in zip(found, taken):
        if is_taken:
            _count(text, region)
            _forget(path)
        else:
            _say(f"EventBridge did not take {path.name}, which is kept: {entry.get('ErrorMessage', entry)}")
    return all(is_taken for is_taken, _ in taken) and send(region)


def tag(region: str, instance_id: str, key: str, value: str) -> bool:
    """Write a tag on the node's own instance, and say whether it is written.

    Args:
        region: The node's region.
        instance_id: The node's instance.
        key: The tag's key.
        value: Its value.

    Source: https://docs.aws.amazon.com/cli/latest/reference/ec2/create-tags.html
    """
    command = ("ec2", "create-tags", "--resources", instance_id, "--tags", json.dumps([{"Key": key, "Value": value}]))
    answer = ask(("aws", "--region", region, *command), _SECONDS)
    if not answer.succeeded:
        _say(f"the tag {key} could not be written, without which no function repairs the node: {answer.trouble}")
    return answer.succeeded


@lru_cache(maxsize=1)
def _user_id(region: str) -> str:
    """Return what IAM calls this node, which the node's role lets it put into the source of its events alone.

    No permission is needed to ask: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html

    Raises:
        OSError: AWS does not say it.
    """
    command = ("sts", "get-caller-identity", "--query", "UserId", "--output", "text")
    answer = ask(("aws", "--region", region, *command), _SECONDS)
    user_id = answer.text.strip()
    if not answer.succeeded or not user_id:
        raise OSError(f"AWS does not say who this node is: {answer.trouble}")
    return user_id


def _read(path: Path) -> Iterator[str]:
    """Yield what a file says, unless it is gone: the watchdog and `cluster-node verify` may send at the same time."""
    with contextlib.suppress(FileNotFoundError):
        yield path.read_text(encoding="utf-8")


def _count(text: str, region: str) -> None:
    """Count a report of a fault that drains, in CloudWatch, where it does not matter if the point is lost."""
    try:
        report = NodeReport.from_json(text)
    except ValueError:
        return
    if report.kind is not ReportKind.FAULT or not any(fault.action.drains for fault in report.faults):
        return
    known = settings()
    data = [{**series, "MetricName": NODE_FAULT} for series in json.loads(known.get("FAILURE_METRIC") or "[]")]
    namespace = known.get("METRIC_NAMESPACE", "")
    command = ("cloudwatch", "put-metric-data", "--namespace", namespace, "--metric-data", json.dumps(data))
    answer = ask(("aws", "--region", region, *command), _SECONDS)
    if not answer.succeeded:
        _say(f"a fault could not be counted: {answer.trouble}")


def _folders() -> tuple[Path, Path]:
    """Return where reports are kept, and where those are that the disk has no room for, until the next boot."""
    return Path(ROOT + SPOOL), Path(ROOT + SPOOL_IN_MEMORY)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # What a GPU does next may end the node.
        os.fsync(file.fileno())
    new.replace(path)


def _forget(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _say(sentence: str) -> None:
    sys.stderr.write(f"cluster-node watch: {sentence}\n")
