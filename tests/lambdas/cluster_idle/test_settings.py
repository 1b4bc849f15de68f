import json
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import InvalidSettingsError
from cluster_idle.policy import Policy, Scope, Signal, SignalKind
from cluster_idle.settings import GroupSettings, Settings

POLICY = {
    "below": 5,
    "window": 3600,
    "coverage": 0.9,
    "grace": 1800,
    "warning": 1800,
    "scope": "gang",
    "signals": [],
    "dry_run": False,
    "off": False,
    "most_stops": 100,
    "blind_share": 0.5,
}


def read(**settings: Any) -> Settings:
    text = json.dumps({"cluster": "base-pod", "tick": 300, "policy": POLICY, "groups": {}, **settings})
    return Settings.from_environment({"CLUSTER_IDLE_SETTINGS": text})


def read_policy(**changed: Any) -> Policy:
    return read(policy={**POLICY, **changed}).policy


def test_settings_come_from_the_environment() -> None:
    text = json.dumps({"cluster": "base-pod", "tick": 300, "policy": POLICY, "groups": {"workers": {}}})

    settings = Settings.from_environment(
        {
            "CLUSTER_IDLE_SETTINGS": text,
            "ALERT_TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:alerts",
            "POWER_FUNCTION": "base-pod-power",
            "AWS_REGION": "us-east-1",
        }
    )

    assert settings == Settings(
        cluster="base-pod",
        policy=Policy(),
        groups={"workers": GroupSettings(policy=Policy())},
        tag="cdk-training-cluster:cluster",
        namespace="CdkTrainingCluster",
        tick=timedelta(minutes=5),
        region="us-east-1",
        topic_arn="arn:aws:sns:us-east-1:111122223333:alerts",
        power_function="base-pod-power",
    )


def test_what_is_not_the_usual_comes_from_the_environment_too() -> None:
    settings = read(
        tag="team",
        namespace="Llama",
        tick=600,
        prices={"p5.48xlarge": 40, "trn2.48xlarge": 45.5},
        gpus={"p9.48xlarge": 8},
    )

    assert (settings.tag, settings.namespace, settings.tick) == ("team", "Llama", timedelta(minutes=10))
    assert settings.prices == {"p5.48xlarge": 40, "trn2.48xlarge": 45.5}
    assert settings.gpus == {"p9.48xlarge": 8}


@pytest.mark.parametrize("environment", [{}, {"ALERT_TOPIC_ARN": "", "POWER_FUNCTION": "", "AWS_REGION": ""}])
def test_a_topic_and_a_power_function_are_a_choice(environment: dict[str, str]) -> None:
    settings = Settings.from_environment({"CLUSTER_IDLE_SETTINGS": '{"cluster":"a"}'} | environment)

    assert (settings.topic_arn, settings.power_function, settings.region) == (None, None, "")
    assert (settings.policy, settings.groups, settings.prices) == (Policy(), {}, {})


def test_the_whole_policy_is_read() -> None:
    assert read_policy(
        below=10.5,
        window=7200,
        coverage=1,
        grace=0,
        warning=600,
        scope="node",
        dry_run=True,
        off=True,
        most_stops=7,
        blind_share=0.25,
        signals=[
            ["network", 1048576],
            ["gpu_memory", 2048],
            ["heartbeat"],
            ["session"],
            ["metric", "CdkTrainingCluster", "efa_rx_bytes", "Sum", 0.5],
        ],
    ) == Policy(
        below=10.5,
        window=timedelta(hours=2),
        coverage=1,
        grace=timedelta(0),
        warning=timedelta(minutes=10),
        scope=Scope.NODE,
        dry_run=True,
        off=True,
        most_stops=7,
        blind_share=0.25,
        signals=(
            Signal(kind=SignalKind.NETWORK, below=1048576),
            Signal(kind=SignalKind.GPU_MEMORY, below=2048),
            Signal(kind=SignalKind.HEARTBEAT),
            Signal(kind=SignalKind.SESSION),
            Signal(
                kind=SignalKind.METRIC,
                below=0.5,
                namespace="CdkTrainingCluster",
                metric="efa_rx_bytes",
                statistic="Sum",
            ),
        ),
    )


