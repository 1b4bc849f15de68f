"""Lambda functions, what may call them, and EventBridge Scheduler's schedules."""

import io
import zipfile

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Regular

# What UpdateFunctionConfiguration gives a function that has none of a setting any longer.
_UNSET = {"Description": "", "Environment": {}, "KmsKeyArn": "", "Layers": []}
_CONFIGURATION = (
    "DeadLetterConfig Description Environment EphemeralStorage Handler KmsKeyArn:KMSKeyArn Layers LoggingConfig "
    "MemorySize Role Runtime Timeout"
)
_CODE = "Code.ZipFile:ZipFile Code.S3Bucket:S3Bucket Code.S3Key:S3Key Architectures"
_ALIAS = "Description FunctionName FunctionVersion Name"
_EVENTS = "DestinationConfig FunctionName MaximumEventAgeInSeconds MaximumRetryAttempts Qualifier"
_SCHEDULE = (
    "Description EndDate FlexibleTimeWindow KmsKeyArn ScheduleExpression ScheduleExpressionTimezone StartDate State "
    "Target"
)


def _zipped(_: Call, properties: Properties) -> Properties:
    """Zip inline code as CloudFormation does it."""
    code = properties["Code"]
    if not isinstance(code.get("ZipFile"), str):
        return properties
    extension = "js" if str(properties.get("Runtime", "")).startswith("nodejs") else "py"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"index.{extension}"), code["ZipFile"])
    return {**properties, "Code": {"ZipFile": buffer.getvalue()}}


def _trusted(call: Call, properties: Properties) -> Properties:
    """Refuse a role that EventBridge Scheduler could not assume, as the service does."""
    role = properties["Target"]["RoleArn"].rpartition("/")[2]
    trust = call.client("iam").get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    principals = [statement.get("Principal", {}) for statement in trust["Statement"]]
    services = [principal.get("Service", []) for principal in principals if isinstance(principal, dict)]
    named = {name for service in services for name in ([service] if isinstance(service, str) else service)}
    if "scheduler.amazonaws.com" not in named:
        raise HandlerError("The execution role you provide must allow AWS EventBridge Scheduler to assume the role.")
    return properties


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::Lambda::Function",
        service="lambda",
        create_with=Action("create_function", f"{_CONFIGURATION} Architectures Code"),
        settings=(
            Action(
                "put_function_concurrency",
                "ReservedConcurrentExecutions",
                id="FunctionName",
                without="delete_function_concurrency",
            ),
        ),
        updates=(
            Action("update_function_code", _CODE, id="FunctionName"),
            Action("update_function_configuration", _CONFIGURATION, id="FunctionName", absent=_UNSET),
        ),
        delete_with=Action("delete_function", id="FunctionName"),
        named="FunctionName:FunctionName",
        name_limit=64,
        attributes={"Arn": "FunctionArn"},
        tag_by="Arn",
        prepare=_zipped,
    ),
    Regular(
        type="AWS::Lambda::Alias",
        service="lambda",
        create_with=Action("create_alias", _ALIAS),
        updates=(Action("update_alias", _ALIAS, absent={"Description": ""}),),
        delete_with=Action("delete_alias", "FunctionName Name"),
        id="AliasArn",
        can_tag=False,
    ),
    Regular(
        type="AWS::Lambda::Permission",
        service="lambda",
        create_with=Action("add_permission", "Action FunctionName Principal SourceAccount SourceArn"),
        delete_with=Action("remove_permission", "FunctionName", id="StatementId"),
        named=":StatementId",
        name_limit=100,
        attributes={"Id": "{id}"},
        can_tag=False,
    ),
    Regular(
        type="AWS::Lambda::EventInvokeConfig",
        service="lambda",
        create_with=Action("put_function_event_invoke_config", _EVENTS),
        updates=(Action("put_function_event_invoke_config", _EVENTS, whole=True),),
        delete_with=Action("delete_function_event_invoke_config", "FunctionName Qualifier"),
        id="{FunctionName}|{Qualifier}",
        can_tag=False,
    ),
    Regular(
        type="AWS::Scheduler::Schedule",
        service="scheduler",
        create_with=Action("create_schedule", _SCHEDULE),
        updates=(Action("update_schedule", _SCHEDULE, id="Name", whole=True),),
        delete_with=Action("delete_schedule", id="Name"),
        named="Name:Name",
        name_limit=64,
        attributes={"Arn": "ScheduleArn"},
        can_tag=False,
        prepare=_trusted,
    ),
)
