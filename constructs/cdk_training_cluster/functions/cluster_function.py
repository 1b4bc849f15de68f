"""A Lambda function of a training cluster, set up the way all of them are."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta

import jsii
from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge, default_child, ignore_lint
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.runbooks import runbook
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.functions.assets import function_source
from cdk_training_cluster.functions.powertools import checked_layer, powertools_layer
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.templates.checks import check_templates
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS

# All of a function's environment, names and values together.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_MAXIMUM_ENVIRONMENT_BYTES = 4096

# What is known at deployment only is an ARN or a name here, and none of these is longer; within the settings it is
# an id.
_UNRESOLVED_BYTES = 256
_FAILED_EVENTS_KEPT = timedelta(days=14)
# The next tick does the work again.
_FAILED_EVENTS_PERIOD, _MAX_FAILED_EVENTS = timedelta(minutes=15), 2
_PERIOD = timedelta(minutes=5)
_TOKEN = re.compile(r"\$\{Token\[[^\]]*\]\}")


@jsii.implements(iam.IGrantable)
class ClusterFunction(Construct):
    """Make a Lambda function from the library's sources, with its own log group, role, queue and alarms.

    The function runs on Python 3.14 on arm64 with Powertools from AWS's layer. Its role may write to its own
    log group and send to its own queue; the construct that makes the function adds what its code calls. An invocation
    by event that fails is not repeated, unless `retries` says so: the next tick does the work again. One that finds
    the function busy is tried for a minute. What fails or waits longer goes to the queue, with the event and the
    error. So does each alias.

    Resources: `AWS::Lambda::Function`, `AWS::Lambda::EventInvokeConfig`, `AWS::Logs::LogGroup`,
    `AWS::IAM::Role` with one policy, `AWS::SQS::Queue` with one policy, and two `AWS::CloudWatch::Alarm`s.

    Attributes:
        notification: The action of an alarm that notifies the topic.
        failed_events: The queue of events that the function could not handle; a message is kept for 14 days.

    Sources: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html,
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html and
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        package: str,
        called: str,
        description: str,
        cluster_name: ClusterName,
        settings: Mapping[str, object],
        alert_topic: sns.ITopic,
        timeout: Duration,
        environment: Mapping[str, str] | None = None,
        longest_id_bytes: int = 40,
        memory_size_mib: int = 256,
        max_event_age: Duration | None = None,
        retries: int = 0,
        powertools_layer: lambda_.ILayerVersion | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the function.

        Args:
            scope: The parent construct.
            id: The construct's id.
            package: The function's package among the library's Lambda sources, such as `cluster_power`.
            called: What alarms call the function, such as `the power function`.
            description: What the function does, as the console shows it.
            cluster_name: The cluster it works for.
            settings: Its settings; they reach it as compact JSON in the environment variable
                `<PACKAGE>_SETTINGS`.
            alert_topic: What the error alarm notifies.
            timeout: How long one invocation may take.
            environment: More environment variables. Default: - none.
            longest_id_bytes: The most bytes that an id within the settings has that is known at deployment only.
                Default: - 40, a Spot Fleet request's.
            memory_size_mib: Its memory, in MiB. Default: - 256.
            max_event_age: How long an event that cannot run yet is kept. Default: - a minute.
            retries: How often an event is tried again of which the function fails. Default: - never.
            powertools_layer: A layer with Powertools for Python 3.14 on arm64. Default: - AWS's public one.
            encryption_key: The KMS key that encrypts log, environment and queue. Default: - keys that AWS owns.

        Raises:
            ValueError: There is no such package, the settings are too large, or AWS publishes no layer in the stack's
                region.
        """
        super().__init__(scope, id)
        check_templates(self)
        self.package = package
        self._cluster_name = cluster_name
        self.notification: actions.SnsAction = actions.SnsAction(alert_topic)
        max_event_age = max_event_age or Duration.minutes(1)
        self._max_event_age_seconds, self._retries = max_event_age.to_seconds(), retries
        source = function_source(package)
        variables = _environment(package, settings, environment or {}, longest_id_bytes)
        self._variables, self._longest_id_bytes = variables, longest_id_bytes
        self.log_group: logs.LogGroup = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=encryption_key,
            # The log of a cluster that is gone would stay behind once for each cluster that comes and goes.
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role: iam.Role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"{package} of the training cluster {cluster_name}",
        )
        self.log_group.grant_write(self.role)
        self._log_group_name = self.log_group.log_group_name
        self._encryption_key = encryption_key
        if encryption_key is not None:
            allow(self, encryption_key, KeyUser.LOGS)
            acknowledge(
                self.role,
                "AwsSolutions-IAM5[Action::kms:GenerateDataKey*]",
                "CDK's grant to publish to a topic that the key encrypts; it allows that one key only.",
            )
        self.failed_events: sqs.Queue = self._make_queue(encryption_key)
        self._failed_events_arn = self.failed_events.queue_arn
        self.grant_send_failed_events(self.role)
        self.function: lambda_.Function = lambda_.Function(
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
            layers=[_public_layer(self) if powertools_layer is None else checked_layer(self, powertools_layer)],
            environment=variables,
            environment_encryption=encryption_key,
            # Two runs beside each other could both act on what only one of them changed. Lambda refuses the
            # deployment where the account would have fewer than 100 left for its other functions.
            reserved_concurrent_executions=1,
            retry_attempts=retries,
            max_event_age=max_event_age,
        )
        self._function_name, self._function_arn = self.function.function_name, self.function.function_arn
        # CDK sets what becomes of events for $LATEST, as for every function that has such settings:
        # https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_lambda.EventInvokeConfig.html
        # Its own destination may read the queue's attributes, too.
        for config in self.function.node.find_all():
            if isinstance(config, lambda_.CfnEventInvokeConfig):
                config.add_property_override("DestinationConfig.OnFailure.Destination", self._failed_events_arn)
        # CDK names the role in DependsOn, though the reference to it says as much: cfn-lint W3005.
        ignore_lint(default_child(self.function), "W3005")
        self.error_alarm: cloudwatch.Alarm = self._watch_errors(called)
        self.failed_events_alarm: cloudwatch.Alarm = self._watch_failed_events(called)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The function's role, for what else its code calls."""
        return self.role.grant_principal

    def grant_invoke(self, grantee: iam.IGrantable, *, alias: str | None = None) -> iam.Grant:
        """Let a principal call the function, through one alias or without any, and in no other way.

        The alias says what a caller may order: Lambda gives the function the alias of a call, and not its caller.

        Args:
            grantee: A role, user or function.
            alias: The alias, which is made where there is none of that name. Default: - none.

        Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-api-permissions-ref.html
        """
        arn = self._function_arn if alias is None else self.alias(alias).ref
        return iam.Grant.add_to_principal(grantee=grantee, actions=["lambda:InvokeFunction"], resource_arns=[arn])

    def alias(self, name: str) -> lambda_.CfnAlias:
        """Return the alias of a name; it is made where there is none.

        Args:
            name: The alias's name.
        """
        found = self.node.try_find_child(name.capitalize())
        if isinstance(found, lambda_.CfnAlias):
            return found
        # L1, because an alias of the newest code needs no version. The pattern of FunctionVersion allows $LATEST.
        # https://docs.aws.amazon.com/lambda/latest/api/API_CreateAlias.html
        alias = lambda_.CfnAlias(
            self,
            name.capitalize(),
            function_name=self._function_name,
            function_version="$LATEST",
            name=name,
        )
        # What is set for the function's own events does not hold for an alias: Lambda would try those for six hours.
        # https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
        on_failure = lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self._failed_events_arn)
        config = lambda_.CfnEventInvokeConfig(
            self,
            f"{name.capitalize()}Events",
            function_name=self._function_name,
            qualifier=name,
            maximum_retry_attempts=self._retries,
            maximum_event_age_in_seconds=self._max_event_age_seconds,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(on_failure=on_failure),
        )
        config.node.add_dependency(alias)
        return alias

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
            period=period or to_duration(_PERIOD),
        )

    def grant_send_failed_events(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal put events that did not reach the function into its queue.

        Args:
            grantee: What delivers the events, such as the role of a schedule.
        """
        grant = iam.Grant.add_to_principal(
            grantee=grantee, actions=["sqs:SendMessage"], resource_arns=[self._failed_events_arn]
        )
        if self._encryption_key is None:
            return grant
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
        return grant.combine(self._encryption_key.grant(grantee, "kms:Decrypt", "kms:GenerateDataKey"))

    def _make_queue(self, encryption_key: kms.IKey | None) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "FailedEvents",
            encryption=sqs.QueueEncryption.SQS_MANAGED if encryption_key is None else sqs.QueueEncryption.KMS,
            encryption_master_key=encryption_key,
            enforce_ssl=True,
            retention_period=to_duration(_FAILED_EVENTS_KEPT),
        )
        acknowledge(
            queue,
            "AwsSolutions-SQS3",
            "This queue itself holds the events that the function could not handle.",
        )
        return queue

    def add_backup_topic(self, topic: sns.ITopic) -> None:
        """Let the function publish to another topic what the alert topic does not take.

        Args:
            topic: The topic.

        Raises:
            ValueError: The settings are too large beside its ARN.
        """
        self._variables[BACKUP_TOPIC_VARIABLE] = topic.topic_arn
        _check_size(self.package, self._variables, self._longest_id_bytes)
        self.function.add_environment(BACKUP_TOPIC_VARIABLE, topic.topic_arn)
        topic.grant_publish(self.role)

    def alarm_description(self, alarm: str, trouble: str, remedy: str, *, place: str = "") -> str:
        """Say what is wrong, which log or queue shows it, what to do, and where that is documented.

        Args:
            alarm: The alarm's id.
            trouble: What is wrong.
            remedy: What to do.
            place: What shows it. Default: - the function's log group.
        """
        place = place or f"log group {self._log_group_name}"
        return (
            f"{self._cluster_name}: {trouble}. Look in the {place}. {remedy}. Runbook: {runbook(self.package, alarm)}"
        )

    def _watch_failed_events(self, called: str) -> cloudwatch.Alarm:
        sent = self.failed_events.metric_number_of_messages_sent(
            period=to_duration(_FAILED_EVENTS_PERIOD), statistic="Sum"
        )
        alarm = sent.create_alarm(
            self,
            "FailedEventsAlarm",
            alarm_description=self.alarm_description(
                "FailedEvents",
                f"more than {_MAX_FAILED_EVENTS} events failed in {called} or did not reach it within "
                f"{_FAILED_EVENTS_PERIOD.total_seconds() / 60:g} minutes",
                "Receive its messages, which hold each event with its error, and mend the cause",
                place=f"queue {self.failed_events.queue_name}",
            ),
            threshold=_MAX_FAILED_EVENTS,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            # A queue that nothing is sent to reports nothing.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(self.notification)
        return alarm

    def _watch_errors(self, called: str) -> cloudwatch.Alarm:
        alarm = self.function.metric_errors(period=to_duration(_PERIOD)).create_alarm(
            self,
            "Errors",
            alarm_description=self.alarm_description(
                "Errors",
                f"{called} has failed in two of its last three periods of 5 minutes",
                "Correct what its last error names",
            ),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # One failed run is made good by the next.
            evaluation_periods=3,
            datapoints_to_alarm=2,
            # No invocation is no proof of health: then the alarm has no state, neither OK nor in alarm.
            treat_missing_data=cloudwatch.TreatMissingData.MISSING,
        )
        # No OK action: the alarm of a new function goes from no state to OK, and nothing has ended.
        alarm.add_alarm_action(self.notification)
        return alarm


def _environment(
    package: str, settings: Mapping[str, object], more: Mapping[str, str], longest_id: int
) -> dict[str, str]:
    variables = {
        f"{package.upper()}_SETTINGS": json.dumps(settings, separators=(",", ":"), sort_keys=True, allow_nan=False),
        "POWERTOOLS_SERVICE_NAME": package,
        "POWERTOOLS_METRICS_NAMESPACE": FUNCTION_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": "INFO",
        **more,
    }
    _check_size(package, variables, longest_id)
    return variables


def _check_size(package: str, variables: Mapping[str, str], longest_id: int) -> None:
    size = sum(len(name) + _bytes(value, longest_id) for name, value in variables.items())
    if size > _MAXIMUM_ENVIRONMENT_BYTES:
        raise ValueError(
            f"settings of {package} must fit into {_MAXIMUM_ENVIRONMENT_BYTES} bytes of environment, got {size}: "
            "use fewer node groups, idle policies, idle signals, data sets, patterns of preload, services, linked "
            "accounts or emails, or shorter names"
        )


def _bytes(value: str, longest_id: int) -> int:
    literals = _TOKEN.sub("", value)
    tokens = len(_TOKEN.findall(value))
    return len(literals.encode()) + tokens * (longest_id if literals else _UNRESOLVED_BYTES)


def _public_layer(scope: Construct) -> lambda_.ILayerVersion:
    return powertools_layer(scope, "Powertools")