def test_a_groups_policy_says_only_what_differs_from_the_clusters() -> None:
    settings = read(
        policy={**POLICY, "below": 3, "signals": [["session"]]},
        groups={
            "workers": {},
            "lab": {"policy": {"window": 7200, "scope": "node"}},
            "deaf": {"policy": {"signals": [], "dry_run": True}},
            "extras": {"fleet": "sfr-1"},
            "held": {"release": True},
        },
    )

    cluster = Policy(below=3, signals=(Signal(kind=SignalKind.SESSION),))
    assert settings.groups == {
        "deaf": GroupSettings(policy=Policy(below=3, dry_run=True)),
        "extras": GroupSettings(policy=cluster, fleet="sfr-1"),
        "held": GroupSettings(policy=cluster, release=True),
        "lab": GroupSettings(
            policy=Policy(below=3, signals=cluster.signals, window=timedelta(hours=2), scope=Scope.NODE)
        ),
        "workers": GroupSettings(policy=cluster),
    }
    assert list(settings.groups) == sorted(settings.groups)
    assert settings.policy_of("lab").scope is Scope.NODE
    assert settings.policy_of("elsewhere") == settings.policy_of("") == cluster


@pytest.mark.parametrize(
    ("groups", "fleets", "has_groups"),
    [
        ({}, (), False),
        ({"workers": {}}, (), True),
        ({"extras": {"fleet": "sfr-1"}}, ("sfr-1",), False),
        ({"b": {"fleet": "sfr-2"}, "a": {"fleet": "sfr-1"}, "workers": {}}, ("sfr-1", "sfr-2"), True),
    ],
)
def test_what_owns_the_groups_is_known(groups: dict[str, Any], fleets: tuple[str, ...], has_groups: bool) -> None:
    settings = read(groups=groups)

    assert (settings.fleets, settings.has_auto_scaling_groups) == (fleets, has_groups)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the environment variable CLUSTER_IDLE_SETTINGS is missing"),
        ("[]", "the environment variable CLUSTER_IDLE_SETTINGS must hold a JSON object, got []"),
        ("{}", "CLUSTER_IDLE_SETTINGS: cluster must be text, got ''"),
        ('{"cluster":7}', "CLUSTER_IDLE_SETTINGS: cluster must be text, got 7"),
        (
            '{"cluster":"a","polici":{},"x":1}',
            "CLUSTER_IDLE_SETTINGS: it takes cluster, gpus, groups, namespace, policy, prices, tag, tick, got "
            "polici, x",
        ),
        ('{"cluster":"a","tag":""}', "CLUSTER_IDLE_SETTINGS: tag must be text, got ''"),
        ('{"cluster":"a","namespace":null}', "CLUSTER_IDLE_SETTINGS: namespace must be text, got None"),
        ('{"cluster":"a","groups":[]}', "CLUSTER_IDLE_SETTINGS: groups must be an object, got []"),
        ('{"cluster":"a","tick":0}', "CLUSTER_IDLE_SETTINGS: tick must be a number of seconds, got 0"),
        ('{"cluster":"a","tick":"5"}', "CLUSTER_IDLE_SETTINGS: tick must be a number of seconds, got '5'"),
        ('{"cluster":"a","tick":true}', "CLUSTER_IDLE_SETTINGS: tick must be a number of seconds, got True"),
        (
            '{"cluster":"a","prices":{"p5.48xlarge":0}}',
            "CLUSTER_IDLE_SETTINGS: prices must be USD an hour by instance type, got {'p5.48xlarge': 0}",
        ),
        (
            '{"cluster":"a","gpus":{"p9.48xlarge":0.5}}',
            "CLUSTER_IDLE_SETTINGS: gpus must be whole numbers by instance type, got {'p9.48xlarge': 0.5}",
        ),
        ('{"cluster":"a","prices":[]}', "CLUSTER_IDLE_SETTINGS: prices must be USD an hour by instance type, got []"),
        ('{"cluster":"a","policy":[]}', "CLUSTER_IDLE_SETTINGS: the policy of the cluster must be an object, got []"),
        (
            '{"cluster":"a","policy":{"windw":1,"a":2}}',
            "CLUSTER_IDLE_SETTINGS: the policy of the cluster takes below, window, coverage, grace, warning, scope, "
            "signals, dry_run, off, most_stops, blind_share, got a, windw",
        ),
    ],
)
def test_wrong_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.from_environment({"CLUSTER_IDLE_SETTINGS": text})

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (8, "a node group takes fleet, policy, release, got 8 for 'pod'"),
        ({"fleets": "sfr-1"}, "a node group takes fleet, policy, release, got {'fleets': 'sfr-1'} for 'pod'"),
        ({"fleet": ""}, "fleet must be an id, got '' for 'pod'"),
        ({"fleet": 7}, "fleet must be an id, got 7 for 'pod'"),
        ({"release": 1}, "release must be true or false, got 1 for 'pod'"),
        ({"policy": None}, "the policy of pod must be an object, got None"),
        ({"policy": {"window": "1h"}}, "window of the policy of pod cannot be '1h'"),
    ],
)
def test_wrong_settings_of_a_group_are_refused(group: object, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        read(groups={"pod": group})

    assert str(caught.value) == f"CLUSTER_IDLE_SETTINGS: {message}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("below", -1),
        ("below", "5"),
        ("below", True),
        ("below", None),
        ("window", -300),
        ("window", float("inf")),
        ("window", float("nan")),
        # An empty window, or one that needs no point, would prove idleness of anything.
        ("window", 0),
        ("window", 299),
        ("coverage", 0),
        ("coverage", 1.01),
        ("blind_share", 0),
        ("blind_share", 2),
        ("grace", -1),
        ("warning", "soon"),
        ("scope", "gangs"),
        ("scope", None),
        ("dry_run", 0),
        ("dry_run", "false"),
        ("off", "no"),
        ("most_stops", 0),
        ("most_stops", 1.5),
        ("most_stops", True),
        ("signals", {}),
        ("signals", "session"),
        ("signals", [[]]),
        ("signals", ["session"]),
        ("signals", [["sessions"]]),
        ("signals", [["session", 1]]),
        ("signals", [["heartbeat", 1]]),
        ("signals", [["network"]]),
        ("signals", [["network", "1"]]),
        ("signals", [["network", 1, 2]]),
        ("signals", [["gpu_memory", -1]]),
        ("signals", [["metric", "a", "b", 1]]),
        ("signals", [["metric", "a", "", "Sum", 1]]),
        ("signals", [["metric", "a", "b", "Sum", "1"]]),
        ("signals", [["metric", "a", "b", "Sum", 1, 2]]),
    ],
)
def test_a_wrong_value_of_a_policy_is_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        read_policy(**{key: value})

    assert str(caught.value) == f"CLUSTER_IDLE_SETTINGS: {key} of the policy of the cluster cannot be {value!r}"


def test_metrics_are_read_as_far_back_as_a_warning_and_its_window_reach() -> None:
    policy = Policy(window=timedelta(minutes=60), warning=timedelta(minutes=30))

    assert policy.span == timedelta(minutes=95)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Policy(), "below 5 % for 60 minutes"),
        (Policy(below=2.5, window=timedelta(hours=2)), "below 2.5 % for 120 minutes"),
    ],
)
def test_a_policy_says_in_words_what_idle_is(policy: Policy, words: str) -> None:
    assert policy.words == words
