"""`HealthPolicy`: what it refuses, and what the function gets of it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Duration

from cdk_training_cluster import HealthPolicy
from cluster_contract.health_settings import HealthPolicySettings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"act": "yes"}, "act must be True or False, got 'yes'"),
        ({"max_repairs": 0}, "max_repairs must be at least 1, got 0: to repair nothing, leave act out"),
        ({"max_repairs": 101}, "max_repairs must be at most 100, got 101"),
        ({"window": Duration.minutes(59)}, "window must be from 1 hour to 7 days, in whole seconds, got 59 minutes"),
        (
            {"drain_timeout": Duration.hours(25)},
            "drain_timeout must be from 0 minutes to 1 day, in whole seconds, got",
        ),
        ({"verify_timeout": 20}, "verify_timeout must be a Duration, such as Duration.minutes(60), got 20"),
        ({"grace": Duration.minutes(9)}, "grace must be from 1 minute to 8 minutes, in whole seconds, got 9 minutes"),
        (
            {"verify_timeout": Duration.minutes(4)},
            "verify_timeout must be from 5 minutes to 2 hours, in whole seconds",
        ),
    ],
)
def test_what_no_function_could_do_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        HealthPolicy(**settings)


def test_what_is_left_out_is_as_the_function_says_and_the_function_only_reports() -> None:
    assert HealthPolicy().to_contract() == HealthPolicySettings()
    assert not HealthPolicy().to_contract().act
    policy = HealthPolicy(act=True, max_repairs=1, window=Duration.hours(1), drain_timeout=Duration.minutes(0))
    assert policy.to_contract() == HealthPolicySettings(
        act=True, max_repairs=1, window=timedelta(hours=1), drain_timeout=timedelta()
    )
    assert policy.describe() == "drained, then rebooted or replaced, at most 1 of a node group in 1 hours"
