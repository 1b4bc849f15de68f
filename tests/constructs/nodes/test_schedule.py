"""When nodes run: what a schedule says of itself, what is refused, and what the power function gets."""

from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_sns as sns

from cdk_training_cluster import Capacity, IdlePolicy, IdleScope, NodeGroup, Schedule, ScheduleEnd, TrainingCluster
from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cdk_training_cluster.nodes.rules import SCHEDULE_RULES
from cluster_contract.power import PowerFunctionSettings
from node_group_cases import RESERVED
from synthesis import ZONE, new_stack, only, resources

OFFICE = "weekdays 08:00-20:00 Europe/Berlin"
WRONG = {
    "an unknown time zone": (
        {"windows": ["daily 08:00-09:00 berlin"]},
        "windows: a time zone must be an IANA name, got berlin: write Europe/Berlin",
    ),
    "one that is nothing like a name": (
        {"windows": ["daily 08:00-09:00 X"]},
        "windows: a time zone must be an IANA name, got X: write a name such as Europe/Berlin, America/New_York or "
        "UTC",
    ),
    "windows that overlap": (
        {"windows": [OFFICE, "mon 20:00-21:00 Europe/London"]},
        None,
    ),
    "windows that overlap through their time zones": (
        {"windows": [OFFICE, "mon 18:00-21:00 Europe/London"]},
        f"windows must not overlap, got {OFFICE} and mon 18:00-21:00 Europe/London, both open on Monday 19:00: join "
        "them",
    ),
    "no end": (
        {"windows": ["weekdays 00:00-24:00 UTC", "weekends 00:00-24:00 UTC"]},
        "windows must leave a gap at least every 7 days, got weekdays 00:00-24:00 UTC and weekends 00:00-24:00 UTC: "
        "leave the schedule out for a group that always runs",
    ),
    "an end that is too far": (
        {"windows": ["0 8 1 * * to 0 8 20 * * UTC"]},
        "windows must end within 7 days of their start, got 0 8 1 * * to 0 8 20 * * UTC, whose start on Saturday, 01 "
        "January, at 08:00 no end follows",
    ),
    "a start within the window": (
        {"windows": ["0 8,9 * * * to 0 20 * * * UTC"]},
        "windows must end before they start again, got 0 8,9 * * * to 0 20 * * * UTC, which starts again on "
        "Saturday, 01 January, at 09:00: write two windows, or fewer starts",
    ),
    "no start": (
        {"windows": ["0 8 31 2 * to 0 9 * * * UTC"]},
        "windows must start at least once a year, got 0 8 31 2 * to 0 9 * * * UTC, which never starts",
    ),
    "no start in most years": (
        {"windows": ["0 8 29 2 * to 0 9 * * * UTC"]},
        "windows must start at least once a year, got 0 8 29 2 * to 0 9 * * * UTC, which starts in leap years only",
    ),
    "days that do not exist": (
        {"windows": [OFFICE], "holidays": ["2027-02-29", "2027-01-01"]},
        "holidays must be dates such as 2026-12-25, got '2027-02-29'",
    ),
    "a short warning": (
        {"windows": [OFFICE], "warning": Duration.minutes(1)},
        "warning must be from 5 minutes to 4 hours, in whole seconds, got 1 minute",
    ),
    # A time that daylight saving time skips or repeats is none.
    "a time that is skipped and repeated": ({"windows": ["daily 02:30-03:00 Europe/Berlin"]}, None),
    "no window": ({"windows": []}, None),
}


@pytest.mark.parametrize(("given", "refusal"), WRONG.values(), ids=WRONG)
def test_a_schedule_that_is_wrong_is_refused(given: dict[str, Any], refusal: str | None) -> None:
    if refusal is None:
        Schedule(**given)
        return
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        Schedule(**given)
    assert str(refused.value) == refusal


