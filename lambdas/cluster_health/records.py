"""What the function remembers of the repairs of each node group, and of the accelerators that had to be replaced."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cluster_contract.codec import Open
from cluster_contract.faults import FaultAction

_MAX_UNSENT = 20


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
        error: The error that AWS has answered last, while it refuses the step. Empty: none.
        busy_since: Since when the owner answers that it is busy. None: it does not.
        rebooted: Whether the node was rebooted, or was about to be.
        boot_id: During which boot the node was when it was last to be rebooted; before, when the repair began.
        desired: The desired capacity of its group with the node, when the repair began. None: that is not known.
    """

    instance_id: str
    action: FaultAction
    reason: str
    step: Step
    began: datetime
    since: datetime
    asked: datetime
    answered: bool = False
    error: str = ""
    busy_since: datetime | None = None
    rebooted: bool = False
    boot_id: str = ""
    desired: int | None = None


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
        desired: What `Repair.desired` was.
    """

    instance_id: str
    began: datetime
    ended: datetime
    end: End
    rebooted: bool = False
    waits: bool = False
    refused: bool = False
    reported: datetime | None = None
    desired: int | None = None


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
        return self if same else replace(self, unsent=(*self.unsent, message)[-_MAX_UNSENT:])

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
            desired=repair.desired,
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
            desired=held.desired,
        )
        return replace(self, repair=repair).without(held)

    def without(self, past: PastRepair) -> "GroupRecord":
        """Return the record without a repair that is over.

        Args:
            past: That repair.
        """
        return replace(self, past=tuple(one for one in self.past if one is not past))


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
