"""What the deploy tells the function: the cluster, its node groups and where to send messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeGuard

from cluster_common.environment import read_settings
from cluster_common.errors import InvalidSettingsError

SETTINGS_VARIABLE = "CLUSTER_POWER_SETTINGS"
TOPIC_VARIABLE = "ALERT_TOPIC_ARN"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The function's settings, read from its environment.

    Attributes:
        cluster: The cluster's name, the value of the tag on everything that belongs to it.
        counts: Each node group's name and how many nodes the cluster's file gives it.
        launch_grace: How long nodes may take to launch before their absence is a problem.
        topic_arn: The SNS topic that is told when a problem begins and ends. Default: - only the log is told.
    """

    cluster: str
    counts: Mapping[str, int]
    launch_grace: timedelta
    topic_arn: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read `CLUSTER_POWER_SETTINGS` and `ALERT_TOPIC_ARN`.

        Raises:
            InvalidSettingsError: What is there is not what the construct writes.
        """
        raw = read_settings(environment, SETTINGS_VARIABLE)
        cluster, counts, grace = raw.get("cluster"), raw.get("groups"), raw.get("launch_grace_seconds")
        if not isinstance(cluster, str) or not cluster:
            raise InvalidSettingsError(f"{SETTINGS_VARIABLE}: cluster must be a name, got {cluster!r}")
        if not isinstance(counts, dict) or not all(_is_count(count) for count in counts.values()):
            raise InvalidSettingsError(
                f"{SETTINGS_VARIABLE}: groups must give each node group's count, got {counts!r}"
            )
        if not _is_count(grace):
            raise InvalidSettingsError(f"{SETTINGS_VARIABLE}: launch_grace_seconds must be 0 or more, got {grace!r}")
        return cls(
            cluster=cluster,
            counts=dict(sorted(counts.items())),
            launch_grace=timedelta(seconds=grace),
            topic_arn=environment.get(TOPIC_VARIABLE) or None,
        )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
