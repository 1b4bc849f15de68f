"""What nodes are observed with beside CloudWatch: `observability:` in a cluster file."""

from pydantic import Field

from cdk_training_cluster import Observability
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.model_base import Settings


class PrometheusSettings(Settings, ModelOf[Observability], maker=Observability.prometheus):
    """A workspace of Amazon Managed Service for Prometheus, to which the nodes send their metrics. It is kept when
    the stack is deleted."""

    interval_seconds: int = 30
    """The seconds from one sample to the next: 10 to 300. Each sample is billed."""

    retention_days: int | None = Field(default=None, examples=[90])
    """How many days samples are kept: 1 to 1095. Left out: 150, which is AWS's."""


class ObservabilitySettings(Settings):
    """What nodes are observed with, beside CloudWatch."""

    prometheus: PrometheusSettings = Field(examples=[{"interval_seconds": 30}])
    """A workspace of Amazon Managed Service for Prometheus, with rules and alerts; {} takes the defaults."""
