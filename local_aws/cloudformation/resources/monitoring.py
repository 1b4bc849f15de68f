"""CloudWatch alarms, dashboards and log groups."""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Handler
from local_aws.cloudformation.resources.regular import Regular

_ALARM = (
    "ActionsEnabled AlarmActions AlarmDescription ComparisonOperator DatapointsToAlarm Dimensions "
    "EvaluateLowSampleCountPercentile EvaluationPeriods ExtendedStatistic InsufficientDataActions MetricName Metrics "
    "Namespace OKActions Period Statistic Threshold ThresholdMetricId TreatMissingData Unit"
)

HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::CloudWatch::Alarm",
        service="cloudwatch",
        create_with=Action("put_metric_alarm", _ALARM),
        updates=(Action("put_metric_alarm", _ALARM, id="AlarmName", whole=True),),
        delete_with=Action("delete_alarms", id="AlarmNames"),
        named="AlarmName:AlarmName",
        attributes={"Arn": "arn:{partition}:cloudwatch:{region}:{account}:alarm:{id}"},
        tag_by="Arn",
    ),
    Regular(
        type="AWS::CloudWatch::Dashboard",
        service="cloudwatch",
        create_with=Action("put_dashboard", "DashboardBody"),
        updates=(Action("put_dashboard", "DashboardBody", id="DashboardName", whole=True),),
        delete_with=Action("delete_dashboards", id="DashboardNames"),
        named="DashboardName:DashboardName",
    ),
    Regular(
        type="AWS::Logs::LogGroup",
        service="logs",
        create_with=Action("create_log_group", "KmsKeyId LogGroupClass"),
        settings=(
            Action("put_retention_policy", "RetentionInDays", id="logGroupName", without="delete_retention_policy"),
        ),
        delete_with=Action("delete_log_group", id="logGroupName"),
        named="LogGroupName:logGroupName",
        name_limit=512,
        attributes={"Arn": "arn:{partition}:logs:{region}:{account}:log-group:{id}:*"},
        tag_by="Arn",
    ),
)
