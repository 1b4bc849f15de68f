"""Node groups, as what owns their nodes describes them, with what the function has recorded of each."""

from dataclasses import dataclass

from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.power_records import NO_RECORD, GroupState, Record


@dataclass(frozen=True, kw_only=True)
class Group(OwnedGroup):
    """One node group that carries the cluster's tag, and what the function knows of it.

    Attributes:
        record: What the function has recorded of it.
        is_unrecorded: Whether there is no entry for it: it is new, or its entry was lost.
        shows_old_size: Whether its desired capacity may be older than the one that the function has just set.
        activities: What its owner did with it, newest first. None: that could not be read.
    """

    record: Record = NO_RECORD
    is_unrecorded: bool = False
    shows_old_size: bool = False
    activities: tuple[Activity, ...] | None = ()

    @classmethod
    def recorded(cls, owned: OwnedGroup, state: GroupState) -> "Group":
        """Return a group that was read, with its record."""
        is_unrecorded = owned.name not in state.owners
        return cls(**{**vars(owned), "record": state.record(owned.name), "is_unrecorded": is_unrecorded})

    @property
    def is_new(self) -> bool:
        """Whether the function has never seen it."""
        return self.record.state is None and not self.deleting

    @property
    def goal(self) -> int:
        """How many nodes it is to have: its desired capacity, or what the function lowered that from."""
        size, given = self.record.size, self.record.desired
        if size is None or given is None or self.desired not in given.sizes:
            return self.desired
        return max(size if given.goal is None else given.goal, self.desired)

    @property
    def kept(self) -> int:
        """How many nodes it keeps when it gets no more.

        Of a Spot Fleet these are also those that its target does not count, and of a group that a scheduler sizes
        those that run. None where running jobs keep their nodes whatever the size is: AWS Batch fails waiting jobs
        that ask for more than a smaller size, and leaves them waiting where the size is 0.
        https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
        """
        if self.scheduler_sized:
            return 0 if self.owner.keeps_jobs else min(self.alive, self.desired)
        lets_live = self.owner.reset_by_deployments and self.keeps_excess is not False
        given = (self.record.size or 0) if self.shows_old_size else 0
        placed = self.counted + self.standby if self.standby else 0
        return max(self.desired, given, placed, self.alive if lets_live else 0)

    @property
    def places_of_standby(self) -> int:
        """How many places nodes in Standby keep: also those of nodes that are gone, which are given back next."""
        return self.standby + (len(self.gone_from_standby) if self.launching_suspended is None else 0)

    @property
    def gone_from_standby(self) -> frozenset[str]:
        """The nodes that are gone from Standby, whose places its desired capacity does not count yet."""
        return frozenset(self.record.desired.standby if self.record.desired else ()) - self.standby_ids

    def capacity_for(self, size: int) -> int:
        """Return the desired capacity that gives it a size: a node in Standby keeps its place, and costs none other.

        Auto Scaling takes the place from the desired capacity when a node enters Standby, and gives it back when the
        node returns.
        https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html
        """
        return max(size - self.standby, self.counted if self.counted <= size else 0) if self.standby else size

    @property
    def is_smaller_by_order(self) -> bool:
        """Whether a command to terminate single nodes, since the function gave it a size, explains a smaller one."""
        given = self.record.desired
        return given is not None and given.goal is not None and self.desired in given.sizes
