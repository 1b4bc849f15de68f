"""Lambda functions, what may call them, and EventBridge Scheduler's schedules."""

import io
import zipfile
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    changed,
    picked,
    tag_changes,
    tags_of,
)


class Function(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html."""

    type = "AWS::Lambda::Function"
    # Of the same name and shape in CreateFunction and UpdateFunctionConfiguration.
    _configuration = (
        "DeadLetterConfig",
        "Description",
        "Environment",
        "EphemeralStorage",
        "Handler",
        "Layers",
        "LoggingConfig",
        "MemorySize",
        "Role",
        "Runtime",
        "Timeout",
        "VpcConfig",
    )
    carries_out = frozenset(
        {
            *_configuration,
            "Architectures",
            "Code",
            "FunctionName",
            "KmsKeyArn",
            "PackageType",
            "ReservedConcurrentExecutions",
            "Tags",
            "TracingConfig",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        client = call.client("lambda")
        name = properties.get("FunctionName") or call.physical_name(64)
        function = client.create_function(
            FunctionName=name,
            Code=_code(properties),
            Tags=tags_of(properties),
            **picked(properties, *self._configuration, "Architectures", "PackageType", "TracingConfig"),
            **({"KMSKeyArn": properties["KmsKeyArn"]} if "KmsKeyArn" in properties else {}),
        )
        call.made(name)
        self._reserve(call, properties)
        return {"Arn": function["FunctionArn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(
            properties,
            before,
            *self._configuration,
            "Architectures",
            "Code",
            "ReservedConcurrentExecutions",
            "Tags",
            "TracingConfig",
        )
        client, name = call.client("lambda"), call.physical_id
        if names & {"Architectures", "Code"}:
            client.update_function_code(FunctionName=name, **_code(properties), **picked(properties, "Architectures"))
        if names & {*self._configuration, "TracingConfig"}:
            client.update_function_configuration(
                FunctionName=name, **picked(properties, *self._configuration, "TracingConfig")
            )
        if "ReservedConcurrentExecutions" in names:
            self._reserve(call, properties)
        arn = client.get_function(FunctionName=name)["Configuration"]["FunctionArn"]
        put, removed = tag_changes(properties, before)
        if put:
            client.tag_resource(Resource=arn, Tags=put)
        if removed:
            client.untag_resource(Resource=arn, TagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("lambda").delete_function(FunctionName=call.physical_id)

    @staticmethod
    def _reserve(call: Call, properties: Properties) -> None:
        client, reserved = call.client("lambda"), properties.get("ReservedConcurrentExecutions")
        if reserved is not None:
            client.put_function_concurrency(FunctionName=call.physical_id, ReservedConcurrentExecutions=reserved)
        else:
            client.delete_function_concurrency(FunctionName=call.physical_id)


def _code(properties: Properties) -> dict[str, Any]:
    """Return the function's code; inline code is zipped as CloudFormation does it."""
    code = dict(properties["Code"])
    if "ZipFile" in code:
        extension = "js" if str(properties.get("Runtime", "")).startswith("nodejs") else "py"
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(f"index.{extension}", code["ZipFile"])
        code["ZipFile"] = buffer.getvalue()
    return code


class Alias(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-alias.html."""

    type = "AWS::Lambda::Alias"
    carries_out = frozenset({"Description", "FunctionName", "FunctionVersion", "Name"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        arn = call.client("lambda").create_alias(**properties)["AliasArn"]
        return {"AliasArn": call.made(arn)}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Description", "FunctionVersion")
        call.client("lambda").update_alias(**properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("lambda").delete_alias(**picked(call.properties, "FunctionName", "Name"))


class Permission(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-permission.html."""

    type = "AWS::Lambda::Permission"
    carries_out = frozenset({"Action", "FunctionName", "Principal", "PrincipalOrgID", "SourceAccount", "SourceArn"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        statement = call.physical_name(100)
        call.client("lambda").add_permission(StatementId=statement, **properties)
        return {"Id": call.made(statement)}

    def delete(self, call: Call) -> None:
        call.client("lambda").remove_permission(
            FunctionName=call.properties["FunctionName"], StatementId=call.physical_id
        )


class EventInvokeConfig(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventinvokeconfig.html."""

    type = "AWS::Lambda::EventInvokeConfig"
    carries_out = frozenset(
        {"DestinationConfig", "FunctionName", "MaximumEventAgeInSeconds", "MaximumRetryAttempts", "Qualifier"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        self._put(call, properties)
        call.made(f"{properties['FunctionName']}|{properties['Qualifier']}")
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, *(self.carries_out - {"FunctionName", "Qualifier"}))
        self._put(call, properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("lambda").delete_function_event_invoke_config(
            **picked(call.properties, "FunctionName", "Qualifier")
        )

    @staticmethod
    def _put(call: Call, properties: Properties) -> None:
        call.client("lambda").put_function_event_invoke_config(**properties)


class Schedule(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-scheduler-schedule.html."""

    type = "AWS::Scheduler::Schedule"
    carries_out = frozenset(
        {
            "Description",
            "EndDate",
            "FlexibleTimeWindow",
            "GroupName",
            "KmsKeyArn",
            "Name",
            "ScheduleExpression",
            "ScheduleExpressionTimezone",
            "StartDate",
            "State",
            "Target",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        self._check(call, properties)
        name = properties.get("Name") or call.physical_name(64)
        answer = call.client("scheduler").create_schedule(**{**properties, "Name": name})
        call.made(name)
        return {"Arn": answer["ScheduleArn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if "GroupName" in changed(properties, before):
            raise self.cannot_change(["GroupName"])
        self._check(call, properties)
        call.client("scheduler").update_schedule(**{**properties, "Name": call.physical_id})
        return {}

    def delete(self, call: Call) -> None:
        call.client("scheduler").delete_schedule(Name=call.physical_id, **picked(call.properties, "GroupName"))

    @staticmethod
    def _check(call: Call, properties: Properties) -> None:
        """Refuse a role that EventBridge Scheduler could not assume, as the service does."""
        role = properties["Target"]["RoleArn"].rpartition("/")[2]
        trust = call.client("iam").get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
        services = [
            statement.get("Principal", {}).get("Service")
            for statement in trust["Statement"]
            if isinstance(statement.get("Principal"), dict)
        ]
        named = {name for service in services for name in ([service] if isinstance(service, str) else service or [])}
        if "scheduler.amazonaws.com" not in named:
            raise HandlerError(
                "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
            )


HANDLERS: tuple[Handler, ...] = (
    Function(),
    Alias(),
    Permission(),
    EventInvokeConfig(),
    Schedule(),
)
