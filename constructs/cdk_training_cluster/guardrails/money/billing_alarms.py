"""The construct that keeps billing alarms: its function, its tick, its alarms and its permissions."""

import hashlib
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, ClassVar, Unpack

from aws_cdk import CfnCustomResource, Stack, region_info
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge, ignore_lint, warn
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.functions import FunctionArguments, Guardrail, GuardrailSpec, Silence, Watch
from cdk_training_cluster.guardrails.money.budget import Budget
from cdk_training_cluster.validation import text_problems
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.billing import BILLING_REGION, BillingFunctionSettings, BillingMetric

_ANSWER_SECONDS = 900
_MAX_NAME_LENGTH = 128

_TOPIC_ACTIONS = (
    "sns:CreateTopic",
    "sns:DeleteTopic",
    "sns:GetTopicAttributes",
    "sns:ListSubscriptionsByTopic",
    "sns:ListTagsForResource",
    "sns:Publish",
    "sns:SetTopicAttributes",
    "sns:TagResource",
    "sns:UntagResource",
)


def _name(setting: str, value: object) -> Iterator[str]:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_NAME_LENGTH:
        yield f"{setting} must be text of 1 to {_MAX_NAME_LENGTH} characters, got {shown(value)}"
    else:
        yield from text_problems(setting, value, "dimensionValue", "sqsTagValue")


