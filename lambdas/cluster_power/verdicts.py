"""What is decided about a node group."""

from dataclasses import dataclass
from enum import StrEnum

from cluster_power.groups import Group
from cluster_power.problems import Problem
from cluster_power.windows import Window


class Verdict(StrEnum):
    """What is to be done with a node group."""

    SIZE = "size"
    """Set its size, and record it."""

    KEEP = "keep"
    """Nothing: it is as it should be."""

    PENDING = "pending"
    """Nothing: its nodes are launching, or going away."""

    WAITING = "waiting"
    """Nothing yet: its Capacity Block has not started."""

    CLOSING = "closing"
    """Nothing yet: it is as it should be, and its nodes are terminated soon, because its Capacity Block ends."""

    OVER = "over"
    """Nothing any more: its Capacity Block is over."""

    UNUSABLE = "unusable"
    """Nothing that the function could do: its Capacity Block or reservation cannot be used; the problem says why."""

    SHORT = "short"
    """Nothing that the function could do: nodes are missing, and the problem says why."""

    SURPLUS = "surplus"
    """Nothing that the function could do: more nodes live than should, and the problem says why."""

    UNSEEN = "unseen"
    """Nothing: what would have to be known to decide, or to say why nodes are missing, could not be read."""

    HELD = "held"
    """Nothing: an operator or another program gave it its size, which it keeps."""

    BLOCKED = "blocked"
    """Nothing for now: the size that it should have, or that was ordered, is not possible."""

    UNCONFIGURED = "unconfigured"
    """Nothing: it carries the cluster's tag, but the cluster's file does not know it."""

    DELETING = "deleting"
    """Nothing: it is being terminated."""

    ABSENT = "absent"
    """Nothing: the cluster's file knows it, but nothing that would own its nodes is there."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is to be done with one node group, and why.

    Attributes:
        node_group: The node group's name.
        verdict: What is to be done.
        reason: Why, in one sentence.
        group: The group. None: there is none, or it could not be read.
        wanted: The size it should have.
        missing: How many of its nodes should run and do not.
        surplus: How many of its nodes live, and are billed, beyond those that should.
        problem: What keeps nodes from running. None: nothing.
        problem_known: Whether `problem` is a finding; if not, what was reported stays as it is.
        surplus_problem: What keeps nodes from going. None: nothing.
        versions_problem: That nodes run different launch template versions. None: they do not.
        versions_known: Whether `versions_problem` is a finding, likewise.
        window: What its Capacity Block allows. None: it has none, or is stopped whatever that says.
        terminated: The nodes that a command has terminated. None: it named none.
        taken_back: Whether a stop that is applied at once or not at all was not. None: this is no such stop, or that
            shows later.
        desired: What desired capacity its group gets while EC2 lacks nodes; its size stays. None: no other.
        resumes: Whether launches that Auto Scaling has suspended are resumed.
        reserve: For how many instances its reservation is to hold capacity. None: it is left as it is.
    """

    node_group: str
    verdict: Verdict
    reason: str
    wanted: int
    group: Group | None = None
    missing: int = 0
    surplus: int = 0
    problem: Problem | None = None
    problem_known: bool = False
    surplus_problem: Problem | None = None
    versions_problem: Problem | None = None
    versions_known: bool = False
    window: Window | None = None
    terminated: tuple[str, ...] | None = None
    taken_back: bool | None = None
    desired: int | None = None
    resumes: bool = False
    reserve: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether the group has a desired capacity that the function did not set."""
        is_by_order = self.group is not None and self.group.is_smaller_by_order
        return self.verdict is Verdict.HELD and not is_by_order
