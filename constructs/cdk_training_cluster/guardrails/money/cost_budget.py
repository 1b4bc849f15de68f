"""The AWS budget of one cluster: its own bill, which AWS adds up by the cluster's cost allocation tag."""

from collections.abc import Iterator, Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import ignore_lint, warn
from cdk_training_cluster.guardrails.money.budget import Budget
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.tags import CLUSTER_TAG

# Where CloudFormation has AWS::Budgets::Budget: elsewhere it refuses the whole template, though AWS Budgets itself is
# one service for all regions of the partition. As CloudFormation's lists of resource types by region say.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/resource-type-schemas.html
REGIONS: Final = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1"),
        *("eu-central-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)

ACTIVATION_COMMAND: Final = (
    "aws ce update-cost-allocation-tags-status --region us-east-1 --cost-allocation-tags-status "
    f"TagKey={CLUSTER_TAG},Status=Active"
)
"""Activates the cluster's tag, with credentials of the organization's management account, or of one in none.

https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_UpdateCostAllocationTagsStatus.html
"""


# The references of CloudFormation and of AWS Budgets say both "up to five notifications" and ten.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-budgets-budget.html,
# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_CreateBudget.html and
# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_Notification.html
_SAFE_NOTIFICATIONS = 5


class CostBudget(Construct):
    """Make an AWS budget of a cluster: what AWS bills for everything that has the cluster's tag.

    Each of the budget's `thresholds` notifies when the month's bill passes it, and each of its `forecast_thresholds`
    when AWS forecasts that the month will end above it. AWS updates bills about once a day, and needs about five
    weeks of them for a forecast: it is the spend function that notices what a cluster costs now, and acts.

    AWS adds up by a tag only once it is active, and only what is billed after that: until then the budget is at 0.
    A tag can be activated when it has been billed, up to a day after the first deployment, with the command in
    `activation_command`.

    Counted are amortized costs, so that a Savings Plan's price is where its hours were used, and neither credits nor
    refunds, which hide what a cluster costs. Everything that this library makes and AWS bills has the cluster's tag.
    Not counted is what has none: a Capacity Block or a reservation that was bought elsewhere, the NAT gateway of a
    network that was there before, and the billing alarms in us-east-1.

    AWS Budgets is one service for all regions, and the tag holds the name alone: clusters of one name in several
    regions of an account are added up in the AWS budget of each. Give them different names.

    With other thresholds or addresses CloudFormation makes a new budget, which notifies again of what the month has
    already passed. So the budget has no name of its own.

    AWS's documents say both that a budget has up to five notifications and up to ten. So that none is refused, every
    five notifications have an AWS budget of the same amount and the same bill, with a warning where there are two.

    Resources: one `AWS::Budgets::Budget`, or two. AWS Budgets charges nothing for them.

    Sources: https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-best-practices.html,
    https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/activating-tags.html and
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html
    """

    @checked
    def __init__(
        self, scope: Construct, id: str, *, budget: Budget, cluster_name: ClusterName, alert_topic: sns.ITopic
    ) -> None:
        """Make the AWS budget.

        Args:
            scope: The parent construct.
            id: The construct's id.
            budget: The amount, the thresholds and the addresses.
            cluster_name: The cluster's name, the value of its tag.
            alert_topic: A topic to notify, in the stack's account. It must let AWS Budgets (`budgets.amazonaws.com`)
                publish; if it is encrypted, so must its key.

        Raises:
            ValueError: A setting is of the wrong kind, or CloudFormation cannot make AWS budgets in the stack's
                region.
        """
        super().__init__(scope, id)
        region = Stack.of(self).region
        if not (is_unknown(region) or has_cost_budgets(region)):
            refuse(
                {"budget": [f"budget must be left out in {region}: CloudFormation has no AWS::Budgets::Budget there"]}
            )
        self.budget = budget
        self.activation_command = ACTIVATION_COMMAND
        notifications = list(_notifications(budget, alert_topic))
        for first in range(0, len(notifications), _SAFE_NOTIFICATIONS):
            self._make(
                f"More{first}" if first else "Resource",
                notifications[first : first + _SAFE_NOTIFICATIONS],
                cluster_name,
                alert_topic,
            )
        if len(notifications) > _SAFE_NOTIFICATIONS:
            warn(
                self,
                "manyNotifications",
                f"{cluster_name} has two AWS budgets of the same bill: thresholds and forecast_thresholds are "
                f"{len(notifications)} together, and AWS's documents say both that a budget has up to "
                f"{_SAFE_NOTIFICATIONS} notifications and up to 10. For one AWS budget, give at most "
                f"{_SAFE_NOTIFICATIONS}.",
            )

    def _make(
        self,
        id: str,
        notifications: Sequence[budgets.CfnBudget.NotificationWithSubscribersProperty],
        cluster_name: str,
        alert_topic: sns.ITopic,
    ) -> None:
        made = budgets.CfnBudget(
            self,
            id,
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=self.budget.monthly_usd, unit="USD"),
                # A tag that a user made is written with `user:`; without it the budget stays at 0.
                # https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-create-filters.html
                cost_filters={"TagKeyValue": [f"user:{CLUSTER_TAG}${cluster_name}"]},
                cost_types=budgets.CfnBudget.CostTypesProperty(
                    include_credit=False, include_refund=False, use_amortized=True
                ),
            ),
            notifications_with_subscribers=notifications,
        )
        # AWS Budgets asks the topic's policy when a budget is made.
        made.node.add_dependency(alert_topic)
        # CDK names the topic in DependsOn beside the reference to it: cfn-lint W3005.
        ignore_lint(made, "W3005")

    def describe(self) -> Iterator[str]:
        """Say in a few lines what it notifies of; the overview of a cluster file shows them."""
        yield from self.budget.describe_bill()
        yield f"  counts nothing until the cost allocation tag is active: {self.activation_command}"


