"""What holds for every cluster, whatever its nodes report: both promises, and equal answers to equal questions."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cluster_contract.idle import PERIOD, IdleScope, Policy
from cluster_idle.decisions import decide
from cluster_idle.evidence import NodeReadings, Series, weigh
from cluster_idle.instances import Instance
from cluster_idle.verdicts import Decisions, IdleVerdict, Unit
from drawn_examples import examples
from idle_scene import IdleScene
from idle_strategies import NOW, TICK, Drawn, clusters, policies, series

_ACTIONS = (IdleVerdict.STOP, IdleVerdict.WARN)
_NAMED = frozenset(IdleVerdict) - {IdleVerdict.BUSY, IdleVerdict.UNKNOWN}


def is_proven_idle(one: Series, policy: Policy, now: datetime) -> bool:
    """Say by the words of the promise, and not by the code, whether a node is idle."""
    end = datetime.fromtimestamp(now.timestamp() // 300 * 300, tz=now.tzinfo)
    past = [(when, value) for when, value in one.points if when <= now]
    window = [(when, value) for when, value in past if when >= end - policy.window]
    return (
        one.status == "Complete"
        and bool(past)
        and now - max(when for when, _ in past) <= 2 * PERIOD
        and all(0 <= value < policy.below for _, value in window)
        and len({when for when, _ in window if when < end}) >= policy.coverage * (policy.window / PERIOD)
    )


def is_idle_newcomer(instance: Instance, unit: Unit, drawn: Drawn) -> bool:
    """Say whether a node came lately into a group most of which is proven idle, and did nothing in all its life."""
    policy, points = drawn.context.policy(instance), drawn.series[instance.id].points
    proven = [one for one in unit.instances if is_proven_idle(drawn.series[one.id], policy, NOW)]
    age = NOW - instance.launched
    return (
        unit.name != instance.id
        and 2 * len(proven) > len(unit.instances)
        and policy.grace + timedelta(minutes=15) <= age < policy.grace + policy.window
        and all(0 <= value < policy.below for when, value in points if when <= NOW)
        and len(points) >= policy.coverage * ((age - timedelta(minutes=25)) // PERIOD)
    )


def acted_on(decisions: Decisions) -> list[Unit]:
    return [*decisions.stop, *decisions.warn]


@given(series(), policies())
def test_a_node_is_idle_only_if_every_part_of_the_promise_holds(one: Series, policy: Policy) -> None:
    found = weigh(NodeReadings(utilization=one), policy, NOW, TICK)
    future_work = any(when > NOW and not 0 <= value < policy.below for when, value in one.points)

    assert (found.state == "idle") == (is_proven_idle(one, policy, NOW) and not future_work)
    if found.idle_since is not None:
        assert found.idle_since <= NOW - policy.window
        assert all(0 <= value < policy.below for when, value in one.points if when >= found.idle_since)


@given(clusters())
@examples(100)
def test_nothing_that_may_work_is_warned_of_or_stopped(drawn: Drawn) -> None:
    context = drawn.context
    for unit in acted_on(decide(drawn.instances, context)):
        for instance in _together(unit, drawn):
            if instance.owner.is_foreign and instance.id not in unit.ids:
                continue
            policy = context.policy(instance)
            proven = is_proven_idle(drawn.series[instance.id], policy, NOW)
            assert proven or is_idle_newcomer(instance, unit, drawn), instance
            assert instance.running
            assert not policy.off
            assert NOW - instance.launched >= policy.grace
            assert instance.keep_tags.kept(NOW) is None


@given(clusters())
@examples(100)
def test_nothing_is_stopped_that_was_not_warned_of_in_time(drawn: Drawn) -> None:
    context = drawn.context
    for unit in decide(drawn.instances, context).stop:
        for instance in unit.instances:
            sent = context.warnings[unit.name]
            assert sent.idle_until is not None
            assert sent.stop_at <= NOW
            assert sent.idle_until <= NOW
            assert instance.owner.key in sent.owners
            assert instance.launched <= sent.idle_until or is_idle_newcomer(instance, unit, drawn)
            worked = [
                when
                for when, value in drawn.series[instance.id].points
                if not 0 <= value < context.policy(instance).below
            ]
            assert all(when < sent.idle_until for when in worked)


@given(clusters())
@examples(100)
def test_no_idle_node_goes_unnoticed(drawn: Drawn) -> None:
    decisions = decide(drawn.instances, drawn.context)
    handled = {one for unit in acted_on(decisions) for one in unit.ids}

    assert [finding.instance for finding in decisions.findings] == sorted(drawn.instances, key=lambda one: one.id)
    for finding in decisions.findings:
        assert finding.reason.startswith(finding.instance.id)
        if finding.is_idle and finding.verdict not in _NAMED:
            assert finding.for_others or "could not be read" in finding.reason or "not seen" in finding.reason
        if finding.verdict is IdleVerdict.STOP or (
            finding.verdict is IdleVerdict.WARN and "are warned" in finding.reason
        ):
            assert finding.instance.id in handled
        assert (finding.verdict in _ACTIONS) or finding.instance.id not in handled


@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_changes_nothing(drawn: Drawn, random: st.DataObject) -> None:
    shuffled = list(drawn.instances)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random

    assert decide(shuffled, drawn.context) == decide(drawn.instances, drawn.context)


@given(clusters())
def test_the_limits_of_a_run_hold(drawn: Drawn) -> None:
    decisions = decide(drawn.instances, drawn.context)
    nodes = sum(len(unit.ids) for unit in decisions.stop)

    assert nodes <= drawn.context.settings.max_stops or len(decisions.stop) == 1
    if decisions.breaker:
        assert not acted_on(decisions)
        assert not {finding.verdict for finding in decisions.findings} & set(_ACTIONS)


@given(clusters())
def test_what_belongs_to_others_or_saves_nothing_is_left_alone(drawn: Drawn) -> None:
    for unit in acted_on(decide(drawn.instances, drawn.context)):
        for instance in unit.instances:
            assert not instance.owner.is_foreign
            if instance.owner.is_instance:
                assert instance.reserved is None
                assert instance.ebs_root
                assert instance.spot_request is None or drawn.context.spot_requests[instance.spot_request] == ""


_LOADS = st.lists(st.sampled_from([0.0, 0.0, 0.0, 60.0, None]), min_size=1, max_size=8)


@given(alone=st.lists(_LOADS, min_size=1, max_size=3), gang=st.lists(_LOADS, min_size=1, max_size=3))
@examples(15)
def test_in_a_whole_life_no_node_is_stopped_within_an_hour_of_its_work(
    alone: list[list[float | None]], gang: list[list[float | None]]
) -> None:
    scene = IdleScene()
    plans = [(scene.add(), plan) for plan in alone] + list(zip(scene.add_group(count=len(gang)), gang, strict=True))
    for number in range(60):
        for node, plan in plans:
            node.load = plan[number // 8 % len(plan)] if node.state == "running" else None
        running = [node for node, _ in plans if node.state == "running"]
        scene.tick()
        for node in running:
            if node.state != "running":
                recent = {
                    when: value for when, value in node.points.items() if when > scene.now - timedelta(minutes=65)
                }
                assert max(recent.values()) < 5
                assert len(recent) >= 11
        members = [node for node, _ in plans[len(alone) :]]
        assert len({node.state == "running" for node in members}) == 1


def _together(unit: Unit, drawn: Drawn) -> Iterable[Instance]:
    """Return every instance that works with those of a unit: of its group, where it is one."""
    context = drawn.context
    whole = context.policy(unit.instances[0]).scope is IdleScope.GANG
    return [one for one in drawn.instances if one.id in unit.ids or (whole and context.unit(one) == unit.name)]
