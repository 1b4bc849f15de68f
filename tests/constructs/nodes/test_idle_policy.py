"""When nodes are idle: what is refused, what holds where nothing is said, and what the function is told."""

from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration

from cdk_training_cluster import IdlePolicy, IdleScope, IdleSignal, NodeGroup
from cdk_training_cluster.nodes import DEFAULT_IDLE_POLICY
from cluster_contract.codec import encode
from cluster_contract.idle import Policy, Signal, SignalKind
from synthesis import new_stack

_NAN = float("nan")
_HOST = IdleSignal.host().settings
_WINDOW = "window must be from 15 minutes to 12 hours, in steps of 5 minutes, got "
_WARNING = "warning must be from 10 minutes to 11 hours, in whole seconds, got "
_GRACE = "grace must be from 0 minutes to 1 day, in whole seconds, got "
_PERCENT = "utilization_below_percent must be above 0 and at most 50, got "


def refusal(**settings: Any) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        IdlePolicy(**settings)
    return str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("utilization_below_percent", 0, f"{_PERCENT}0"),
        ("utilization_below_percent", -1, f"{_PERCENT}-1"),
        ("utilization_below_percent", 50.1, f"{_PERCENT}50.1"),
        (
            "utilization_below_percent",
            "5",
            "utilization_below_percent must be a number above 0 and at most 50, got '5'",
        ),
        (
            "utilization_below_percent",
            _NAN,
            "utilization_below_percent must be a number above 0 and at most 50, got nan",
        ),
        (
            "utilization_below_percent",
            True,
            "utilization_below_percent must be a number above 0 and at most 50, got True",
        ),
        ("window", Duration.minutes(10), f"{_WINDOW}10 minutes"),
        ("window", Duration.minutes(17), f"{_WINDOW}17 minutes"),
        ("window", Duration.hours(13), f"{_WINDOW}13 hours"),
        ("window", 60, "window must be a Duration, such as Duration.minutes(60), got 60"),
        ("warning", Duration.minutes(9), f"{_WARNING}9 minutes"),
        ("warning", Duration.minutes(661), f"{_WARNING}11 hours 1 minute"),
        ("warning", Duration.millis(600_500), f"{_WARNING}10 minutes 500 millis"),
        ("warning", "30m", "warning must be a Duration, such as Duration.minutes(60), got '30m'"),
        ("grace", Duration.hours(25), f"{_GRACE}1 day 1 hour"),
        ("grace", 0, "grace must be a Duration, such as Duration.minutes(60), got 0"),
        ("coverage", 0.49, "coverage must be from 0.5 to 1, got 0.49"),
        ("coverage", 1.1, "coverage must be from 0.5 to 1, got 1.1"),
        ("coverage", "90 %", "coverage must be a number from 0.5 to 1, got '90 %'"),
        ("scope", "node", "scope must be IdleScope.GANG or IdleScope.NODE, got 'node'"),
        (
            "signals",
            "network",
            "signals must be a list of IdleSignal objects, such as [IdleSignal.network()], got 'network'",
        ),
        (
            "signals",
            [IdleSignal.session(), "network", 5],
            "signals must be a list of IdleSignal objects, such as [IdleSignal.network()], got 'network' in it\n"
            "signals must be a list of IdleSignal objects, such as [IdleSignal.network()], got 5 in it",
        ),
        (
            "max_stops",
            0,
            "max_stops must be at least 1, got 0: to stop nothing, use dry_run or IdlePolicy.off()",
        ),
        (
            "max_stops",
            2.5,
            "max_stops must be a whole number of at least 1, got 2.5: to stop nothing, use dry_run or "
            "IdlePolicy.off()",
        ),
        ("max_unknown_share", 0, "max_unknown_share must be above 0 and at most 1, got 0"),
        ("max_unknown_share", 1.01, "max_unknown_share must be above 0 and at most 1, got 1.01"),
        ("dry_run", "no", "dry_run must be True or False, got 'no'"),
        ("host_activity", "no", "host_activity must be True or False, got 'no'"),
        ("is_off", 1, "is_off must be True or False, got 1"),
    ],
)
def test_a_setting_beyond_its_limits_is_refused(setting: str, value: Any, message: str) -> None:
    assert refusal(**{setting: value}) == message


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("utilization_below_percent", 0.1),
        ("utilization_below_percent", 50),
        ("window", Duration.minutes(15)),
        ("window", Duration.hours(12)),
        ("window", Duration.seconds(1200)),
        ("warning", Duration.minutes(10)),
        ("warning", Duration.hours(11)),
        ("grace", Duration.minutes(0)),
        ("grace", Duration.hours(24)),
        ("coverage", 0.5),
        ("coverage", 1),
        ("max_stops", 1),
        ("max_unknown_share", 0.01),
        ("max_unknown_share", 1),
        ("signals", ()),
    ],
)
def test_what_just_fits_is_taken(setting: str, value: Any) -> None:
    assert getattr(IdlePolicy(**{setting: value}), setting) == value


