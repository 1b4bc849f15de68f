"""CloudWatch alarms and log groups."""

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    tag_changes,
    tags_of,
)


class Alarm(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-alarm.html."""

    type = "AWS::CloudWatch::Alarm"
    carries_out = frozenset(
        {
            "ActionsEnabled",
            "AlarmActions",
            "AlarmDescription",
            "AlarmName",
            "ComparisonOperator",
            "DatapointsToAlarm",
            "Dimensions",
            "EvaluateLowSampleCountPercentile",
            "EvaluationPeriods",
            "ExtendedStatistic",
            "InsufficientDataActions",
            "MetricName",
            "Metrics",
            "Namespace",
            "OKActions",
            "Period",
            "Statistic",
            "Tags",
            "Threshold",
            "ThresholdMetricId",
            "TreatMissingData",
            "Unit",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("AlarmName") or call.physical_name()
        self._put(call, name, properties, Tags=as_tags(tags_of(properties)))
        call.made(name)
        return {"Arn": self._arn(call)}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self._put(call, call.physical_id, properties)
        put, removed = tag_changes(properties, before)
        if put:
            call.client("cloudwatch").tag_resource(ResourceARN=self._arn(call), Tags=as_tags(put))
        if removed:
            call.client("cloudwatch").untag_resource(ResourceARN=self._arn(call), TagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("cloudwatch").delete_alarms(AlarmNames=[call.physical_id])

    @staticmethod
    def _put(call: Call, name: str, properties: Properties, **more: object) -> None:
        settings = {key: value for key, value in properties.items() if key not in {"AlarmName", "Tags"}}
        call.client("cloudwatch").put_metric_alarm(AlarmName=name, **settings, **more)

    @staticmethod
    def _arn(call: Call) -> str:
        return f"arn:{call.partition}:cloudwatch:{call.region}:{call.account}:alarm:{call.physical_id}"


class LogGroup(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-loggroup.html."""

    type = "AWS::Logs::LogGroup"
    carries_out = frozenset({"KmsKeyId", "LogGroupClass", "LogGroupName", "RetentionInDays", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("LogGroupName") or call.physical_name(512)
        request = {
            api: properties[key]
            for key, api in (("KmsKeyId", "kmsKeyId"), ("LogGroupClass", "logGroupClass"))
            if key in properties
        }
        tags = tags_of(properties)
        call.client("logs").create_log_group(logGroupName=name, **request, **({"tags": tags} if tags else {}))
        call.made(name)
        self._retain(call, properties)
        return {"Arn": self._arn(call)}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "RetentionInDays", "Tags")
        self._retain(call, properties)
        put, removed = tag_changes(properties, before)
        arn = self._arn(call).removesuffix(":*")
        if put:
            call.client("logs").tag_resource(resourceArn=arn, tags=put)
        if removed:
            call.client("logs").untag_resource(resourceArn=arn, tagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("logs").delete_log_group(logGroupName=call.physical_id)

    @staticmethod
    def _retain(call: Call, properties: Properties) -> None:
        logs, name = call.client("logs"), call.physical_id
        if "RetentionInDays" in properties:
            logs.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
        else:
            logs.delete_retention_policy(logGroupName=name)

    @staticmethod
    def _arn(call: Call) -> str:
        return f"arn:{call.partition}:logs:{call.region}:{call.account}:log-group:{call.physical_id}:*"


HANDLERS: tuple[Handler, ...] = (Alarm(), LogGroup())
