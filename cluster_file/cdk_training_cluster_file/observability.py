"""What nodes are observed with beside CloudWatch: `observability:` in a cluster file."""

from typing import Annotated

from pydantic import Field

from cdk_training_cluster import Observability
from cdk_training_cluster.observability.prometheus import INTERVAL_SECONDS, RETENTION_DAYS
from cdk_training_cluster_file.forms import within
from cdk_training_cluster_file.model_base import Settings


class PrometheusSettings(Settings):
    """A workspace of Amazon Managed Service for Prometheus, to which the nodes send their metrics. It is kept when
    the stack is deleted."""

    interval_seconds: Annotated[int, within(INTERVAL_SECONDS)] = 30
    """The seconds from one sample to the next: 10 to 300. Each sample is billed."""

    retention_days: Annotated[int, within(RETENTION_DAYS)] | None = Field(default=None, examples=[90])
    """How many days samples are kept: 1 to 1095. Left out: 150, which is AWS's."""


class ObservabilitySettings(Settings):
    """What nodes are observed with, beside CloudWatch."""

    prometheus: PrometheusSettings = Field(examples=[{"interval_seconds": 30}])
    """A workspace of Amazon Managed Service for Prometheus, with rules and alerts; {} takes the defaults."""

    def to_observability(self) -> Observability:
        """Return the settings as the constructs take them."""
        return Observability.prometheus(
            interval_seconds=self.prometheus.interval_seconds, retention_days=self.prometheus.retention_days
        )
