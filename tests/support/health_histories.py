"""Histories of a node group in which nodes break, calls fail, reports get lost and operators act: drawn by a number.

The decisions, the records and the executor are the functions' own, and so is the power function's decision; around
them there are an Auto Scaling group, a state table and nodes in memory, as small as 100,000 histories need.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import ConnectTimeoutError

from cluster_common.failures import Failures
from cluster_common.owners.groups import Activity, Node, OwnedGroup
from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.power_records import Desired, GroupState, Order, Record, State
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import NodeReport, ReportedCheck, ReportedFault, ReportKind
from cluster_contract.health_settings import HealthFunctionSettings, HealthPolicySettings
from cluster_health.decisions import decide
from cluster_health.executor import HealthExecutor
from cluster_health.node_records import NodeRecord
from cluster_health.outcomes import Context, Finding, GroupView, Outcome, Wanted
from cluster_power import decisions as power_decisions
from cluster_power.context import Context as PowerContext
from cluster_power.groups import Group
from cluster_power.settings import GroupSettings, Settings
from cluster_power.shortages import settle
from cluster_power.verdicts import Verdict
from fake_service import refusal
from health_memory import MemoryStore, Truth

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_LOGGER = Logger(service="histories", level=logging.CRITICAL)
_POLICY = HealthPolicySettings(act=True, max_repairs=2, window=60 * _MINUTE, drain_timeout=5 * _MINUTE)
_CLUSTER, _NAME, _ASG = "base-pod", "workers", "workers-asg"
_ANSWERS = (*["yes"] * 12, "busy", "refused", "lost", "crash", "unrecorded", "crash")
_PARTS = (*[""] * 20, "group", "wanted", "kept")

_REST = 5
"""How many minutes a function need not run that has just run, and around which nothing has changed since."""

_STIR = 4
"""How many minutes pass at most between two disturbances."""


class LambdaTimeoutError(Exception):
    """Lambda ends the function."""


@dataclass
class History:
    """One history of a node group.

    Attributes:
        seed: The number that it is drawn by.
        count: How many nodes the group should have.
        calm: Whether nothing fails and no operator acts.
        quiet: In how many turns nothing has changed.
        met: What has happened, and how often.
    """

    seed: int
    count: int = 4
    calm: bool = False
    minute: int = 0
    nodes: dict[str, Truth] = field(default_factory=dict)
    began: list[datetime] = field(default_factory=list)
    desired: int = 0
    capacity: int = 100
    launched: int = 0
    operated: bool = False
    quiet: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with all nodes in service."""
        self.draw = Random(self.seed)  # noqa: S311 (no secret)
        self.desired = self.count
        for _ in range(self.count):
            self._launch().state = "InService"
        self.store = MemoryStore(lambda: self.now)
        order = Order(state=State.RUNNING, by="ana", reason="start", since=START)
        own = Record(size=self.count, since=START)
        self.power = GroupState(order=order, owners={_ASG: own})
        self._settings = Settings(cluster=_CLUSTER, groups={_NAME: GroupSettings(count=self.count)})
        self.inbox: list[tuple[int, NodeReport]] = []
        self._answer = "yes"
        self.settled: GroupState | None = None
        self._idle: dict[str, tuple[object, int]] = {}
        self._failed = False

    @property
    def now(self) -> datetime:
        """The time."""
        return START + self.minute * _MINUTE

    def run(self, minutes: int) -> None:
        """Let minutes pass."""
        end, state = self.minute + minutes, self._state()
        while self.minute < end:
            self.minute += min(self._pause(), end - self.minute)
            if not self.calm:
                self._disturb()
            self._work()
            self._deliver()
            before, state = state, self._state()
            turns = (self.power_tick, self.health_tick)
            for turn in turns if self.draw.random() < 0.5 else reversed(turns):
                state = self._run(turn, state)
            self.quiet = self.quiet + 1 if state == before and len(self._idle) == len(turns) else 0

    def _run(self, turn: Callable[[], None], state: tuple[object, object]) -> tuple[object, object]:
        """Let a function run, unless it has done nothing minutes ago about the same; return the state then."""
        seen = state[:1] if turn == self.power_tick else state
        idle, until = self._idle.pop(turn.__name__, (None, 0))
        if self.minute >= until or idle != seen:
            until, self._failed = self.minute + _REST, False
            turn()
        if not self._failed:
            self._idle[turn.__name__] = seen, until
        return self._state()

    def _pause(self) -> int:
        """Return how many minutes pass until something may happen: the more, the longer nothing has.

        Each function is called every minute, and what it does then must not rest on that: a call may fail.
        """
        nodes = [node for node in self.nodes.values() if not node.silent]
        times = [at for at, _ in self.inbox] + [at for node in nodes for at in (node.back_at, node.ends_at) if at]
        longest = min([4 * self.quiet, *(at - self.minute for at in times)])
        return self.draw.randint(1, max(1, longest if self.calm else min(longest, _STIR)))

    def _state(self) -> tuple[object, object]:
        """Return all that the power function's decisions rest on but the time, and what the health function's do."""
        nodes = tuple((one, node.state) for one, node in self.nodes.items())
        kept = tuple(node.kept for node in self.nodes.values())
        return (self.desired, self.capacity, self.power, nodes), (len(self.store.groups), self.store.changes, kept)

    def settle_down(self) -> None:
        """Let hours pass in which nothing fails and no operator acts; then all nodes must be in service.

        Where an operator has changed the group or stopped it, a node may be left in Standby only if an operator
        keeps it there.
        """
        self.calm, self.capacity, self._answer, self.minute = True, 100, "yes", self.minute + 1
        for name, node in self.nodes.items():
            node.kept, node.fit = False, True
            if node.back_at is None and not node.silent and node.state in ("InService", "Standby"):
                self._verify(name, node)
        self.run(5 * 60)
        where = f"history {self.seed}: {self.desired} {self.nodes} {self.store.groups[-1]} {self.power}"
        if not self.operated:
            assert (self.desired, len(self.nodes)) == (self.count, self.count), where
            assert all(node.state == "InService" for node in self.nodes.values()), where
            assert self.settled is self.power, where
        elif self.power.order is not None and self.power.order.state is State.STOPPED and not self.desired:
            assert not any(node.ours for node in self.nodes.values()), where

    # What happens by itself

    def _launch(self) -> Truth:
        self.launched += 1
        serial = f"s-{self.launched}"
        if self.launched > self.count and self.draw.random() < 0.1:
            serial = f"s-{self.draw.randint(1, self.launched - 1)}"  # The same host comes back.
            self.met["host comes back"] += 1
        self.nodes[f"i-{self.launched}"] = truth = Truth(serial=serial)
        return truth

    def _work(self) -> None:
        """Do what Auto Scaling and the nodes do in a minute."""
        for name, node in list(self.nodes.items()):
            if node.state == "Terminating":
                del self.nodes[name]
                continue
            if node.state == "Pending":
                node.state = "InService"
                self._verify(name, node)
            if node.back_at is not None and self.minute >= node.back_at:
                self._come_up(name, node)
            if node.ends_at is not None and self.minute >= node.ends_at and not node.silent:
                node.ends_at = None
                self._say(name, ReportKind.DRAINED)
        members = [one for one, node in self.nodes.items() if node.state in ("InService", "Pending")]
        for _ in range(min(self.desired, self.capacity) - len(members)):
            self._launch()
        for one in members[self.desired :]:
            assert self.operated, f"history {self.seed}, minute {self.minute}: {one} is terminated in another's place"
            self.nodes[one].state = "Terminating"

    def _come_up(self, name: str, node: Truth) -> None:
        node.back_at, node.boot = None, node.boot + 1
        self.store.change_node(name, _NAME, lambda known: replace(known, down_since=None))
        if node.mends:
            node.broken = None
        self._verify(name, node)

    def _verify(self, name: str, node: Truth) -> None:
        fine = node.broken is None
        checks = (ReportedCheck("gpus", passed=fine, found="8"), ReportedCheck("fsx", passed=node.fit, found="?"))
        self._say(
            name,
            ReportKind.VERIFIED,
            checks=checks,
            faults=(_fault(node.broken, node.serial),) if node.broken else (),
        )

    def _say(self, name: str, kind: ReportKind, **details: Any) -> None:
        """Let a node report: the report may come late, twice, or, unless all is calm, never."""
        node = self.nodes[name]
        report = NodeReport(
            cluster=_CLUSTER,
            node_group=_NAME,
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

    def _deliver(self) -> None:
        due = [report for at, report in self.inbox if at <= self.minute]
        self.inbox = [one for one in self.inbox if one[0] > self.minute]
        for report in due:
            if report.instance_id in self.nodes:
                self.store.change_node(report.instance_id, _NAME, partial(NodeRecord.with_report, report=report))
                if self.draw.random() < 0.7:
                    self.health_tick()

    def break_node(self, name: str) -> None:
        """Let a node break, and report it."""
        node = self.nodes[name]
        node.broken = self.draw.choice([FaultAction.REBOOT, FaultAction.REBOOT, FaultAction.REPLACE])
        node.mends = node.broken is FaultAction.REBOOT and self.draw.random() < 0.7
        node.was_broken = True
        node.ends_at = self.minute + self.draw.choice([0, 1, 2, 4, 30])
        self._say(name, ReportKind.FAULT, faults=(_fault(node.broken, node.serial),))

    # What disturbs

    def _disturb(self) -> None:
        draw, names = self.draw, list(self.nodes)
        self._answer = draw.choice(_ANSWERS)
        if not names:
            return
        name = draw.choice(names)
        node, chance = self.nodes[name], draw.random()
        for limit, what, happen in self._events(name, node):
            chance -= limit
            if chance < 0:
                self.met[what] += 1
                happen()
                return

    def _events(self, name: str, node: Truth) -> Iterator[tuple[float, str, Callable[[], object]]]:
        if node.state == "InService" and node.broken is None:
            yield 0.08, "node breaks", lambda: self.break_node(name)
            yield 0.02, "node is silent", lambda: self._silence(name)
            harmless = self.draw.choice([FaultAction.OBSERVE, FaultAction.APPLICATION])
            yield (
                0.02,
                "harmless fault",
                lambda: self._say(name, ReportKind.FAULT, faults=(_fault(harmless, node.serial),)),
            )
            yield 0.01, "verification without checks", lambda: self._say(name, ReportKind.VERIFIED)
        yield 0.02, "node recovers", lambda: self._recover(name)
        given = self.power.owners[_ASG].desired
        if node.state != "Standby" or (given is not None and name in given.standby):
            # The place of a node that goes before the power function has seen it in Standby is an operator's to give.
            yield 0.08 if given else 0.01, "node vanishes", lambda: setattr(node, "state", "Terminating")
        yield 0.03, "operator keeps a node", lambda: setattr(node, "kept", not node.kept)
        capacity = self.draw.choice([self.count - 1, self.count, 100])
        yield 0.02, "capacity changes", lambda: setattr(self, "capacity", capacity)
        yield 0.01, "operator resizes", lambda: self._operate(name)
        yield 0.02, "operator orders", lambda: self._order(self.draw.choice([State.STOPPED, State.RUNNING]))
        yield 0.03, "mount fails or answers", lambda: setattr(node, "fit", not node.fit)

    def _silence(self, name: str) -> None:
        self.nodes[name].silent = self.nodes[name].was_broken = True
        self.store.change_node(name, _NAME, lambda node: replace(node, down_since=node.down_since or self.now))

    def _recover(self, name: str) -> None:
        node = self.nodes[name]
        if node.broken is FaultAction.REBOOT and not node.silent and node.back_at is None:
            node.broken = None
            self._say(name, ReportKind.RECOVERED)

    def _operate(self, name: str) -> None:
        """Let an operator move a node, or set the desired capacity."""
        node, self.operated = self.nodes[name], True
        if node.state == "InService" and self.desired:
            node.state, self.desired = "Standby", self.desired - 1
        elif node.state == "Standby":
            node.state, node.ours, self.desired = "InService", False, self.desired + 1
        else:
            self.desired = self.draw.randint(0, self.count)

    def _order(self, state: State) -> None:
        self.operated |= state is State.STOPPED
        order = Order(state=state, by="ana", reason="because", since=self.now)
        self.power = self.power.with_order(order)

    # The functions

    def describe(self) -> OwnedGroup:
        """Return the group as Auto Scaling describes it."""
        states = [node.state for node in self.nodes.values()]
        nodes = {one: Node(state=node.state) for one, node in self.nodes.items()}
        return OwnedGroup(
            name=_ASG,
            node_group=_NAME,
            desired=self.desired,
            minimum=0,
            maximum=self.count,
            in_service=states.count("InService"),
            out_of_service=tuple(one for one in states if one != "InService"),
            ends_newest=True,
            nodes=nodes,
        )

    def power_tick(self) -> None:
        """Let the power function tick, as its executor does it."""
        if not self.calm and self.draw.random() < 0.05:
            self.met["power function fails"] += 1
            self._failed = True
            return
        if self._is_whole() and self.settled is self.power:
            return
        read = Group.recorded(self.describe(), self.power)
        group = settle(read, self.now)
        if self.capacity < self.desired:
            launch = Activity(launch=True, started=self.now, failed=True, finished=True, message="no capacity")
            group = replace(group, activities=(launch,))
        orders = {_NAME: cast("Order", self.power.order)}
        context = PowerContext(settings=self._settings, now=self.now, orders=orders)
        [decision] = power_decisions.decide([group], context)
        changes: dict[str, object] = {"desired": group.record.desired}
        if decision.verdict is Verdict.SIZE:
            self.desired = group.capacity_for(decision.wanted)
            lower = self.desired < decision.wanted
            standby = tuple(sorted(group.standby_ids))
            given = Desired(sizes=(self.desired,), at=self.now, standby=standby) if lower else None
            changes = {"size": decision.wanted, "since": self.now, "desired": given}
        elif decision.desired is not None:
            self.desired = decision.desired
            goal = group.record.desired.goal if group.record.desired else None
            standby = tuple(sorted(group.standby_ids))
            changes = {"desired": Desired(sizes=(self.desired,), at=self.now, goal=goal, standby=standby)}
        if any(getattr(read.record, name) != value for name, value in changes.items()):
            self.power = self.power.with_changes(_ASG, changes)
        elif self._is_whole():
            self.settled = self.power

    def _is_whole(self) -> bool:
        """Whether all nodes are in service: then what the power function has settled stays so."""
        whole = self.desired == len(self.nodes) == self.count
        return whole and all(node.state == "InService" for node in self.nodes.values())

    def view(self) -> GroupView:
        """Return what the health function can read; a part of it may not be readable."""
        own = self.power.owners[_ASG]
        stopped = self.power.order is not None and self.power.order.state is State.STOPPED
        standby = frozenset(own.desired.standby if own.desired else ())
        aside = sum(node.state == "Standby" for node in self.nodes.values())
        goal = own.desired.goal if own.desired else min(own.size or 0, self.desired + aside)
        wanted = Wanted(size=own.size, stopped=stopped, standby=standby, goal=goal) if own.size is not None else None
        unreadable = "" if self.calm else self.draw.choice(_PARTS)
        if unreadable:
            self.met[f"{unreadable} not read"] += 1
            self._failed = True
        kept = {one: "has the tag keep" if node.kept else "" for one, node in self.nodes.items()}
        return GroupView(
            name=_NAME,
            traits=AUTO_SCALING_GROUP,
            group=None if unreadable == "group" else self.describe(),
            record=self.store.groups[-1],
            nodes=dict(self.store.nodes),
            wanted=None if unreadable == "wanted" else wanted,
            kept={} if unreadable == "kept" else kept,
        )

    def health_tick(self) -> None:
        """Let the health function tick; another run may begin before it writes."""
        store = self.store
        is_broken = any(one.faulty_since or one.down_since for one in store.nodes.values())
        if not (is_broken or store.bad_serials or store.groups[-1].unfinished):
            return
        view = self.view()
        seen = self.store.seen = len(self.store.groups)
        context = Context(policy=_POLICY, now=self.now, region="us-east-1", bad_serials=self.store.bad_serials)
        findings = decide(view, context)
        self.met.update(f"decided: {one.outcome}" for one in findings)
        if not self.calm and findings and self.draw.random() < 0.05:
            self.met["two runs at once"] += 1
            self._execute(view, findings)
            self.store.seen = seen
        self._execute(view, findings)

    def _execute(self, view: GroupView, findings: list[Finding]) -> None:
        settings = HealthFunctionSettings(cluster=_CLUSTER, policy=_POLICY)
        executor = HealthExecutor(
            settings,
            cast("Any", self),
            cast("Any", self.store),
            sns=cast("Any", None),
            failures=Failures(_LOGGER),
            logger=_LOGGER,
        )
        self.store.fails = self._answer == "unrecorded"
        if self.store.fails and any(one.record for one in findings):
            self.met["record not written"] += 1
            self._failed = True
        self._view, self._findings = view, findings
        try:
            executor.apply(view, findings)
        except LambdaTimeoutError:
            pass
        finally:
            self.store.fails = False

    # What owns the nodes, as the executor asks it

    def of(self, _group: OwnedGroup) -> "History":
        """Return what owns the nodes."""
        return self

    def cordon(self, _group: OwnedGroup, name: str) -> None:
        """Put a node into Standby."""
        self._ask(Outcome.CORDON, name, self._enter)

    def uncordon(self, _group: OwnedGroup, name: str) -> None:
        """Put a node back into service."""
        self._ask(Outcome.RETURN, name, self._exit)

    def reboot(self, _group: OwnedGroup, name: str) -> None:
        """Reboot a node."""
        self._ask(Outcome.REBOOT, name, self._reboot)

    def replace(self, _group: OwnedGroup, name: str) -> None:
        """Terminate a node."""
        self._ask(Outcome.REPLACE, name, lambda one: setattr(self.nodes[one], "state", "Terminating"))

    def _ask(self, outcome: Outcome, name: str, do: Callable[[str], None]) -> None:
        answer, self._answer = self._answer, "yes"
        self.check(outcome, name)
        self.met[f"answer: {answer}"] += 1
        if answer == "crash":
            raise LambdaTimeoutError
        if answer == "busy":
            raise OwnerBusyError
        if answer == "refused" or name not in self.nodes:
            raise refusal(outcome.value, "ValidationError", f"The instance {name} is not in InService.")
        do(name)
        self.met[f"done: {outcome}"] += 1
        if answer == "lost":
            raise ConnectTimeoutError(endpoint_url="https://autoscaling")

    def _enter(self, name: str) -> None:
        node = self.nodes[name]
        if node.state != "InService":
            raise refusal("EnterStandby", "ValidationError", f"The instance {name} is not in InService.")
        node.state, node.ours, self.desired = "Standby", True, self.desired - 1

    def _exit(self, name: str) -> None:
        node = self.nodes[name]
        if node.state != "Standby":
            raise refusal("ExitStandby", "ValidationError", f"The instance {name} is not in Standby.")
        node.state, node.ours, self.desired = "InService", False, self.desired + 1

    def _reboot(self, name: str) -> None:
        node = self.nodes[name]
        node.back_at, node.ends_at, node.silent = self.minute + self.draw.choice([3, 5, 8]), None, False
        if not self.calm and self.draw.random() < 0.1:
            node.back_at = None
            self._silence(name)
            self.met["node never boots"] += 1

    # What must hold

    def check(self, outcome: Outcome, name: str) -> None:
        """Say what is broken by an act, before it is done."""
        view, node = self._view, self.nodes.get(name)
        finding = next(one for one in self._findings if one.instance_id == name)
        where = f"history {self.seed}, minute {self.minute}: {finding.outcome} of {name} ({finding.reason})"
        assert view.group is not None, f"{where}: the group was not read"
        assert view.wanted is not None, f"{where}: what the power function wants was not read"
        repair = finding.record.repair if finding.record else None
        assert repair is not None, where
        if finding.outcome is Outcome.RELEASE:
            assert view.wanted.stopped or view.surplus > 0, where
            return
        is_new = view.record.repair is None or view.record.repair.step is not repair.step
        if outcome in (Outcome.REBOOT, Outcome.REPLACE) and is_new:
            assert view.kept.get(name) == "", f"{where}: an operator keeps it, or whether one does was not read"
        if outcome is Outcome.REPLACE and is_new:
            assert not view.lacks, f"{where}: {view.lacks}"
        if repair.began not in self.began:
            self.began.append(repair.began)
        for one in self.began:
            inside = [other for other in self.began if one <= other < one + _POLICY.window]
            assert len(inside) <= _POLICY.max_repairs, f"{where}: the budget is exceeded"
        if node is not None and outcome in (Outcome.REBOOT, Outcome.REPLACE):
            assert node.was_broken, f"{where}: it is healthy"
        others = [
            one
            for one, other in self.nodes.items()
            if other.ours and one != name and other.state != "Terminating" and not self._is_held(one)
        ]
        assert not (outcome is Outcome.CORDON and others), f"{where}: {others} are under repair"

    def _is_held(self, name: str) -> bool:
        return self.store.groups[-1].held(name) is not None


def _fault(action: FaultAction, serial: str) -> ReportedFault:
    return ReportedFault("95", FaultKind.XID, action, "0000:53:00", 1, "It is broken", serial)
