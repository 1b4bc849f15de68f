"""When nodes are idle: what is refused, what holds where nothing is said, and the function's settings."""

from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration

from cdk_training_cluster import IdlePolicy, IdleScope, IdleSignal, NodeGroup
from cdk_training_cluster.nodes import default_idle_policy
from cluster_contract.codec import encode
from cluster_contract.idle import Policy, Signal, SignalKind
from synthesis import new_stack

_HOST = IdleSignal.host().settings


def refusal(**settings: Any) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        IdlePolicy(**settings)
    return str(refused.value)


# Of each setting: what is just taken, and what is just refused; the kinds of settings have a table of their own.
_LIMITS: dict[str, tuple[list[Any], list[Any]]] = {
    "utilization_below_percent": ([0.1, 50], [0, -1, 50.1, "5", True]),
    "window": (
        [Duration.minutes(15), Duration.hours(12), Duration.seconds(1200)],
        [Duration.minutes(10), Duration.minutes(17), Duration.hours(13), 60],
    ),
    "warning": (
        [Duration.minutes(10), Duration.hours(11)],
        [Duration.minutes(9), Duration.minutes(661), Duration.millis(600_500), "30m"],
    ),
    "grace": ([Duration.minutes(0), Duration.hours(24)], [Duration.hours(25), 0]),
    "coverage": ([0.5, 1], [0.49, 1.1]),
    "scope": (list(IdleScope), ["node"]),
    "signals": ([()], ["network", [IdleSignal.session(), "network"]]),
    "max_stops": ([1], [0, 2.5]),
    "max_unknown_share": ([0.01, 1], [0, 1.01]),
    "dry_run": ([True], ["no"]),
    "host_activity": ([False], ["no"]),
    "is_off": ([True], [1]),
}


@pytest.mark.parametrize("setting", _LIMITS)
def test_a_setting_is_taken_up_to_its_limits_and_refused_beyond(setting: str) -> None:
    taken, refused = _LIMITS[setting]
    assert [getattr(IdlePolicy(**{setting: value}), setting) for value in taken] == taken
    assert [refusal(**{setting: value}).split(" must be ")[0] for value in refused] == [setting] * len(refused)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (
            "window",
            Duration.minutes(17),
            "must be from 15 minutes to 12 hours, in steps of 5 minutes, got 17 minutes",
        ),
        (
            "warning",
            Duration.millis(600_500),
            "must be from 10 minutes to 11 hours, in whole seconds, got 10 minutes 500 millis",
        ),
        ("max_stops", 0, "must be at least 1, got 0: to stop nothing, use dry_run or IdlePolicy.off()"),
    ],
)
def test_a_refusal_names_the_limits_and_what_to_do(setting: str, value: Any, message: str) -> None:
    assert refusal(**{setting: value}) == f"{setting} {message}"


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
    whole = IdlePolicy(window=Duration.minutes(30), signals=[IdleSignal.session()]).over(default_idle_policy())
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
    assert own.over(IdlePolicy.off().over(default_idle_policy())).to_contract().off is is_off


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