@pytest.mark.parametrize(
    ("windows", "hours"),
    [([OFFICE], 260), (["weekends 00:00-24:00 UTC"], 210), (["daily 20:00-06:00 UTC", "sun 06:00-20:00 UTC"], 365)],
)
def test_hours_of_a_month(windows: list[str], hours: int) -> None:
    assert Schedule(windows).hours_a_month == pytest.approx(hours, abs=2)


def group(name: str = "lab", **settings: Any) -> NodeGroup:
    return NodeGroup(name, instance_types=["p5.48xlarge"], count=2, **settings)


RULES = {
    "scheduleBlock": (
        group(capacity=Capacity.capacity_block(RESERVED)),
        "node group 'lab': schedule must be left out for Capacity.capacity_block(), whose nodes run while the block "
        "does, and which is paid for in advance; where the cluster has a schedule, give the group Schedule([])",
    ),
    "scheduleIdle": (
        group(schedule=Schedule([OFFICE], end=ScheduleEnd.IDLE), idle_policy=IdlePolicy(dry_run=True)),
        "node group 'lab': end of schedule must be ScheduleEnd.STOP where idle nodes are not stopped, got "
        "ScheduleEnd.IDLE: nothing would stop the nodes; let the idle function stop them, or end with the window",
    ),
    "scheduleScope": (
        group(schedule=Schedule([OFFICE], end=ScheduleEnd.IDLE), idle_policy=IdlePolicy(scope=IdleScope.NODE)),
        "node group 'lab': end of schedule must be ScheduleEnd.STOP with scope of idle_policy IdleScope.NODE, got "
        "ScheduleEnd.IDLE: the next window does not start single nodes that the idle function has terminated; end "
        "with the window, or give the group the scope IdleScope.GANG",
    ),
}


def cluster(*groups: NodeGroup) -> TrainingCluster:
    return TrainingCluster(
        new_stack(), "Cluster", availability_zone=ZONE, node_groups=groups, schedule=Schedule([OFFICE])
    )


@pytest.mark.parametrize("rule", RULES)
def test_what_no_schedule_can_do_is_refused(rule: str) -> None:
    made, refusal = RULES[rule]
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        cluster(made)
    assert str(refused.value) == refusal


def test_each_rule_has_its_case() -> None:
    assert [rule.id for rule in SCHEDULE_RULES] == list(RULES)


def test_groups_share_schedules_and_may_have_none() -> None:
    own = Schedule(["daily 20:00-06:00 UTC"], holidays=["2026-12-25"], end=ScheduleEnd.IDLE)
    made = cluster(group("a"), group("b", schedule=own), group("c", schedule=Schedule([])), group("d"))

    functions = resources(Stack.of(made), "AWS::Lambda::Function").values()
    written = [each["Properties"]["Environment"]["Variables"].get("CLUSTER_POWER_SETTINGS") for each in functions]
    settings = PowerFunctionSettings.from_environment({"CLUSTER_POWER_SETTINGS": next(filter(None, written))})

    assert settings.schedules == (Schedule([OFFICE]).settings, own.settings)
    assert {name: each.schedule for name, each in settings.groups.items()} == {"a": 0, "b": 1, "c": None, "d": 0}
    assert list(made.power.describe()) == [
        f"Schedule of a: {OFFICE}; open about 260 hours a month",
        "Schedule of b: daily 20:00-06:00 UTC, then until it is idle, but not on 2026-12-25; open about 304 hours a "
        "month",
        f"Schedule of d: {OFFICE}; open about 260 hours a month",
    ]


def test_fifty_groups_with_a_schedule_fit_into_the_environment() -> None:
    groups = {f"node-group-{number}": PowerGroup(count=16, schedule=Schedule([OFFICE])) for number in range(50)}
    stack = new_stack()

    ClusterPower(stack, "Power", cluster_name="pod", groups=groups, alert_topic=sns.Topic(stack, "Alerts"))

    written = only(stack, "AWS::Lambda::Function")["Properties"]["Environment"]["Variables"]["CLUSTER_POWER_SETTINGS"]
    assert len(written) < 3072
