"""What the function remembers of each node: what it reported, and which messages were sent about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cluster_contract.codec import Open
from cluster_contract.faults import FaultAction, FaultKind, fault_of
from cluster_contract.health import NodeReport, ReportKind
from cluster_health.records import Repair

_MAX_TOLD = 20

MAX_MESSAGES = 10
"""How many messages about one node are sent in a day: reports of a fault that comes and goes bring no more."""

_DAY = timedelta(days=1)
_NAMES = {FaultKind.XID: "Xid", FaultKind.SXID: "SXid", FaultKind.NEURON: "Neuron"}


@dataclass(frozen=True, kw_only=True)
class Fault(Open):
    """A fault that a node has.

    Attributes:
        code: Its code in the table of faults.
        kind: Where it was seen.
        action: What ends it, as the table of faults has it.
        sentence: What it is.
        serial: The serial of the accelerator that has it. Empty: unknown, or another device.
    """

    code: str
    kind: FaultKind
    action: FaultAction
    sentence: str = ""
    serial: str = ""

    def __str__(self) -> str:
        named = self.code if self.kind is FaultKind.CHECK else f"{_NAMES[self.kind]} {self.code}"
        return f"{named}: {self.sentence.rstrip('.')}" if self.sentence else named


@dataclass(frozen=True, kw_only=True)
class Verified(Open):
    """The last verification of a node.

    Attributes:
        at: When.
        passed: Whether it passed, or missed only provisional floors, which were not measured on such nodes.
        boot_id: During which boot.
        faults: What of the table of faults it has found.
        failed: What failed, for operators.
    """

    at: datetime
    passed: bool
    boot_id: str
    faults: tuple[Fault, ...] = ()
    failed: str = ""


@dataclass(frozen=True, kw_only=True)
class Notice(Open):
    """What AWS is about to do with a node.

    Attributes:
        code: What it is, such as `AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED`.
        at: When it was announced.
        deadline: From when on the node may be gone. None: that is not known.
        sentence: What it is, for operators.
    """

    code: str
    at: datetime
    deadline: datetime | None = None
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeRecord(Open):
    """What is known of one node.

    Attributes:
        node_group: Its node group.
        boot_id: During which boot it reported last. Empty: it has not reported.
        reported: When it reported last.
        faults: The faults that its watchdog has found.
        faults_at: When it reported these.
        faults_boot: During which boot it reported these.
        faulty_since: Since when it has faults that drain it.
        drained: When it reported that it has no job. None: it may have one.
        verified: Its last verification. None: there was none.
        notice: What AWS is about to do with it. None: nothing is known.
        serials: The serials of its accelerators.
        down_since: Since when its owner or EC2 calls it unhealthy. None: they do not.
        told: The keys of the messages that were sent about it, the latest ones.
        sent: When the latest of them were sent.
    """

    node_group: str
    boot_id: str = ""
    reported: datetime | None = None
    faults: tuple[Fault, ...] = ()
    faults_at: datetime | None = None
    faults_boot: str = ""
    faulty_since: datetime | None = None
    drained: datetime | None = None
    verified: Verified | None = None
    notice: Notice | None = None
    serials: tuple[str, ...] = ()
    down_since: datetime | None = None
    told: tuple[str, ...] = ()
    sent: tuple[datetime, ...] = ()

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults that its watchdog and its last verification have found."""
        return (*self.faults, *(self.verified.faults if self.verified is not None else ()))

    @property
    def draining_faults(self) -> tuple[Fault, ...]:
        """Its faults that a reboot or another node ends."""
        return tuple(one for one in self.all_faults if one.action.drains)

    @property
    def new_faults(self) -> tuple[Fault, ...]:
        """Those that it has reported since its last boot."""
        own = self.faults if self.faults_boot == self.boot_id else ()
        verified = self.verified.faults if self.verified is not None and self.is_verified else ()
        return tuple(one for one in (*own, *verified) if one.action.drains)

    @property
    def is_verified(self) -> bool:
        """Whether it was verified since its last boot, passed or not."""
        return self.verified is not None and self.verified.boot_id == self.boot_id

    @property
    def failed_verification(self) -> Verified | None:
        """Its last verification, if it failed. None: it passed, or there was none."""
        return self.verified if self.verified is not None and not self.verified.passed else None

    def has_drained(self, since: datetime) -> bool:
        """Say whether it reports that its job has ended because of its faults.

        Args:
            since: Since when it has to be drained, where it has no faults.
        """
        return self.drained is not None and self.drained >= (self.faulty_since or since)

    def bad_serials(self, repair: Repair) -> frozenset[str]:
        """Return its accelerators that ask for another node, or that a reboot did not mend.

        Args:
            repair: Its repair.
        """
        faults = () if repair.rebooted and self.boot_id == repair.boot_id else self.new_faults
        worst = strongest(faults)
        if worst is FaultAction.REBOOT and not repair.rebooted and repair.action is not FaultAction.REPLACE:
            return frozenset()
        return frozenset(one.serial for one in faults if one.serial and one.action is worst)

    def has_reported_since(self, moment: datetime) -> bool:
        """Say whether it has reported faults or a verification since a time.

        Args:
            moment: The time.
        """
        reported = (self.faults_at, self.verified.at if self.verified is not None else None)
        return any(at is not None and at > moment for at in reported)

    def messages_left(self, now: datetime) -> int:
        """Return how many more messages about it may be sent.

        Args:
            now: The time.
        """
        return MAX_MESSAGES - sum(now - one < _DAY for one in self.sent)

    def with_told(self, key: str, sent: datetime | None = None) -> "NodeRecord":
        """Return the record once a message was sent, or, without a time, needs not be sent."""
        times = self.sent if sent is None else (*self.sent, sent)[-MAX_MESSAGES:]
        return replace(self, told=(*self.told, key)[-_MAX_TOLD:], sent=times)

    def with_report(self, report: NodeReport) -> "NodeRecord":
        """Return the record with a report; one that comes twice, late or of an earlier boot changes nothing newer."""
        is_newest = self.reported is None or report.at >= self.reported
        found = self
        if is_newest:
            if report.boot_id != self.boot_id:
                found = replace(found, drained=None)
            serials = report.serials or found.serials
            found = replace(found, boot_id=report.boot_id, reported=report.at, serials=serials)
        if report.boot_id != found.boot_id:
            return found
        match report.kind:
            case ReportKind.FAULT | ReportKind.RECOVERED if self.faults_at is None or report.at >= self.faults_at:
                faults = replace(found, faults=_faults(report), faults_at=report.at, faults_boot=report.boot_id)
                return faults._since(report.at)
            case ReportKind.VERIFIED if report.checks and (self.verified is None or report.at > self.verified.at):
                # It says what a reboot has left of the faults before it.
                left = found.faults if found.faults_boot == report.boot_id else ()
                return replace(found, faults=left, verified=_verified(report))._since(report.at)
            case ReportKind.DRAINED if self.drained is None or report.at >= self.drained:
                return replace(found, drained=report.at)
            case ReportKind.NOTICE if self.notice is None or report.at >= self.notice.at:
                # Of an event that AWS has announced too, its code says more.
                same = self.notice if self.notice and self.notice.deadline == report.deadline else None
                code = same.code if same else "report"
                notice = Notice(code=code, at=report.at, deadline=report.deadline, sentence=report.sentence)
                return replace(found, notice=notice)
            case _:
                return found

    def _since(self, at: datetime) -> "NodeRecord":
        """Return the record with the time since which it has faults that drain it: it was made at the time given."""
        return replace(self, faulty_since=(self.faulty_since or at) if self.draining_faults else None)


def _faults(report: NodeReport) -> tuple[Fault, ...]:
    return tuple(
        Fault(
            code=one.code,
            kind=one.kind,
            action=fault_of(one.kind, one.code).action_said(one.action),
            sentence=one.sentence,
            serial=one.serial,
        )
        for one in report.faults
    )


def _verified(report: NodeReport) -> Verified:
    failed = [one for one in report.checks if not one.passed]
    return Verified(
        at=report.at,
        passed=not failed or report.provisional,
        boot_id=report.boot_id,
        faults=_faults(report),
        failed="; ".join(f"{one.name}: {one.found}{one.floor and f', at least {one.floor}'}" for one in failed),
    )


def strongest(faults: Sequence[Fault]) -> FaultAction:
    """Return what ends all of some faults: another node if one of them asks for it."""
    return FaultAction.REPLACE if any(one.action is FaultAction.REPLACE for one in faults) else FaultAction.REBOOT
