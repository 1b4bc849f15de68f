"""What `encode` writes `decode` reads, and nothing else."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_contract.codec import InvalidSettingsError, encode, variables
from cluster_contract.idle import (
    IdleFunctionSettings,
    IdleGroupSettings,
    IdleScope,
    Policy,
    PolicySettings,
    Signal,
    SignalKind,
)
from cluster_contract.owners import OwnerKind, OwnerSettings

NAME = "CLUSTER_IDLE_SETTINGS"
TEXT = st.text(min_size=1, max_size=5)
OWNERS = st.none() | st.builds(OwnerSettings, id=TEXT)
TIMES = st.integers(300, 86_400).map(lambda seconds: timedelta(seconds=seconds))
SIGNALS = st.builds(Signal, kind=st.sampled_from(SignalKind), below=st.floats(0, 1e9), metric=st.just("") | TEXT)
POLICIES = st.builds(
    PolicySettings,
    below=st.floats(0, 50),
    window=TIMES,
    coverage=st.floats(0.5, 1),
    scope=st.sampled_from(IdleScope),
    signals=st.lists(st.integers(0, 1), max_size=2).map(tuple),
    off=st.booleans(),
)
SETTINGS = st.builds(
    IdleFunctionSettings,
    cluster=TEXT,
    signals=st.lists(SIGNALS, min_size=2, max_size=3).map(tuple),
    policies=st.lists(POLICIES, min_size=1, max_size=2).map(tuple),
    groups=st.dictionaries(TEXT, st.builds(IdleGroupSettings, owner=OWNERS, release=st.booleans())),
    max_stops=st.integers(1, 500),
    tick=TIMES,
    prices=st.dictionaries(TEXT, st.floats(0.1, 99)),
    gpus=st.dictionaries(TEXT, st.integers(1, 16)),
    topic_arn=st.just("") | TEXT,
    power_function=st.just("") | TEXT,
)


def read(raw: object) -> IdleFunctionSettings:
    return IdleFunctionSettings.from_environment({NAME: raw if isinstance(raw, str) else json.dumps(raw)})


@given(SETTINGS)
def test_settings_are_read_as_they_were_written(settings: IdleFunctionSettings) -> None:
    environment = {NAME: json.dumps(encode(settings)), **variables(settings)}

    assert IdleFunctionSettings.from_environment(environment) == settings


def test_what_is_usual_is_not_written_and_a_whole_number_has_no_fraction() -> None:
    lab = Policy(window=timedelta(hours=2), signals=(Signal(kind=SignalKind.CPU, below=2.0),))
    settings = IdleFunctionSettings(
        cluster="pod",
        signals=lab.signals,
        policies=(PolicySettings(), PolicySettings.of(lab, lab.signals)),
        groups={"lab": IdleGroupSettings(policy=1), "workers": IdleGroupSettings()},
    )

    assert (encode(settings), variables(settings)) == (
        {
            "cluster": "pod",
            "signals": [{"kind": "cpu", "below": 2}],
            "policies": [{}, {"window": 7200, "signals": [0]}],
            "groups": {"lab": {"policy": 1}, "workers": {}},
        },
        {},
    )
    assert (settings.policy_of("lab"), settings.policy_of("workers"), settings.policy_of("")) == (
        lab,
        Policy(),
        Policy(),
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("", "the environment variable CLUSTER_IDLE_SETTINGS is missing"),
        (
            "{",
            "the environment variable CLUSTER_IDLE_SETTINGS is not JSON: Expecting property name enclosed in double "
            "quotes: line 1 column 2 (char 1)",
        ),
        ([], f"{NAME}: the object must be an object, got []"),
        (
            {"polici": 1},
            f"{NAME}: the object takes cluster, gpus, groups, max_stops, max_unknown_share, namespace, "
            "policies, preloads, prices, signals, tag, tick, got no cluster, polici",
        ),
        ({"cluster": 7}, f"{NAME}: cluster must be text, got 7"),
        ({"cluster": ""}, f"{NAME}: cluster must be text, got ''"),
        (
            {"topic_arn": "arn"},
            f"{NAME}: the object takes cluster, gpus, groups, max_stops, max_unknown_share, "
            "namespace, policies, preloads, prices, signals, tag, tick, got no cluster, topic_arn",
        ),
    ],
)
def test_what_is_no_such_object_is_refused(raw: object, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        read(raw)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tick": 0}, "tick must be above 0, got 0"),
        ({"tick": True}, "tick must be a number, got True"),
        ({"tick": float("nan")}, "tick must be a number, got nan"),
        ({"tag": None}, "tag must be text, got None"),
        ({"groups": []}, "groups must be an object, got []"),
        ({"groups": {"pod": 8}}, "groups['pod'] must be an object, got 8"),
        ({"groups": {"pod": {"fleet": "sfr-1"}}}, "groups['pod'] takes owner, policy, release, got fleet"),
        ({"groups": {"pod": {"owner": "rack 1"}}},
         f"groups['pod'].owner must be one of {', '.join(OwnerKind)} and its name or id, got 'rack 1'"),
        ({"groups": {"pod": {"owner": "spot_fleet"}}},
         f"groups['pod'].owner must be one of {', '.join(OwnerKind)} and its name or id, got 'spot_fleet'"),
        ({"groups": {"pod": {"release": 1}}}, "groups['pod'].release must be true or false, got 1"),
        ({"groups": {"pod": {"policy": 1}}}, "groups['pod'].policy must be one of 1, got 1"),
        ({"groups": {"pod": {"policy": -1}}}, "groups['pod'].policy must be at least 0, got -1"),
        ({"policies": {}}, "policies must be a list, got {}"),
        ({"policies": [{"window": 299}]}, "policies[0].window must be at least 300, got 299"),
        ({"policies": [{"coverage": 1.1}]}, "policies[0].coverage must be above 0 and at most 1, got 1.1"),
        ({"policies": [{"scope": "rack"}]}, "policies[0].scope must be one of gang, node, got 'rack'"),
        ({"policies": [{"signals": [0]}]}, "policies[0].signals must be one of 0, got 0"),
        ({"policies": [{"signals": [-1]}]}, "policies[0].signals[0] must be at least 0, got -1"),
        ({"signals": [{"below": 1}]},
         "signals[0] takes below, kind, metric, namespace, statistic, got no kind"),
        ({"prices": {"p5.48xlarge": 0}}, "prices['p5.48xlarge'] must be above 0, got 0"),
        ({"gpus": {"p9.48xlarge": 0.5}}, "gpus['p9.48xlarge'] must be a whole number, got 0.5"),
        ({"max_stops": 0}, "max_stops must be at least 1, got 0"),
        ({"max_unknown_share": 0}, "max_unknown_share must be above 0 and at most 1, got 0"),
    ],
)  # fmt: skip
def test_what_is_never_written_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        read({"cluster": "pod", **given})

    assert str(refused.value) == f"{NAME}: {message}"
