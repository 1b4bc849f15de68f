"""What the function remembers: of each node what it reported, of each node group its repairs, and the bad serials."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cluster_contract.codec import Open
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import NodeReport, ReportKind

_MAX_TOLD = 20

_NAMES = {FaultKind.XID: "Xid", FaultKind.SXID: "SXid", FaultKind.NEURON: "Neuron"}


class Step(StrEnum):
    """What a repair is at."""

    CORDON = "cordon"
    """The node leaves the service, and its job ends."""

    REBOOT = "reboot"
    """The node reboots, and is verified."""

    REPLACE = "replace"
    """The node is terminated."""

    RETURN = "return"
    """The node comes back into service."""


class End(StrEnum):
    """How a repair ended."""

    RETURNED = "returned"
    """The node is back in service."""

    REPLACED = "replaced"
    """The node is gone, and its group may launch another."""

    LEFT = "left"
    """The node went, or its node group was stopped, before the repair was done."""

    HELD = "held"
    """The node stays as it is until an operator decides."""


@dataclass(frozen=True, kw_only=True)
class Fault(Open):
    """A fault that a node has.

    Attributes:
        code: Its code in the table of faults.
        kind: Where it was seen.
        action: What ends it.
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
        passed: Whether it passed, or failed only where nobody has measured what it must reach.
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

    def bad_serials(self, repair: "Repair") -> frozenset[str]:
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

    def with_told(self, key: str) -> "NodeRecord":
        """Return the record once a message was sent."""
        return replace(self, told=(*self.told, key)[-_MAX_TOLD:])

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
                notice = Notice(code="report", at=report.at, deadline=report.deadline, sentence=report.sentence)
                return replace(found, notice=notice)
            case _:
                return found

    def _since(self, at: datetime) -> "NodeRecord":
        """Return the record with the time since which it has faults that drain it: it was made at the time given."""
        return replace(self, faulty_since=(self.faulty_since or at) if self.draining_faults else None)


@dataclass(frozen=True, kw_only=True)
class Repair(Open):
    """A repair that is under way.

    Attributes:
        instance_id: The node.
        action: What ends its fault.
        reason: What is wrong with it.
        step: What the repair is at.
        began: When it began.
        since: When its step began.
        asked: When the owner was last asked for the step, or was about to be.
        answered: Whether the owner has answered that.
        rebooted: Whether the node was rebooted, or was about to be.
        boot_id: During which boot the node reported the fault.
    """

    instance_id: str
    action: FaultAction
    reason: str
    step: Step
    began: datetime
    since: datetime
    asked: datetime
    answered: bool = False
    rebooted: bool = False
    boot_id: str = ""


@dataclass(frozen=True, kw_only=True)
class PastRepair(Open):
    """A repair that is over.

    Attributes:
        instance_id: The node.
        began: When it began.
        ended: When it ended.
        end: How.
        rebooted: Whether the node was rebooted.
        waits: Whether the node stays as it is until it reports something newer.
        refused: Whether AWS refused its last step.
        reported: When the node had reported last, as far as was known at the end: a report may come late.
    """

    instance_id: str
    began: datetime
    ended: datetime
    end: End
    rebooted: bool = False
    waits: bool = False
    refused: bool = False
    reported: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Message(Open):
    """A message about a node that is yet to be sent.

    Attributes:
        instance_id: The node.
        key: What it is, as `NodeRecord.told` has it once it was sent.
        subject: Its subject.
        text: Its text.
    """

    instance_id: str
    key: str
    subject: str
    text: str


@dataclass(frozen=True, kw_only=True)
class GroupRecord(Open):
    """The repairs of one node group.

    Attributes:
        repair: The repair that is under way. None: there is none.
        past: Those of the window that are over.
        unsent: The messages that say what was done, and have not been sent yet, oldest first.
    """

    repair: Repair | None = None
    past: tuple[PastRepair, ...] = ()
    unsent: tuple[Message, ...] = ()

    def with_unsent(self, message: Message) -> "GroupRecord":
        """Return the record with a message that is to be sent, once for each key."""
        same = any((one.instance_id, one.key) == (message.instance_id, message.key) for one in self.unsent)
        return self if same else replace(self, unsent=(*self.unsent, message)[-_MAX_TOLD:])

    def repairs_since(self, moment: datetime) -> int:
        """Return how many repairs have begun since a time."""
        began = [one.began for one in (*self.past, self.repair) if one is not None]
        return sum(one > moment for one in began)

    def with_end(
        self,
        end: End,
        now: datetime,
        *,
        waits: bool = False,
        refused: bool = False,
        reported: datetime | None = None,
    ) -> "GroupRecord":
        """Return the record once its repair is over."""
        repair = self.repair
        if repair is None:
            return self
        over = PastRepair(
            instance_id=repair.instance_id,
            began=repair.began,
            ended=now,
            end=end,
            rebooted=repair.rebooted,
            waits=waits or refused,
            refused=refused,
            reported=reported,
        )
        return replace(self, repair=None, past=(*self.past, over))

    def pruned(self, present: Collection[str], since: datetime) -> "GroupRecord":
        """Return the record without what no longer counts: no node is held that is gone.

        Args:
            present: The nodes that there are.
            since: Since when repairs count.
        """
        past = (
            replace(one, end=End.LEFT) if one.end is End.HELD and one.instance_id not in present else one
            for one in self.past
        )
        return replace(self, past=tuple(one for one in past if one.began > since or one.end is End.HELD))

    @property
    def unfinished(self) -> frozenset[str]:
        """The nodes that are under repair, or that a repair left out of service."""
        held = {one.instance_id for one in self.past if self.held(one.instance_id)}
        return frozenset(held | ({self.repair.instance_id} if self.repair is not None else set()))

    def held(self, instance_id: str) -> PastRepair | None:
        """Return the last repair of a node, if that left it out of service.

        Args:
            instance_id: The node.
        """
        last = next((one for one in reversed(self.past) if one.instance_id == instance_id), None)
        return last if last is not None and last.end is End.HELD else None

    def resume(self, held: PastRepair, step: Step, reason: str, now: datetime) -> "GroupRecord":
        """Return the record once the repair goes on that left a node out of service: it is the same repair.

        Args:
            held: That repair.
            step: What it goes on with.
            reason: Why.
            now: The time.
        """
        repair = Repair(
            instance_id=held.instance_id,
            action=FaultAction.REPLACE if step is Step.REPLACE else FaultAction.REBOOT,
            reason=reason,
            step=step,
            began=held.began,
            since=now,
            asked=now,
            rebooted=held.rebooted,
        )
        return replace(self, repair=repair, past=tuple(one for one in self.past if one is not held))


@dataclass(frozen=True, kw_only=True)
class BadSerial(Open):
    """An accelerator of a node that was replaced.

    Attributes:
        instance_id: The node.
        at: When it was replaced.
        reason: Why.
    """

    instance_id: str
    at: datetime
    reason: str


def _faults(report: NodeReport) -> tuple[Fault, ...]:
    return tuple(
        Fault(code=one.code, kind=one.kind, action=one.action, sentence=one.sentence, serial=one.serial)
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