def test_every_mistake_is_told_at_once() -> None:
    lines = refusal(
        utilization_below_percent=90, window=1, coverage=0, scope=None, max_unknown_share="half"
    ).splitlines()
    assert [line.split()[0] for line in lines] == [
        "utilization_below_percent",
        "window",
        "coverage",
        "max_unknown_share",
    ]


def test_what_is_known_at_deployment_only_is_not_checked() -> None:
    number = CfnParameter(new_stack(), "Number", type="Number").value_as_number
    policy = IdlePolicy(
        utilization_below_percent=number,
        coverage=number,
        max_unknown_share=number,
        max_stops=number,  # type: ignore[arg-type]  # CDK's numbers are floats
        window=Duration.seconds(number),
    )
    told = encode(policy.to_contract())
    assert told["window"] == told["below"] == number


def test_time_that_is_known_at_deployment_only_is_in_seconds() -> None:
    number = CfnParameter(new_stack(), "Number", type="Number").value_as_number
    assert refusal(warning=Duration.minutes(number)) == (
        "warning must be in seconds where it is known at deployment only, got minutes: use Duration.seconds()"
    )


def test_what_is_left_out_is_as_the_whole_says() -> None:
    whole = IdlePolicy(window=Duration.minutes(30), signals=[IdleSignal.session()]).over(DEFAULT_IDLE_POLICY)
    own = IdlePolicy(scope=IdleScope.NODE, signals=[]).over(whole)
    assert (own.window, own.scope, own.signals, own.coverage) == (whole.window, IdleScope.NODE, [], 0.9)


def test_the_default_is_that_of_the_function_and_looks_at_the_host() -> None:
    assert IdlePolicy().to_contract() == Policy(signals=_HOST)


@pytest.mark.parametrize(
    ("own", "signals"),
    [
        (IdlePolicy(signals=[IdleSignal.heartbeat()]), (*_HOST, Signal(kind=SignalKind.HEARTBEAT))),
        (IdlePolicy(signals=[IdleSignal.host(2, 4)]), IdleSignal.host(2, 4).settings),
        (IdlePolicy(host_activity=False), ()),
        (
            IdlePolicy(host_activity=False, signals=[IdleSignal.host(), IdleSignal.session()]),
            (Signal(kind=SignalKind.SESSION),),
        ),
    ],
)
def test_the_host_is_looked_at_unless_the_policy_says_otherwise(own: IdlePolicy, signals: tuple[Signal, ...]) -> None:
    assert own.to_contract().signals == signals


@pytest.mark.parametrize(
    ("own", "is_off"),
    [(IdlePolicy(window=Duration.hours(2)), True), (IdlePolicy(is_off=False), False), (IdlePolicy.off(), True)],
)
def test_only_a_part_that_says_so_is_on_though_the_whole_is_off(own: IdlePolicy, is_off: bool) -> None:
    assert own.over(IdlePolicy.off().over(DEFAULT_IDLE_POLICY)).to_contract().off is is_off


@pytest.mark.parametrize(("setting", "value"), [("max_stops", 5), ("max_unknown_share", 0.2)])
def test_what_holds_for_the_whole_is_refused_for_a_part(setting: str, value: Any) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        NodeGroup("lab", instance_types=["g5.xlarge"], count=1, idle_policy=IdlePolicy(**{setting: value}))
    assert str(refused.value) == (
        f"{setting} of idle_policy must be left out for a node group, got {value}: it holds for the whole cluster; "
        "give it to the cluster's idle_policy"
    )


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        NodeGroup("lab", instance_types=["g5.xlarge"], count=1, idle_policy="off")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "idle_policy must be an IdlePolicy, such as IdlePolicy(window=Duration.minutes(90)), got 'off'"
    )
