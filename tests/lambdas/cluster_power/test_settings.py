from datetime import timedelta

import pytest

from cluster_common.errors import InvalidSettingsError
from cluster_power.settings import Settings

WHOLE = '{"cluster":"base-pod","groups":{"workers":8,"eval":2},"launch_grace_seconds":600}'


def test_settings_come_from_the_environment() -> None:
    settings = Settings.from_environment(
        {"CLUSTER_POWER_SETTINGS": WHOLE, "ALERT_TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:alerts"}
    )

    assert settings == Settings(
        cluster="base-pod",
        counts={"eval": 2, "workers": 8},
        launch_grace=timedelta(minutes=10),
        topic_arn="arn:aws:sns:us-east-1:111122223333:alerts",
    )
    assert list(settings.counts) == ["eval", "workers"]


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
        (
            '{"cluster":"a","groups":{"workers":-1}}',
            "CLUSTER_POWER_SETTINGS: groups must give each node group's count, got {'workers': -1}",
        ),
        (
            '{"cluster":"a","groups":{"workers":true}}',
            "CLUSTER_POWER_SETTINGS: groups must give each node group's count, got {'workers': True}",
        ),
        (
            '{"cluster":"a","groups":{"workers":1},"launch_grace_seconds":"x"}',
            "CLUSTER_POWER_SETTINGS: launch_grace_seconds must be 0 or more, got 'x'",
        ),
    ],
)
def test_wrong_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.from_environment({"CLUSTER_POWER_SETTINGS": text})

    assert str(caught.value).startswith(message)
