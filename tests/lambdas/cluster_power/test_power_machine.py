"""What holds whatever happens, in any order, to a cluster of every kind of node group."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from cluster_common.errors import PartialFailureError
from cluster_common.reservations import Reservation
from cluster_power.state_store import UnreadableStateError
from cluster_power.windows import Phase, find_phase
from drawn_examples import examples
from fake_auto_scaling import FakeGroup
from fake_pcs import FakeComputeNodeGroup
from fake_reservations import FakeReservation
from fake_spot_fleets import FakeFleet
from power_scene import Scene

MINUTE = timedelta(minutes=1)
DOWN = 40 * MINUTE
FAILURES = (PartialFailureError, UnreadableStateError)
NAMES = ("extras", "fixed", "held", "kept", "pod", "slurm", "workers")
AUTO_SCALING = (
    "DescribeScalingActivities",
    "SetDesiredCapacity",
    "CreateOrUpdateTags",
    "PutItem",
    "GetItem",
    "Query",
)
EC2 = (
    *("DescribeCapacityReservations", "DescribeSpotFleetRequests", "DescribeSpotFleetInstances"),
    *("ModifySpotFleetRequest", "CreateTags", "ModifyCapacityReservation"),
)

PCS = ("GetComputeNodeGroup", "UpdateComputeNodeGroup", "ListTagsForResource", "TagResource")

names = st.sampled_from(NAMES)
actions = st.sampled_from(("start", "stop"))
faults = st.sampled_from(AUTO_SCALING + EC2 + PCS)


class PowerMachine(RuleBasedStateMachine):
    """A block of three hours that starts in a few minutes, reservations, a Spot Fleet, a plain group and two of AWS
    PCS.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scene = scene = Scene(
            counts={"extras": 4, "fixed": 3, "held": 3, "kept": 3, "pod": 8, "slurm": 8, "workers": 8}
        )
        scene.add_block(scene.add("pod"), starts=3 * MINUTE, lasts=180 * MINUTE)
        scene.add_reservation(scene.add("held"))
        scene.add_reservation(scene.add("kept"), release=False, ends=scene.now + 26 * 60 * MINUTE)
        scene.add_fleet("extras")
        scene.add_compute_node_group("fixed", scheduler_sized=False)
        scene.add_compute_node_group("slurm", needed=2)
        scene.add("workers")
        self.stopped: set[str] = set()
        self.orders = 0
        self.failed = False

    # What happens.

    @rule(minutes=st.sampled_from((1, 1, 1, 5, 30, 70)))
    def pass_time(self, minutes: int) -> None:
        self.tick(minutes)

    @rule(name=names, action=actions)
    def order(self, name: str, action: str) -> None:
        self.command(action, [name])

    @rule(action=actions)
    def order_all(self, action: str) -> None:
        self.command(action, list(NAMES))

    @rule(action=actions, breaking=st.lists(faults, max_size=3))
    def order_amid_faults(self, action: str, breaking: list[str]) -> None:
        """An order that was recorded is applied whatever fails on the way."""
        for operation in breaking:
            self.fail(operation)
        self.command(action, ["workers"])
        recorded = self.reason() == f"order {self.orders}"
        self.ticks(8)
        if recorded:
            assert self.group("workers").desired == (self.scene.counts["workers"] if action == "start" else 0)

    @rule(name=names, size=st.integers(0, 3), ticks=st.integers(1, 4))
    def operator_sizes(self, name: str, size: int, ticks: int) -> None:
        """A tick never fights an operator; the end of a block is stronger than anybody."""
        self.ticks(4)
        was, owner = self.phase(), self.owner(name)
        owner.desired = min(size, self.scene.counts[name])
        if isinstance(owner, FakeComputeNodeGroup) and owner.desired == owner.count:
            self.stopped.discard(name)
            return  # That is what a deployment does.
        if isinstance(owner, FakeFleet) and not owner.desired:
            owner.policy = "default"  # Whoever lets the nodes go with the target is an operator.
        chosen = owner.desired
        self.stopped.discard(name)
        self.ticks(ticks)
        if name != "pod" or (self.phase() is was and was is not Phase.OVER):
            assert owner.desired == chosen

    @rule(name=names, count=st.integers(1, 8))
    def deploy(self, name: str, count: int) -> None:
        """Deploy another count, and with it all that CloudFormation writes again."""
        self.scene.counts[name] = count
        found = self.owner(name)
        if isinstance(found, FakeFleet):
            found.deploy()
            return
        if isinstance(found, FakeComputeNodeGroup):
            found.deploy(count)
            return
        found.maximum = count
        found.desired = min(found.desired, count)
        if name == "held" and self.reservation("held").used <= count:
            self.reservation("held").bought = count

    @rule(price=st.integers(1, 3))
    def replace_fleet(self, price: int) -> None:
        """Deploy another price, for which CloudFormation makes another request."""
        old = self.owner("extras")
        assert isinstance(old, FakeFleet)
        self.scene.add_fleet("extras", id=f"sfr-{len(self.scene.ec2.fleets)}-{price}")
        old.state, old.alive = "cancelled_terminating", 0

    @rule(minutes=st.sampled_from((60, 600)))
    def extend(self, minutes: int) -> None:
        block = self.reservation("pod")
        if block.ends is not None and block.state in ("active", "scheduled"):
            block.ends += minutes * MINUTE

    @rule(state=st.sampled_from(("payment-failed", "cancelled", "a new state")))
    def lose_block(self, state: str) -> None:
        self.reservation("pod").state = state

    @rule(bought=st.integers(4, 8))
    def resize_block(self, bought: int) -> None:
        self.reservation("pod").bought = bought

    @rule(name=st.sampled_from(("extras", "held", "workers")), capacity=st.integers(0, 8))
    def change_capacity(self, name: str, capacity: int) -> None:
        holder: Any = self.reservation("held") if name == "held" else self.owner(name)
        holder.capacity = capacity

    @rule(
        protected=st.integers(0, 8),
        hooked=st.booleans(),
        terminating_suspended=st.none() | st.just("why"),
        others=st.lists(st.sampled_from(("Standby", "Terminating", "Detaching")), max_size=2),
    )
    def keep_nodes(self, **how: Any) -> None:
        """Something keeps nodes of the plain group alive whatever size it has."""
        for attribute, value in how.items():
            setattr(self.group("workers"), attribute, value)

    @rule(operation=faults)
    def fail(self, operation: str) -> None:
        self.failed = True
        self.scene.fail_next(operation, "Failure")

    # What holds.

    @invariant()
    def no_group_is_called_as_it_should_be_while_more_nodes_live(self) -> None:
        with contextlib.suppress(*FAILURES):
            groups = self.scene.order("status")
            assert not groups["slurm"]["missing"]  # Slurm launches its nodes.
            told = groups["workers"]
            assert told["decision"] != "keep" or self.group("workers").alive <= told["desired"]

    def teardown(self) -> None:
        self.scene.ec2.mend()
        self.scene.auto_scaling.mend()
        self.scene.ec2.pcs.mend()
        self.scene.dynamodb.mend()
        self.reservation("held").capacity = 1000  # What EC2 does not have is asked for again and again.
        self.ticks(24)
        self.check_that_a_tick_has_nothing_to_do()
        for name in self.stopped:
            owner = self.owner(name)
            assert owner.desired == 0, name
            assert owner.alive == 0 or name == "workers"
        if {"held"} <= self.stopped:
            assert self.reservation("held").bought == 1
        self.check_what_lives_on()
        self.check_the_end_of_the_block()
        self.check_that_problems_end()

    def check_that_a_tick_has_nothing_to_do(self) -> None:
        pcs = self.scene.ec2.pcs
        for fake in (self.scene.auto_scaling, self.scene.ec2, pcs, self.scene.dynamodb):
            fake.calls.clear()
        told = len(self.scene.sns.messages)
        self.scene.order()
        assert self.scene.auto_scaling.writes + self.scene.ec2.writes + self.scene.dynamodb.writes == []
        assert not {call.action for call in pcs.calls} & {"pcs:UpdateComputeNodeGroup", "pcs:TagResource"}
        assert len(self.scene.sns.messages) == told

    def check_what_lives_on(self) -> None:
        told, group = self.scene.order("status")["workers"], self.group("workers")
        given = self.scene.record(group).desired
        lowered = given is not None and given.sizes[0] == group.desired
        if group.alive > (told["wanted"] if lowered else group.desired):
            assert told["surplus"] > 0
            assert told["decision"] in {"surplus", "short", "held", "unclear", "blocked"}
            assert "still run" in told["reason"]

    def check_the_end_of_the_block(self) -> None:
        block = self.reservation("pod")
        assert block.ends is not None
        if block.state not in ("active", "scheduled") or self.scene.now >= block.ends - DOWN - 5 * MINUTE:
            return
        self.scene.now = block.ends - DOWN - 5 * MINUTE
        self.ticks(14)  # Until a minute before EC2 terminates what is left.
        assert self.owner("pod").alive == 0

    def check_that_problems_end(self) -> None:
        group = self.group("workers")
        group.capacity, group.protected, group.hooked = 100, 0, False
        group.terminating_suspended, group.others = None, []
        self.ticks(12)
        began, ended = "base-pod: nodes of workers are missing", "base-pod: no nodes of workers are missing any more"
        told = [subject for subject in self.scene.subjects() if subject in (began, ended)]
        # A message that could not be recorded is sent twice.
        assert self.failed or told == [began, ended] * (len(told) // 2)

    # How it is done.

    def tick(self, minutes: int = 1) -> None:
        """Let time pass, tick, and check what the function asked for."""
        self.scene.pass_time(minutes * MINUTE)
        before = len(self.scene.auto_scaling.requests)
        with contextlib.suppress(*FAILURES):
            self.scene.order()
        self.check_sizes(before)

    def ticks(self, number: int) -> None:
        for _ in range(number):
            self.tick()

    def command(self, action: str, node_groups: list[str]) -> None:
        before, self.orders = len(self.scene.auto_scaling.requests), self.orders + 1
        try:
            self.scene.order(action, node_groups=node_groups, by="ana", reason=f"order {self.orders}")
        except FAILURES:
            self.stopped.difference_update(node_groups)
        else:
            self.stopped = self.stopped | set(node_groups) if action == "stop" else self.stopped - set(node_groups)
        self.check_sizes(before)

    def check_sizes(self, before: int) -> None:
        """No node is asked for outside its block's window, or beyond its reservation."""
        for operation, parameters in self.scene.auto_scaling.requests[before:]:
            if operation == "SetDesiredCapacity" and parameters["AutoScalingGroupName"] == "pod-asg":
                assert not parameters["DesiredCapacity"] or self.phase() in (Phase.OPEN, Phase.CLOSING)
            if operation == "SetDesiredCapacity" and parameters["AutoScalingGroupName"] == "held-asg":
                assert parameters["DesiredCapacity"] <= self.reservation("held").bought

    def reason(self) -> str:
        if ("power#base-pod", "workers") not in self.scene.dynamodb.items:
            return ""
        return self.scene.record(self.group("workers")).reason

    def reservation(self, name: str) -> FakeReservation:
        return self.scene.ec2.reservations[f"cr-{name}"]

    def group(self, name: str) -> FakeGroup:
        return self.scene.auto_scaling.groups[f"{name}-asg"]

    def owner(self, name: str) -> FakeGroup | FakeFleet | FakeComputeNodeGroup:
        if name in self.scene.ec2.pcs.groups:
            return self.scene.ec2.pcs.groups[name]
        if name == "extras":
            return self.scene.ec2.fleets[self.scene.details["extras"]["owner"].id]
        return self.group(name)

    def phase(self) -> Phase:
        found = self.reservation("pod")
        seen = Reservation(
            id=found.id, state=found.state, instances=found.instances, starts=found.starts, ends=found.ends
        )
        return find_phase(seen, now=self.scene.now, ends_early=30 * MINUTE)


@pytest.mark.hypothesis
@pytest.mark.parametrize("count", [15, pytest.param(40, marks=pytest.mark.sweep)])
def test_power(count: int) -> None:
    run_state_machine_as_test(PowerMachine, settings=settings(examples(count), stateful_step_count=15))


@given(
    st.lists(
        st.one_of(
            st.just(("tick", 1)),
            st.tuples(st.sampled_from(("capacity", "die")), st.integers(0, 8)),
            st.tuples(st.just("fault"), st.sampled_from(AUTO_SCALING)),
        ),
        max_size=10,
    )
)
@examples(25)
def test_a_shortage_ends_no_node_and_ends_itself(happening: list[tuple[str, Any]]) -> None:
    scene = Scene()
    group = scene.add()
    for what, value in happening:
        if what == "capacity":
            group.capacity = value
        elif what == "die":
            group.in_service -= min(value, group.in_service)
        elif what == "fault":
            scene.fail_next(value, "InternalFailure")
        before = group.in_service
        with contextlib.suppress(*FAILURES):
            scene.minute()
        assert group.in_service >= before
    group.capacity = 8
    scene.auto_scaling.mend()
    scene.dynamodb.mend()
    scene.minute(40)

    assert group.in_service == 8


START = datetime(2026, 11, 2, tzinfo=UTC)
seconds = st.integers(min_value=-100_000, max_value=400_000).map(lambda number: timedelta(seconds=number))
ORDER = [Phase.BEFORE, Phase.OPEN, Phase.CLOSING, Phase.OVER]


@given(st.lists(seconds, min_size=2, max_size=6), seconds, st.integers(0, 90), st.integers(0, 90))
def test_the_phases_of_a_block_follow_each_other(
    moments: list[timedelta], lasts: timedelta, early: int, notice: int
) -> None:
    found = Reservation(id="cr-1", state="active", instances=8, starts=START, ends=START + lasts)

    phases = [
        find_phase(found, now=START + moment, ends_early=early * MINUTE, notice=notice * MINUTE)
        for moment in sorted(moments)
    ]

    assert phases == sorted(phases, key=ORDER.index)
