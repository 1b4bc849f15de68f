"""A node group of an Auto Scaling group in memory: its nodes break, boot, verify themselves and report."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import NodeReport, ReportedCheck, ReportedFault, ReportKind
from fake_service import refusal
from health_memory import MemoryStore, Truth

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
CLUSTER, NAME, ASG = "base-pod", "workers", "workers-asg"


@dataclass
class DrawnGroup:
    """A node group whose faults are drawn by a number.

    Attributes:
        seed: The number that it is drawn by.
        count: How many nodes the group should have.
        calm: Whether nothing fails and no operator acts.
        minute: The time, in minutes since the start.
        operated: Whether an operator has changed the group or stopped it.
        met: What has happened, and how often.
    """

    seed: int
    count: int = 4
    calm: bool = False
    minute: int = 0
    nodes: dict[str, Truth] = field(default_factory=dict)
    desired: int = 0
    capacity: int = 100
    launched: int = 0
    operated: bool = False
    inbox: list[tuple[int, NodeReport]] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with all nodes in service."""
        self.draw = Random(self.seed)  # noqa: S311 (no secret)
        self.desired = self.count
        for _ in range(self.count):
            self.launch().state = "InService"
        self.store = MemoryStore(lambda: self.now)

    @property
    def now(self) -> datetime:
        """The time."""
        return START + timedelta(minutes=self.minute)

    def launch(self) -> Truth:
        """Launch a node, sometimes on a host that a node had before."""
        self.launched += 1
        serial = f"s-{self.launched}"
        if self.launched > self.count and self.draw.random() < 0.1:
            serial = f"s-{self.draw.randint(1, self.launched - 1)}"  # The same host comes back.
            self.met["host comes back"] += 1
        self.nodes[f"i-{self.launched}"] = truth = Truth(serial=serial)
        return truth

    def work(self) -> None:
        """Do what Auto Scaling and the nodes do in a minute."""
        for name, node in list(self.nodes.items()):
            if node.state == "Terminating":
                del self.nodes[name]
                continue
            if node.dead and node.state == "InService":
                node.state = "Terminating"
            if node.state == "Pending":
                node.state = "InService"
                self.verify(name, node)
            if node.back_at is not None and self.minute >= node.back_at:
                self.come_up(name, node)
            if node.ends_at is not None and self.minute >= node.ends_at and not node.silent:
                node.ends_at = None
                self.say(name, ReportKind.DRAINED)
        members = [one for one, node in self.nodes.items() if node.state in ("InService", "Pending")]
        for _ in range(min(self.desired, self.capacity) - len(members)):
            self.launch()
        for one in members[self.desired :]:
            assert self.operated, f"history {self.seed}, minute {self.minute}: {one} is terminated in another's place"
            self.nodes[one].state = "Terminating"

    def come_up(self, name: str, node: Truth) -> None:
        """Let a node finish its boot, and verify it."""
        node.back_at, node.boot = None, node.boot + 1
        self.store.change_node(name, NAME, lambda known: replace(known, down_since=None))
        if node.mends:
            node.broken = None
        self.verify(name, node)

    def verify(self, name: str, node: Truth) -> None:
        """Let a node verify itself, and report it."""
        fine = node.broken is None
        checks = (ReportedCheck("gpus", passed=fine, found="8"), ReportedCheck("fsx", passed=node.fit, found="?"))
        self.say(
            name,
            ReportKind.VERIFIED,
            checks=checks,
            faults=(fault_of(node.broken, node.serial),) if node.broken else (),
        )

    def say(self, name: str, kind: ReportKind, **details: Any) -> None:
        """Let a node report: the report may come late, twice, or, unless all is calm, never."""
        node = self.nodes[name]
        report = NodeReport(
            cluster=CLUSTER,
            node_group=NAME,
            instance_id=name,
            boot_id=f"boot-{node.boot}",
            kind=kind,
            at=self.now,
            serials=(node.serial,),
            **details,
        )
        fate = 1.0 if self.calm else self.draw.random()
        delays = () if fate < 0.03 else (0, 7) if fate < 0.1 else (self.draw.randint(1, 9),) if fate < 0.2 else (0,)
        self.met["report lost" if not delays else "report comes twice" if len(delays) > 1 else "report"] += 1
        self.inbox += [(self.minute + delay, report) for delay in delays]

    def break_node(self, name: str) -> None:
        """Let a node break, and report it."""
        node = self.nodes[name]
        node.broken = self.draw.choice([FaultAction.REBOOT, FaultAction.REBOOT, FaultAction.REPLACE])
        node.mends = node.broken is FaultAction.REBOOT and self.draw.random() < 0.7
        node.was_broken = True
        node.ends_at = self.minute + self.draw.choice([0, 1, 2, 4, 30])
        self.say(name, ReportKind.FAULT, faults=(fault_of(node.broken, node.serial),))

    def silence(self, name: str) -> None:
        """Let a node report nothing any more; EC2 calls it impaired."""
        self.nodes[name].silent = self.nodes[name].was_broken = True
        self.store.change_node(name, NAME, lambda node: replace(node, down_since=node.down_since or self.now))

    @staticmethod
    def kill(node: Truth) -> None:
        """Let EC2 terminate a node."""
        node.dead = node.silent = node.was_broken = True
        node.back_at = node.ends_at = None

    def recover(self, name: str) -> None:
        """Let a node report that its fault is over."""
        node = self.nodes[name]
        if node.broken is FaultAction.REBOOT and not node.silent and node.back_at is None:
            node.broken = None
            self.say(name, ReportKind.RECOVERED)

    def operate(self, name: str) -> None:
        """Let an operator move a node, or set the desired capacity."""
        node, self.operated = self.nodes[name], True
        if node.state == "InService" and self.desired:
            node.state, self.desired = "Standby", self.desired - 1
        elif node.state == "Standby":
            node.state, node.ours, self.desired = "InService", False, self.desired + 1
        else:
            self.desired = self.draw.randint(0, self.count)

    def describe(self) -> OwnedGroup:
        """Return the group as Auto Scaling describes it."""
        states = [node.state for node in self.nodes.values()]
        nodes = {one: OwnedNode(state=node.state) for one, node in self.nodes.items()}
        return OwnedGroup(
            name=ASG,
            node_group=NAME,
            desired=self.desired,
            minimum=0,
            maximum=self.count,
            in_service=states.count("InService"),
            out_of_service=tuple(one for one in states if one != "InService"),
            ends_newest=True,
            nodes=nodes,
        )

    def enter(self, name: str) -> None:
        """Put a node into Standby, as EnterStandby does with decrement."""
        node = self.nodes[name]
        if node.state != "InService":
            raise refusal("EnterStandby", "ValidationError", f"The instance {name} is not in InService.")
        node.state, node.ours, self.desired = "Standby", True, self.desired - 1

    def exit(self, name: str) -> None:
        """Put a node back into service, as ExitStandby does."""
        node = self.nodes[name]
        if node.state != "Standby":
            raise refusal("ExitStandby", "ValidationError", f"The instance {name} is not in Standby.")
        node.state, node.ours, self.desired = "InService", False, self.desired + 1

    def boot_again(self, name: str) -> None:
        """Reboot a node; sometimes it never comes up."""
        node = self.nodes[name]
        node.back_at, node.ends_at, node.silent = self.minute + self.draw.choice([3, 5, 8]), None, False
        if not self.calm and self.draw.random() < 0.1:
            node.back_at = None
            self.silence(name)
            self.met["node never boots"] += 1


def fault_of(action: FaultAction, serial: str) -> ReportedFault:
    """Return a fault as a node reports it."""
    return ReportedFault(
        "95" if action.drains else "63", FaultKind.XID, action, "0000:53:00", 1, "It is broken", serial
    )
