"""A Lambda function of a training cluster, set up the way all of them are."""

import json
import re
from collections.abc import Mapping

import jsii
from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.acknowledgements import default_child, ignore_lint
from cdk_training_cluster.functions.assets import function_source
from cdk_training_cluster.functions.powertools import powertools_layer
from cdk_training_cluster.metrics import FUNCTION_NAMESPACE, NODE_METRICS

# All of a function's environment, names and values together.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_MAXIMUM_ENVIRONMENT_BYTES = 4096

# What is known at deployment only is an ARN or a name here, and none of these is longer; within the settings it is
# an id.
_UNRESOLVED_BYTES = 256
_TOKEN = re.compile(r"\$\{Token\[[^\]]*\]\}")


@jsii.implements(iam.IGrantable)
class ClusterFunction(Construct):
    """Make a Lambda function from the library's sources, with its own log group, role and error alarm.

    The function runs on Python 3.14 on arm64 with Powertools from AWS's layer. Its role may write to its own
    log group and nothing else; whoever makes the function adds what its code calls. An invocation by event is
    not repeated and not kept for later: the next tick does the work again.

    Resources: `AWS::Lambda::Function`, `AWS::Lambda::EventInvokeConfig`, `AWS::Logs::LogGroup`,
    `AWS::IAM::Role` with one policy, and one `AWS::CloudWatch::Alarm`.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        package: str,
        description: str,
        cluster_name: str,
        settings: Mapping[str, object],
        alert_topic: sns.ITopic,
        timeout: Duration,
        environment: Mapping[str, str] | None = None,
        longest_id_bytes: int = 40,
        memory_size_mib: int = 256,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        powertools_layer: lambda_.ILayerVersion | None = None,
    ) -> None:
        """Make the function.

        Args:
            scope: The parent construct.
            id: The construct's id.
            package: The function's package among the library's Lambda sources, such as `cluster_power`.
            description: What the function does, for people who find it in the console.
            cluster_name: The cluster it works for.
            settings: Its settings; they reach it as compact JSON in the environment variable
                `<PACKAGE>_SETTINGS`.
            alert_topic: What the error alarm notifies.
            timeout: How long one invocation may take.
            environment: More environment variables. Default: - none.
            longest_id_bytes: The most bytes that an id within the settings has that is known at deployment only.
                Default: - 40, a Spot Fleet request's.
            memory_size_mib: Its memory, in MiB. Default: - 256.
            log_retention: How long its log is kept. Default: - three months.
            powertools_layer: A layer with Powertools for Python 3.14 on arm64. Default: - AWS's public one.

        Raises:
            ValueError: There is no such package, the settings are too large, or AWS publishes no layer in the
                stack's region.
        """
        super().__init__(scope, id)
        self.package = package
        self._cluster_name = cluster_name
        source = function_source(package)
        variables = _environment(package, settings, environment or {}, longest_id_bytes)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            retention=log_retention,
            # The log of a cluster that is gone would stay behind once for each cluster that comes and goes.
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"{package} of the training cluster {cluster_name}",
        )
        self.log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Resource",
            description=description,
            code=source.code(),
            handler=source.handler,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=memory_size_mib,
            timeout=timeout,
            role=self.role,
            log_group=self.log_group,
            layers=[powertools_layer or _public_layer(self)],
            environment=variables,
            retry_attempts=0,
            max_event_age=Duration.minutes(1),
        )
        # CDK names the role in DependsOn, though the reference to it says as much: cfn-lint W3005.
        ignore_lint(default_child(self.function), "W3005")
        self.error_alarm = self._watch_errors(package, cluster_name, alert_topic)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The function's role, for what else its code calls."""
        return self.role.grant_principal

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let somebody call the function, and no version or alias of it.

        Args:
            grantee: A role, user or function.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["lambda:InvokeFunction"],
            resource_arns=[self.function.function_arn],
        )

    def metric(
        self, name: str, *, statistic: str, period: Duration | None = None, node_group: str | None = None
    ) -> cloudwatch.Metric:
        """Return something that the function reports of its cluster, in a namespace that nodes cannot write.

        Args:
            name: The metric's name.
            statistic: Over what the function reports.
            period: How much time a point covers. Default: - 5 minutes.
            node_group: The node group's name. Default: - the whole cluster.
        """
        dimensions = {NODE_METRICS.cluster_dimension: self._cluster_name}
        if node_group is not None:
            dimensions[NODE_METRICS.node_group_dimension] = node_group
        return cloudwatch.Metric(
            namespace=FUNCTION_NAMESPACE,
            metric_name=name,
            dimensions_map=dimensions,
            statistic=statistic,
            period=period or Duration.minutes(5),
        )

    def _watch_errors(self, package: str, cluster_name: str, alert_topic: sns.ITopic) -> cloudwatch.Alarm:
        alarm = self.function.metric_errors(period=Duration.minutes(5)).create_alarm(
            self,
            "Errors",
            alarm_description=f"{package} of {cluster_name} fails again and again; its log group "
            f"{self.log_group.log_group_name} says why.",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # One failed run is made good by the next.
            evaluation_periods=3,
            datapoints_to_alarm=2,
            # No invocation is no proof of health: then the alarm has no state, neither OK nor in alarm.
            treat_missing_data=cloudwatch.TreatMissingData.MISSING,
        )
        # No OK action: the alarm of a new function goes from no state to OK, and nothing has ended.
        alarm.add_alarm_action(actions.SnsAction(alert_topic))
        return alarm


def _environment(
    package: str, settings: Mapping[str, object], more: Mapping[str, str], longest_id: int
) -> dict[str, str]:
    variables = {
        f"{package.upper()}_SETTINGS": json.dumps(settings, separators=(",", ":"), sort_keys=True),
        "POWERTOOLS_SERVICE_NAME": package,
        "POWERTOOLS_METRICS_NAMESPACE": FUNCTION_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": "INFO",
        **more,
    }
    size = sum(len(name) + _bytes(value, longest_id) for name, value in variables.items())
    if size > _MAXIMUM_ENVIRONMENT_BYTES:
        raise ValueError(
            f"settings of {package} must fit into {_MAXIMUM_ENVIRONMENT_BYTES} bytes of environment, got "
            f"{size}: "
            "use fewer node groups or shorter names"
        )
    return variables


def _bytes(value: str, longest_id: int) -> int:
    literals = _TOKEN.sub("", value)
    tokens = len(_TOKEN.findall(value))
    return len(literals.encode()) + tokens * (longest_id if literals else _UNRESOLVED_BYTES)


def _public_layer(scope: Construct) -> lambda_.ILayerVersion:
    return powertools_layer(scope, "Powertools")
