"""The settings of the cost function, which its construct writes, and the name of its metric."""

from dataclasses import dataclass
from enum import StrEnum

from cluster_contract.codec import FunctionSettings, variable


@dataclass(frozen=True, kw_only=True)
class CostFunctionSettings(FunctionSettings):
    """The settings of the cost function.

    Attributes:
        cluster: The cluster's name, the value of the tag on what it is billed for.
        topic_arn: The SNS topic that gets the reports.
        state_table: The name of the cluster's state table.
        region: The region that the cluster and the function are in.
    """

    environment_variable = "CLUSTER_COSTS_SETTINGS"

    cluster: str
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    state_table: str = variable("STATE_TABLE")
    region: str = variable("AWS_REGION")


class CostMetric(StrEnum):
    """The metrics of the cost function, by cluster."""

    SUCCESSFUL_TICKS = "SuccessfulCostTicks"
    """1 for a tick after which the newest report was sent; no data otherwise."""