def _notifications(
    budget: Budget, alert_topic: sns.ITopic
) -> Iterator[budgets.CfnBudget.NotificationWithSubscribersProperty]:
    subscribers = [
        budgets.CfnBudget.SubscriberProperty(subscription_type=kind, address=address)
        for kind, addresses in (("SNS", [alert_topic.topic_arn]), ("EMAIL", budget.emails))
        for address in addresses
    ]
    for kind, thresholds in (("ACTUAL", budget.thresholds), ("FORECASTED", budget.forecast_thresholds)):
        for threshold in thresholds:
            yield budgets.CfnBudget.NotificationWithSubscribersProperty(
                notification=budgets.CfnBudget.NotificationProperty(
                    notification_type=kind,
                    comparison_operator="GREATER_THAN",
                    threshold=threshold,
                    threshold_type="PERCENTAGE",
                ),
                subscribers=subscribers,
            )


def cost_budget_where_possible(
    scope: Construct, id: str, *, budget: Budget | None, cluster_name: str, alert_topic: sns.ITopic
) -> CostBudget | None:
    """Make the AWS budget; warn where CloudFormation cannot make one, and return None.

    Args:
        scope: The parent construct.
        id: The construct's id.
        budget: The amount, the thresholds and the addresses. None: no AWS budget is made.
        cluster_name: The cluster's name.
        alert_topic: A topic to notify.
    """
    if budget is None:
        return None
    region = Stack.of(scope).region
    if has_cost_budgets(region):
        return CostBudget(scope, id, budget=budget, cluster_name=cluster_name, alert_topic=alert_topic)
    where = "a stack whose region is known at deployment only" if is_unknown(region) else region
    warn(
        scope,
        "noCostBudget",
        f"{cluster_name} has no AWS budget: CloudFormation cannot make one in {where}. To watch the cluster's "
        f"bill, make one with `aws budgets create-budget`, for the cost allocation tag {CLUSTER_TAG}.",
    )
    return None


def has_cost_budgets(region: str) -> bool:
    """Say whether CloudFormation can make AWS budgets in a region; not where it is not known which one it is.

    Args:
        region: The stack's region.
    """
    return region in REGIONS
