"""The construct that makes a cluster's dashboard in CloudWatch."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import AlarmStatus, DashboardRow, Text
from cdk_training_cluster.core.dashboards.widgets import dashboard_body
from cdk_training_cluster.core.runbooks import SITE

_MOST_ALARMS_OF_A_WIDGET = 100


class ClusterDashboard(Construct):
    """Make the dashboard of a cluster: a row of alarms, and the rows that its parts describe.

    However many nodes and node groups there are, its size is the same: searches find what reports. The account's
    first three dashboards cost nothing, each further one 3 USD a month.

    Resources: one `AWS::CloudWatch::Dashboard`, deleted with the stack.

    Attributes:
        rows: What it shows, from the top.
        dashboard_name: Its name, which CloudFormation makes: names are shared by all regions of an account.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html and
    https://aws.amazon.com/cloudwatch/pricing/
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        rows: Sequence[DashboardRow],
        alarms: Sequence[cloudwatch.Alarm] = (),
    ) -> None:
        """Make the dashboard.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster's name.
            rows: What its parts show.
            alarms: The alarms that it shows at the top. Default: - none.

        Raises:
            ValueError: There are more widgets than CloudWatch takes.
        """
        super().__init__(scope, id)
        self.rows: tuple[DashboardRow, ...] = (_alarm_row(cluster_name, alarms), *rows)
        stack = Stack.of(self)
        made = cloudwatch.CfnDashboard(self, "Resource", dashboard_body=stack.to_json_string(self.body(stack.region)))
        self.dashboard_name: str = made.ref

    def body(self, region: str) -> dict[str, Any]:
        """Return what CloudWatch gets.

        Args:
            region: The region of all that it shows.
        """
        return dashboard_body(self.rows, region)


def _alarm_row(cluster_name: str, alarms: Sequence[cloudwatch.Alarm]) -> DashboardRow:
    arns = [alarm.alarm_arn for alarm in alarms]
    parts = [arns[at : at + _MOST_ALARMS_OF_A_WIDGET] for at in range(0, len(arns), _MOST_ALARMS_OF_A_WIDGET)]
    text = Text(
        markdown=f"CDK made this dashboard; what is changed here is lost with the next deployment.\n\n"
        f"[What each alarm means, and what to do]({SITE}operations/). [What the graphs show]({SITE}dashboard/). "
        f"In a terminal: `training-cluster status {cluster_name}`."
    )
    return DashboardRow(
        title=f"Training cluster {cluster_name}",
        panels=[*(AlarmStatus(title="Alarms", alarm_arns=part) for part in parts), text],
    )
