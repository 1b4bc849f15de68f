import json
from datetime import timedelta

import pytest

from cluster_common.errors import InvalidSettingsError
from cluster_power.settings import GroupSettings, Settings
from power_scene import plain

WHOLE = '{"cluster":"base-pod","groups":{"workers":8,"eval":2},"launch_grace_seconds":600}'


def test_settings_come_from_the_environment() -> None:
    settings = Settings.from_environment(
        {"CLUSTER_POWER_SETTINGS": WHOLE, "ALERT_TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:alerts"}
    )

    assert settings == Settings(
        cluster="base-pod",
        groups=plain(eval=2, workers=8),
        launch_grace=timedelta(minutes=10),
        topic_arn="arn:aws:sns:us-east-1:111122223333:alerts",
    )
    assert list(settings.groups) == ["eval", "workers"]


def test_what_nodes_are_bought_with_comes_from_the_environment_too() -> None:
    groups = {
        "workers": 8,
        "pod": {"count": 8, "block": "cr-1"},
        "ultra": {"count": 18, "block": "cr-6", "block_ends_early_minutes": 60},
        "extras": {"count": 4, "spot_fleet": "sfr-1"},
        "any": {"count": 3, "listed": ["cr-5"], "blocks": ["cr-4"]},
        "held": {"count": 2, "reservation": "cr-2"},
        "idle": {"count": 2, "released": "cr-3"},
    }
    text = json.dumps({"cluster": "a", "groups": groups, "launch_grace_seconds": 600, "closing_notice_seconds": 3600})

    settings = Settings.from_environment({"CLUSTER_POWER_SETTINGS": text})

    assert settings.groups == {
        "workers": GroupSettings(count=8),
        "pod": GroupSettings(count=8, block="cr-1", block_ends_early=timedelta(minutes=30)),
        "extras": GroupSettings(count=4, spot_fleet="sfr-1"),
        "ultra": GroupSettings(count=18, block="cr-6", block_ends_early=timedelta(minutes=60)),
        "any": GroupSettings(count=3, listed=("cr-5",), blocks=("cr-4",)),
        "held": GroupSettings(count=2, reservation="cr-2"),
        "idle": GroupSettings(count=2, reservation="cr-3", release=True),
    }
    assert settings.closing_notice == timedelta(hours=1)
    assert settings.spot_fleets == {"extras": "sfr-1"}
    assert settings.auto_scaling_groups == ("any", "held", "idle", "pod", "ultra", "workers")
    assert settings.reservations == {
        "any": ("cr-4", "cr-5"),
        "held": ("cr-2",),
        "idle": ("cr-3",),
        "pod": ("cr-1",),
        "ultra": ("cr-6",),
    }


def test_people_are_told_half_an_hour_ahead_that_nodes_go_unless_another_time_is_set() -> None:
    assert Settings.from_environment({"CLUSTER_POWER_SETTINGS": WHOLE}).closing_notice == timedelta(minutes=30)


@pytest.mark.parametrize("environment", [{}, {"ALERT_TOPIC_ARN": ""}])
def test_a_topic_is_a_choice(environment: dict[str, str]) -> None:
    assert Settings.from_environment({"CLUSTER_POWER_SETTINGS": WHOLE} | environment).topic_arn is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the environment variable CLUSTER_POWER_SETTINGS is missing"),
        ("[]", "the environment variable CLUSTER_POWER_SETTINGS must hold a JSON object, got []"),
        ("{", "the environment variable CLUSTER_POWER_SETTINGS is not JSON: Expecting property name"),
        ("{}", "CLUSTER_POWER_SETTINGS: cluster must be a name, got None"),
        ('{"cluster":"a","groups":[]}', "CLUSTER_POWER_SETTINGS: groups must give each node group's count, got []"),
        (
            '{"cluster":"a","groups":{"workers":1},"launch_grace_seconds":"x"}',
            "CLUSTER_POWER_SETTINGS: launch_grace_seconds must be 0 or more, got 'x'",
        ),
        (
            '{"cluster":"a","groups":{"workers":1},"launch_grace_seconds":1,"closing_notice_seconds":-1}',
            "CLUSTER_POWER_SETTINGS: closing_notice_seconds must be 0 or more, got -1",
        ),
    ],
)
def test_wrong_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.from_environment({"CLUSTER_POWER_SETTINGS": text})

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (-1, "groups must give each node group's count, got -1 for 'pod'"),
        (True, "groups must give each node group's count, got True for 'pod'"),
        ({}, "groups must give each node group's count, got {} for 'pod'"),
        (
            {"count": 1, "blok": "cr-1"},
            "a node group takes block, block_ends_early_minutes, blocks, count, listed, released, reservation, "
            "spot_fleet, warm_pool, got blok for 'pod'",
        ),
        ({"count": 1, "warm_pool": 1}, "warm_pool is true or false, got {'count': 1, 'warm_pool': 1} for 'pod'"),
        ({"count": 1, "blocks": "cr-1"}, "blocks must be a list of ids, got 'cr-1' for 'pod'"),
        ({"count": 1, "spot_fleet": ""}, "spot_fleet must be an id, got '' for 'pod'"),
        ({"count": 1, "reservation": 7}, "reservation must be an id, got 7 for 'pod'"),
        ({"count": 1, "released": True}, "released must be an id, got True for 'pod'"),
        (
            {"count": 1, "block": "cr-1", "block_ends_early_minutes": -1},
            "block_ends_early_minutes is 0 or more and goes with a block, got {'count': 1, 'block': 'cr-1', "
            "'block_ends_early_minutes': -1} for 'pod'",
        ),
        (
            {"count": 1, "block_ends_early_minutes": 30},
            "block_ends_early_minutes is 0 or more and goes with a block, got {'count': 1, "
            "'block_ends_early_minutes': 30} for 'pod'",
        ),
        (
            {"count": 1, "spot_fleet": "sfr-1", "reservation": "cr-1"},
            "block, released, reservation, spot_fleet and blocks exclude each other, got {'count': 1, 'spot_fleet': "
            "'sfr-1', 'reservation': 'cr-1'} for 'pod'",
        ),
        (
            {"count": 1, "released": "cr-1", "reservation": "cr-1"},
            "block, released, reservation, spot_fleet and blocks exclude each other, got {'count': 1, 'released': "
            "'cr-1', 'reservation': 'cr-1'} for 'pod'",
        ),
    ],
)
def test_wrong_settings_of_a_group_are_refused(group: object, message: str) -> None:
    text = json.dumps({"cluster": "a", "groups": {"pod": group}, "launch_grace_seconds": 600})

    with pytest.raises(InvalidSettingsError) as caught:
        Settings.from_environment({"CLUSTER_POWER_SETTINGS": text})

    assert str(caught.value) == f"CLUSTER_POWER_SETTINGS: {message}"
