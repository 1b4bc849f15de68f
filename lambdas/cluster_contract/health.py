"""What a node reports of its health, as one EventBridge event: nodes write it, the health function reads it.

Nodes run this module with Python 3.9 and its standard library. The function's settings are in `health_settings`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.times import parse_time, time_text

REPORT_SOURCE = "cdk-training-cluster"
"""The `source` of a node's events; a node's role may put no other.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
"""

REPORT_DETAIL_TYPE = "Node report"
"""The `detail-type` of a node's events."""

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
        """Read an event's detail; names that a newer node writes are left out.

        Args:
            detail: The detail, as text or as EventBridge gives it to a function.

        Raises:
            ValueError: It is no report of a node.
        """
        raw = json.loads(detail) if isinstance(detail, str) else detail
        if not isinstance(raw, dict):
            raise ValueError(f"a node's report must be an object, got {raw!r}")  # noqa: TRY004 (it is data)
        try:
            return cls(
                **{name: _text(raw, name) for name in ("cluster", "node_group", "instance_id", "boot_id")},
                kind=ReportKind(raw["kind"]),
                at=parse_time(raw["at"]),
                faults=tuple(_fault(one) for one in raw.get("faults", ())),
                serials=tuple(str(one) for one in raw.get("serials", ())),
                checks=tuple(_check(one) for one in raw.get("checks", ())),
                deadline=parse_time(raw["deadline"]) if raw.get("deadline") else None,
                provisional=raw.get("provisional", False) is True,
                sentence=str(raw.get("sentence", "")),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a node's report lacks something or has it in another form: {error!r}") from None


def _fault(raw: dict[str, Any]) -> ReportedFault:
    return ReportedFault(
        code=str(raw["code"]),
        kind=FaultKind(raw["kind"]),
        action=FaultAction(raw["action"]),
        device=str(raw.get("device", "")),
        count=int(raw.get("count", 1)),
        sentence=str(raw.get("sentence", "")),
        serial=str(raw.get("serial", "")),
    )


def _check(raw: dict[str, Any]) -> ReportedCheck:
    return ReportedCheck(
        name=_text(raw, "name"),
        passed=raw["passed"] is True,
        found=str(raw.get("found", "")),
        floor=str(raw.get("floor", "")),
    )


def _text(raw: dict[str, Any], name: str) -> str:
    if not isinstance(raw[name], str) or not raw[name]:
        raise ValueError(f"{name} of a node's report must be text, got {raw[name]!r}")
    return str(raw[name])
