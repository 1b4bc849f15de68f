"""The construct that sends a report of a cluster's bill once a week: its function, its tick and its permissions."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Unpack

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.functions import Guardrail, GuardrailArguments, GuardrailSpec, Silence
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.costs import CostFunctionSettings, CostMetric
from cluster_contract.state import StatePart

# Its endpoints in the partitions aws, aws-cn, aws-us-gov and aws-eusc, as botocore resolves them.
_COST_EXPLORER_REGIONS = ["us-east-1", "cn-northwest-1", "us-gov-west-1", "eusc-de-east-1"]


class WeeklyCostReport(Guardrail):
    """Make the function that sends a report of the cluster's bill to its alert topic, once a week.

    From Tuesday on, when Cost Explorer has the week before, it sends what the cluster was billed by item, beside the
    four weeks before, with spikes and trend. It runs every six hours, and calls Cost Explorer only while the newest
    report is not sent, so that a week whose report fails is made up for. The first one comes with the deployment.
    Cost Explorer bills $0.01 a request, as a rule one or two a report. It has the cluster's charges once the tag
    `cdk-training-cluster:cluster` is an active cost allocation tag; until then the report says how to activate it.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, and one
    `AWS::CloudWatch::Alarm`, for the function's silence.

    Source: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_GetCostAndUsage.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_costs",
        called="the cost function",
        purpose="Sends a report of what the training cluster $name has cost, once a week",
        output="CostFunctionName",
        every=timedelta(hours=6),
        timeout=timedelta(minutes=4),
        silence=Silence(
            metric=CostMetric.SUCCESSFUL_TICKS,
            trouble="the cost function has not succeeded for a day, so the report of a week may be missing",
            # A day, the longest that an alarm looks back by such periods.
            periods=288,
        ),
        keeps=StatePart.COSTS,
    )

    @checked
    def __init__(self, scope: Construct, id: str, **arguments: Unpack[GuardrailArguments]) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            **arguments: As `GuardrailArguments` says.

        Raises:
            ValueError: A setting is of the wrong kind, or `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, **arguments)
        settings = CostFunctionSettings(
            cluster=self._cluster_name, topic_arn=self._alert_topic.topic_arn, state_table=self.state.table_name
        )
        self._make(settings, _grant)

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        yield "Costs: a report of the cluster's bill, each Tuesday"


def _grant(role: iam.Role) -> None:
    """Let the function ask Cost Explorer, in the one region of the partition that has it.

    Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscostexplorerservice.html
    """
    here = {"StringEquals": {"aws:RequestedRegion": _COST_EXPLORER_REGIONS}}
    role.add_to_policy(iam.PolicyStatement(actions=["ce:GetCostAndUsage"], resources=["*"], conditions=here))
    acknowledge(
        role, "AwsSolutions-IAM5[Resource::*]", "A request that names no billing view is of the account's own."
    )
