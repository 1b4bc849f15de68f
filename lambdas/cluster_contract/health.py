"""What a node reports of its health, as one EventBridge event: nodes write it, the health function reads it.

Nodes run this module with Python 3.9 and its standard library. The function's settings are in `health_settings`.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.texts import printable
from cluster_contract.times import parse_time, time_text

_SOURCE = "cdk-training-cluster"

# What is kept of a report: a node writes less, and whoever holds its credentials may write 256 KB.
_MAX_FAULTS, _MAX_SERIALS, _MAX_CHECKS = 20, 32, 40
_MAX_NAME, _MAX_SENTENCE = 100, 300
_SERIAL = re.compile(r"[\w.:-]{1,64}", re.ASCII)

REPORT_DETAIL_TYPE = "Node report"
"""The `detail-type` of a node's events."""

INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}")
"""What the session of a role is called whose credentials EC2 gives to an instance: the instance's id."""


def report_source(cluster: str, user_id: str) -> str:
    """Return the `source` of a node's events, which names their sender: a node's role may put no other.

    Args:
        cluster: The cluster's name.
        user_id: What IAM knows as `aws:userid`: the id of the role, a colon, and the name of its session.

    Sources: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html and
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    return f"{_SOURCE}/{cluster}/{user_id}"


def read_source(source: object) -> tuple[str, str]:
    """Return the cluster and the session that a `source` names.

    Args:
        source: The source of an event.

    Raises:
        ValueError: It is not the source of a node's events.
    """
    found = re.fullmatch(rf"{_SOURCE}/([^/]+)/[^/:]+:([^/:]+)", str(source))
    if found is None:
        raise ValueError(f"the source of a node's report must name its sender, got {printable(str(source))}")
    return found[1], found[2]


DRAIN_HOOK = "drain"
"""The lifecycle hook that keeps a node from its termination until its job has saved; the node completes it."""

NODE_FAULT = "NodeFault"
"""The metric of nodes that is 1 when a node reports a fault that a reboot or another node ends; no data otherwise."""

VERIFICATION_FAILED = "VerificationFailed"
"""The metric of nodes that is 1 when a node failed its verification and 0 when it passed."""


class ReportKind(str, Enum):
    """What a node reports."""

    FAULT = "fault"
    """It has found faults."""

    NOTICE = "notice"
    """EC2 or Auto Scaling takes it away, or may do so: Spot, rebalance, maintenance, a termination, a block's end."""

    DRAINED = "drained"
    """It takes no job, and no process uses an accelerator."""

    VERIFIED = "verified"
    """It was verified: its checks say whether it passed."""

    RECOVERED = "recovered"
    """What it reported before is over, without a repair."""


@dataclass(frozen=True)
class ReportedFault:
    """One fault that a node has found.

    Attributes:
        code: Its code in the fault table, such as `79`.
        kind: How the node found it.
        action: What ends it, as the node has read in the fault table and in the fault's own text.
        device: The device that has it, such as the PCI address of a GPU. Empty: the whole node.
        count: How often the node has seen it since its last boot.
        sentence: What it is, for operators.
        serial: The serial of the device, where that is an accelerator. Empty: unknown.
    """

    code: str
    kind: FaultKind
    action: FaultAction
    device: str
    count: int
    sentence: str
    serial: str = ""


@dataclass(frozen=True)
class ReportedCheck:
    """One check of a verification.

    Attributes:
        name: Its name.
        passed: Whether the node passed it.
        found: What was found, for operators.
        floor: What must be found, for operators. Empty: there is no floor.
    """

    name: str
    passed: bool
    found: str
    floor: str = ""


@dataclass(frozen=True)
class NodeReport:
    """What a node reports.

    Attributes:
        cluster: The cluster's name.
        node_group: The node group's name.
        instance_id: The node's instance.
        boot_id: `/proc/sys/kernel/random/boot_id`: another one after each boot.
        kind: What it reports.
        at: When it found that; reports may arrive twice, and in another order.
        faults: The faults that it has now; of a notice, those that name it.
        serials: The serials of its accelerators, as far as they can be read.
        checks: The checks of a verification.
        deadline: When the node goes, where that is known.
        provisional: Whether the only checks that failed are those whose floors have not been measured yet.
        sentence: What a notice says, for operators.
    """

    cluster: str
    node_group: str
    instance_id: str
    boot_id: str
    kind: ReportKind
    at: datetime
    faults: tuple[ReportedFault, ...] = ()
    serials: tuple[str, ...] = ()
    checks: tuple[ReportedCheck, ...] = ()
    deadline: datetime | None = None
    provisional: bool = False
    sentence: str = ""

    def to_json(self) -> str:
        """Return the event's `Detail`."""
        return json.dumps(asdict(self), default=time_text, separators=(",", ":"))

    @classmethod
    def from_json(cls, detail: str | dict[str, Any]) -> NodeReport:
        """Read an event's detail; names that a newer node writes are left out, and texts are cut and made printable.

        Args:
            detail: The detail, as text or as EventBridge gives it to a function.

        Raises:
            ValueError: It is no report of a node.
        """
        raw = json.loads(detail) if isinstance(detail, str) else detail
        if not isinstance(raw, dict):
            raise ValueError(f"a node's report must be an object, got {printable(repr(raw))}")  # noqa: TRY004 (it is data)
        try:
            return cls(
                **{name: _text(raw, name) for name in ("cluster", "node_group", "instance_id", "boot_id")},
                kind=ReportKind(raw["kind"]),
                at=parse_time(raw["at"]),
                faults=tuple(_fault(one) for one in raw.get("faults", ())[:_MAX_FAULTS]),
                serials=tuple(filter(None, map(_serial, raw.get("serials", ())[:_MAX_SERIALS]))),
                checks=tuple(_check(one) for one in raw.get("checks", ())[:_MAX_CHECKS]),
                deadline=parse_time(raw["deadline"]) if raw.get("deadline") else None,
                provisional=raw.get("provisional", False) is True,
                sentence=_sentence(raw, "sentence"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            what = printable(repr(error))
            raise ValueError(f"a node's report lacks something or has it in another form: {what}") from None


def _fault(raw: dict[str, Any]) -> ReportedFault:
    return ReportedFault(
        code=_text(raw, "code"),
        kind=FaultKind(raw["kind"]),
        action=FaultAction(raw["action"]),
        device=printable(str(raw.get("device", "")), _MAX_NAME),
        count=int(raw.get("count", 1)),
        sentence=_sentence(raw, "sentence"),
        serial=_serial(raw.get("serial", "")),
    )


def _check(raw: dict[str, Any]) -> ReportedCheck:
    return ReportedCheck(
        name=_text(raw, "name"),
        passed=raw["passed"] is True,
        found=_sentence(raw, "found"),
        floor=_sentence(raw, "floor"),
    )


def _serial(raw: object) -> str:
    """Return a serial; what cannot be one is unknown."""
    return str(raw) if _SERIAL.fullmatch(str(raw)) else ""


def _sentence(raw: dict[str, Any], name: str) -> str:
    return printable(str(raw.get(name, "")), _MAX_SENTENCE)


def _text(raw: dict[str, Any], name: str) -> str:
    if not isinstance(raw[name], str) or not raw[name]:
        raise ValueError(f"{name} of a node's report must be text, got {printable(repr(raw[name]))}")
    return printable(raw[name], _MAX_NAME)