class BillingAlarms(Guardrail):
    """Make the function that keeps the billing alarms of a budget, in us-east-1 from whatever region it is in.

    Within five minutes of a deployment, and every five minutes after, it compares the alarms and their topic with
    the budget and creates, updates and deletes what differs. Alarms are found by the prefix of their names, the topic
    by a tag; others are left alone.

    AWS reports estimated charges by account; in an organization's management account the total is the whole
    organization's. Every `BillingAlarms` has its own alarms, so that two clusters in one account watch the same bill,
    each against its own budget: give one of them the budget, or make `BillingAlarms` in a stack of its own for the
    account. The figures are several hours old: alarms show a wrong bill, and stop nothing.

    Where the account has no billing metrics such alarms are silent for ever. After a day without data the function
    then sets off `silent_alarm`, and notifies `alert_topic` every day; of a service without data for a week, and of
    addresses that are not confirmed, once a week. CloudWatch notifies when an alarm changes its state, and not
    again: so `alert_topic` is also notified, once a day, of thresholds that are reached before every address is
    confirmed, and once one is, the alarms that are in alarm notify again.

    There is no alarm on a forecast: CloudWatch has no forecast of estimated charges. `CostBudget` and `ClusterSpend`
    notify of forecasts.

    CloudFormation cannot make resources in another region, and deletes nothing that a function made. So the stack has
    one custom resource, which does nothing but ask for the removal: it answers to Create and Update at once, and to
    Delete always with success. What could not be removed is published to `alert_topic` and to the topic in us-east-1,
    with the commands that remove it. After that the function takes no more events, so that no late tick makes
    anything anew. The function's role, its log group and the subscriptions of `alert_topic` are deleted after it, the
    schedule before it. Only when the function itself was deleted, or cannot be invoked, does the deletion fail, after
    15 minutes at most: then delete the stack with `--retain-resources`, or with `--deletion-mode FORCE_DELETE_STACK`.

    The topic in us-east-1 is not encrypted with a customer's key: a key lives in the stack's region, and CloudWatch
    cannot publish to topics under SNS's AWS managed key. A message holds an alarm's name and amounts.

    It costs 0.10 USD a month for each alarm, of which an account has ten free, and at the prices of us-east-1 about
    1.30 USD for its own three metrics and four alarms.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, one
    `AWS::CloudFormation::CustomResource`, two more `AWS::CloudWatch::Alarm`s. By the function, in us-east-1: the
    budget's alarms, and one SNS topic with a subscription for each address.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html,
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
    and https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="billing_alarms",
        called="the billing function",
        purpose=f"Keeps the billing alarms of $name in {BILLING_REGION}",
        output="BillingFunctionName",
        every=timedelta(minutes=5),
        timeout=timedelta(minutes=4),
        # A removal waits that long, at least, for a tick that still runs; by default an event is lost after a minute.
        max_event_age=timedelta(minutes=9),
        silence=Silence(
            metric=BillingMetric.EVALUATIONS,
            trouble="the billing function has not succeeded for 15 minutes, so billing alarms may be missing or "
            "wrong",
        ),
        watches=(
            Watch(
                id="SilentAccounts",
                metric=BillingMetric.SILENT_ACCOUNTS,
                trouble="CloudWatch has no billing metrics for this budget, so its alarms on the charges of whole "
                "accounts cannot go into ALARM",
                remedy="It names the accounts: switch on Receive CloudWatch billing alerts in their billing "
                "preferences",
            ),
        ),
        absent="Billing alarms: none (no budget)",
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        budget: Budget,
        name: Annotated[str, _name],
        **arguments: Unpack[FunctionArguments],
    ) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            budget: What the account may cost, and the addresses to notify.
            name: What the budget is for, such as the cluster's name: in descriptions, and in the dimension
                `Cluster` of the function's metrics.
            **arguments: As `FunctionArguments` says; `alert_topic` is in the stack's region.

        Raises:
            ValueError: The stack is in a partition without billing metrics, a setting is of the wrong kind, or
                `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, cluster_name=name, **arguments)
        refuse({"budget": place_problems(Stack.of(self).region)})
        if not budget.emails:
            warn(
                self,
                "noBudgetEmails",
                f"no address receives the billing alarms of {name}: list one in the budget's emails, or subscribe "
                f"to the topic that the function makes in {BILLING_REGION}.",
            )
        self.budget = budget
        stack = Stack.of(self)
        # Of one stack, region and construct; it stays when the cluster gets another name, or the stack a stage. The
        # alarms of another prefix would be left behind.
        path = self.node.path.removeprefix(stack.node.path)
        owner = f"{stack.stack_name}/{stack.region}/billing-{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        settings = BillingFunctionSettings(
            cluster=name,
            prefix=f"{owner}/",
            monthly_usd=budget.monthly_usd,
            thresholds=tuple(budget.thresholds),
            services=tuple(budget.services),
            accounts=tuple(budget.linked_accounts),
            emails=tuple(budget.emails),
            alert_topic_arn=self._alert_topic.topic_arn,
        )
        self._make(settings, lambda role: self._grant(role, owner))
        self.removal: CfnCustomResource = self._make_removal()
        # No tick is sent after the removal; one that waits is held back, since the removal leaves no concurrency.
        self.schedule.node.add_dependency(self.removal)
        self.silent_alarm: cloudwatch.Alarm = self._alarms["SilentAccounts"]

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        return self.budget.describe()

    def _make_removal(self) -> CfnCustomResource:
        removal = CfnCustomResource(
            self, "Removal", service_token=self.function.function_arn, service_timeout=_ANSWER_SECONDS
        )
        # What a removal needs is made before it, and so deleted after it: the role with its policy, the log group,
        # and the subscriptions that are notified of what was left.
        removal.node.add_dependency(self._cluster_function, self._alert_topic, self._let_it_end())
        # CDK names the function in DependsOn beside the reference to it: cfn-lint W3005.
        ignore_lint(removal, "W3005")
        return removal

    def _let_it_end(self) -> iam.Policy:
        """Let the function take no more events; the function depends on its role's own policy, so not there."""
        end = iam.PolicyStatement(actions=["lambda:PutFunctionConcurrency"], resources=[self.function.function_arn])
        return iam.Policy(self, "End", statements=[end], roles=[self._cluster_function.role])

    def _grant(self, role: iam.Role, owner: str) -> None:
        """Give the permissions that end at this budget's alarms and topic in the billing region.

        Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_cloudwatch.html and
        https://docs.aws.amazon.com/service-authorization/latest/reference/list_sns.html
        """
        account = f"{BILLING_REGION}:{HERE.account_id}"
        alarms = f"arn:{HERE.partition}:cloudwatch:{account}:alarm:{owner}/*"
        topic = f"arn:{HERE.partition}:sns:{account}:{owner.replace('/', '-')}"
        for actions, resource, conditions in (
            (
                # DescribeAlarms needs an asterisk to name composite alarms, and Unsubscribe has no resource type.
                ["cloudwatch:DescribeAlarms", "sns:Unsubscribe"],
                "*",
                {"StringEquals": {"aws:RequestedRegion": BILLING_REGION}},
            ),
            (["cloudwatch:DeleteAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:SetAlarmState"], alarms, {}),
            (list(_TOPIC_ACTIONS), topic, {}),
            (["sns:Subscribe"], topic, {"StringEquals": {"sns:Protocol": "email"}}),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource], conditions=conditions))
            if resource.endswith("*"):
                acknowledge(
                    role,
                    f"AwsSolutions-IAM5[Resource::{_as_nag_says(resource)}]",
                    "Actions that name no single resource, in one region; or the names of this budget's own alarms, "
                    "whose ends are made at run time.",
                )


def place_problems(region: str) -> list[str]:
    """Say why a region can have no budget; nothing if it can, or is not known yet.

    Args:
        region: The stack's region.
    """
    if is_unknown(region):
        return []
    partition = region_info.RegionInfo.get(region).partition or "aws"
    if partition == "aws":
        return []
    return [
        f"budget must be left out in {region}: billing metrics exist in {BILLING_REGION} only, which the partition "
        f"{partition} does not have"
    ]


def _as_nag_says(resource: str) -> str:
    return re.sub(r"\$\{Token\[AWS\.(\w+)\.[0-9]+\]\}", r"<AWS::\1>", resource)
