"""Histories of a node group in which nodes break, calls fail, reports get lost and operators act: drawn by a number.

The decisions, the records and the executor are the functions' own, and so is the power function's decision; the Auto
Scaling group, the state table and the nodes are in memory, as small as 100,000 histories need.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import ConnectTimeoutError

from cluster_common.failures import Failures
from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.power_records import Desired, GroupState, Order, Record, State
from cluster_contract.faults import FaultAction
from cluster_contract.health import ReportKind
from cluster_contract.health_settings import HealthFunctionSettings, HealthPolicySettings
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_health.decisions import decide
from cluster_health.executor import HealthExecutor
from cluster_health.node_records import NodeRecord
from cluster_health.outcomes import Context, Finding, GroupView, Outcome, PlannedSize
from cluster_power import decisions as power_decisions
from cluster_power.context import Context as PowerContext
from cluster_power.groups import Group
from cluster_power.shortages import settle
from cluster_power.verdicts import Verdict
from drawn_group import ASG, CLUSTER, NAME, START, DrawnGroup, fault_of
from fake_service import refusal
from health_memory import Truth

_MINUTE = timedelta(minutes=1)
_LOGGER = Logger(service="histories", level=logging.CRITICAL)
_POLICY = HealthPolicySettings(act=True, max_repairs=2, window=60 * _MINUTE, drain_timeout=5 * _MINUTE)
_ANSWERS = (*["yes"] * 12, "busy", "refused", "lost", "crash", "unrecorded", "crash")
_PARTS = (*[""] * 20, "group", "wanted", "kept")

_REST = 5
"""How many minutes a function need not run that has just run, and around which nothing has changed since."""

_STIR = 4
"""How many minutes pass at most between two disturbances."""


class LambdaTimeoutError(Exception):
    """Lambda ends the function."""


@dataclass
class History(DrawnGroup):
    """One history of a node group, and the functions that act on it.

    Attributes:
        began: When the repairs began.
        quiet: In how many turns nothing has changed.
    """

    began: list[datetime] = field(default_factory=list)
    quiet: int = 0

    def __post_init__(self) -> None:
        """Begin with all nodes in service, after an operator's start."""
        super().__post_init__()
        order = Order(state=State.RUNNING, by="ana", reason="start", since=START)
        own = Record(size=self.count, since=START)
        self.power = GroupState(order=order, owners={ASG: own})
        self._settings = PowerFunctionSettings(cluster=CLUSTER, groups={NAME: PowerGroupSettings(count=self.count)})
        self._answer = "yes"
        self.settled: GroupState | None = None
        self._idle: dict[str, tuple[object, int]] = {}
        self._failed = False

    def run(self, minutes: int) -> None:
        """Let minutes pass."""
        end, state = self.minute + minutes, self._state()
        while self.minute < end:
            self.minute += min(self._pause(), end - self.minute)
            if not self.calm:
                self._disturb()
            self.work()
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
                self.verify(name, node)
        self.run(5 * 60)
        where = f"history {self.seed}: {self.desired} {self.nodes} {self.store.groups[-1]} {self.power}"
        if not self.operated:
            assert (self.desired, len(self.nodes)) == (self.count, self.count), where
            assert all(node.state == "InService" for node in self.nodes.values()), where
            assert self.settled is self.power, where
        elif self.power.order is not None and self.power.order.state is State.STOPPED and not self.desired:
            assert not any(node.ours for node in self.nodes.values()), where

    def _deliver(self) -> None:
        due = [report for at, report in self.inbox if at <= self.minute]
        self.inbox = [one for one in self.inbox if one[0] > self.minute]
        for report in due:
            if report.instance_id in self.nodes:
                self.store.change_node(report.instance_id, NAME, partial(NodeRecord.with_report, report=report))
                if self.draw.random() < 0.7:
                    self.health_tick()

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
            yield 0.02, "node is silent", lambda: self.silence(name)
            harmless = self.draw.choice([FaultAction.OBSERVE, FaultAction.APPLICATION])
            yield (
                0.02,
                "harmless fault",
                lambda: self.say(name, ReportKind.FAULT, faults=(fault_of(harmless, node.serial),)),
            )
            yield 0.01, "verification without checks", lambda: self.say(name, ReportKind.VERIFIED)
        yield 0.02, "node recovers", lambda: self.recover(name)
        given = self.power.owners[ASG].desired
        if node.state != "Standby" or (given is not None and name in given.standby):
            # The place of a node that an operator takes from Auto Scaling before the power function has seen it in
            # Standby is the operator's to give.
            yield 0.08 if given else 0.01, "node vanishes", lambda: setattr(node, "state", "Terminating")
        if node.state == "Standby":
            yield 0.08, "EC2 terminates a node in Standby", lambda: self.kill(node)
        yield 0.03, "operator keeps a node", lambda: setattr(node, "kept", not node.kept)
        capacity = self.draw.choice([self.count - 1, self.count, 100])
        yield 0.02, "capacity changes", lambda: setattr(self, "capacity", capacity)
        yield 0.01, "operator resizes", lambda: self.operate(name)
        yield 0.02, "operator orders", lambda: self._order(self.draw.choice([State.STOPPED, State.RUNNING]))
        yield 0.03, "mount fails or answers", lambda: setattr(node, "fit", not node.fit)

    def _order(self, state: State) -> None:
        self.operated |= state is State.STOPPED
        order = Order(state=state, by="ana", reason="because", since=self.now)
        self.power = self.power.with_order(order)

    # The functions

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
        orders = {NAME: cast("Order", self.power.order)}
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
            self.power = self.power.with_changes(ASG, changes)
        elif self._is_whole():
            self.settled = self.power

    def _is_whole(self) -> bool:
        """Whether all nodes are in service: then what the power function has settled stays so."""
        whole = self.desired == len(self.nodes) == self.count
        return whole and all(node.state == "InService" for node in self.nodes.values())

    def view(self) -> GroupView:
        """Return what the health function can read; a part of it may not be readable."""
        own = self.power.owners[ASG]
        stopped = self.power.order is not None and self.power.order.state is State.STOPPED
        standby = frozenset(own.desired.standby if own.desired else ())
        aside = sum(node.state == "Standby" for node in self.nodes.values())
        goal = own.desired.goal if own.desired else min(own.size or 0, self.desired + aside)
        wanted = (
            PlannedSize(size=own.size, stopped=stopped, standby=standby, goal=goal) if own.size is not None else None
        )
        unreadable = "" if self.calm else self.draw.choice(_PARTS)
        if unreadable:
            self.met[f"{unreadable} not read"] += 1
            self._failed = True
        kept = {one: "has the tag keep" if node.kept else "" for one, node in self.nodes.items()}
        return GroupView(
            name=NAME,
            traits=AUTO_SCALING_GROUP,
            group=None if unreadable == "group" else self.describe(),
            record=self.store.groups[-1],
            nodes=dict(self.store.nodes),
            wanted=None if unreadable == "wanted" else wanted,
            kept={} if unreadable == "kept" else kept,
            terminated=frozenset(one for one, node in self.nodes.items() if node.dead and unreadable != "kept"),
        )

    def health_tick(self) -> None:
        """Let the health function tick; another run may begin before it writes."""
        store = self.store
        is_broken = any(one.faulty_since or one.down_since for one in store.nodes.values())
        if not (is_broken or store.bad_serials or store.groups[-1].unfinished):
            return
        view = self.view()
        seen = self.store.seen = len(self.store.groups)
        context = Context(
            policy=_POLICY, now=self.now, region="us-east-1", bad_serials=self.store.bad_serials, statuses_read=True
        )
        findings = decide(view, context)
        self.met.update(f"decided: {one.outcome}" for one in findings)
        if not self.calm and findings and self.draw.random() < 0.05:
            self.met["two runs at once"] += 1
            self._execute(view, findings)
            self.store.seen = seen
        self._execute(view, findings)

    def _execute(self, view: GroupView, findings: list[Finding]) -> None:
        settings = HealthFunctionSettings(cluster=CLUSTER, policy=_POLICY)
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

    def cordon(self, group: OwnedGroup, name: str) -> None:
        """Put a node into Standby, unless it is there."""
        if name not in group.standby_ids:
            self._ask(Outcome.CORDON, name, self.enter)

    def uncordon(self, _group: OwnedGroup, name: str) -> None:
        """Put a node back into service."""
        self._ask(Outcome.RETURN, name, self.exit)

    def reboot(self, _group: OwnedGroup, name: str) -> None:
        """Reboot a node."""
        self._ask(Outcome.REBOOT, name, self.boot_again)

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
