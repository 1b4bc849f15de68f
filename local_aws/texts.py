"""What services refuse of the texts in a call; moto stores any.

A service's model states the pattern, the least and the greatest length of most members, as its API reference prints
them. The rows below hold what the models leave out, each with the address of the document that has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped] # it ships no types
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from moto.core.utils import get_service_model

from local_aws.calls import Call

_READS = ("Describe", "Get", "Head", "List")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a service takes for a text, where its model does not say.

    Attributes:
        places: The members, as `service Shape.Member`; a map's keys are `.*`, its values `.$` or their keys.
        unless: Another parameter of the call and the values with which the row does not hold.
        pattern: A regular expression that the whole text matches.
        code: The error's code. Empty: that of the service's other validation.
        message: The error's message; `{value}` is the text.
        most: How many there may be of them, where the place is a list or a map.
        most_bytes: How many bytes the names and values of a map may have together.
        source: The address of the document.
    """

    places: tuple[str, ...]
    unless: tuple[str, Sequence[str]] = ("", ())
    pattern: str = ""
    code: str = ""
    message: str
    most: int | None = None
    most_bytes: int | None = None
    source: str

    def refuses(self, value: Any) -> bool:
        """Tell whether a text does not match, or whether there are too many."""
        if isinstance(value, str):
            return bool(self.pattern) and not _compiled(self.pattern).fullmatch(value)
        if self.most_bytes is not None:
            return sum(len(f"{name}{text}".encode()) for name, text in value.items()) > self.most_bytes
        return self.most is not None and len(value) > self.most


_API = "https://docs.aws.amazon.com"
_EC2_API = f"{_API}/AWSEC2/latest/APIReference"
_CLOUDWATCH_API = f"{_API}/AmazonCloudWatch/latest/APIReference"
_GROUP_TEXT = r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]"
_GROUP_WORDS = (
    "Valid descriptions are strings less than 256 characters from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*"
)
_PLAIN_TAG = r"[\p{L}\p{Z}\p{N}_.:/=+\-@]*"

# Where requests carry tags: the keys, and the lists or maps that at most 50 fit in.
_TAG_KEYS = (
    "autoscaling Tag.Key",
    "cloudformation Tag.Key",
    "cloudwatch Tag.Key",
    "ec2 Tag.Key",
    "events Tag.Key",
    "fsx Tag.Key",
    "iam Tag.Key",
    "kms Tag.TagKey",
    "lambda CreateFunctionRequest.Tags.*",
    "lambda TagResourceRequest.Tags.*",
    "logs CreateLogGroupRequest.tags.*",
    "logs TagResourceRequest.tags.*",
    "resource-groups CreateGroupInput.Tags.*",
    "resource-groups TagInput.Tags.*",
    "s3 Tag.Key",
    "sns Tag.Key",
    "sqs CreateQueueRequest.tags.*",
    "sqs TagQueueRequest.Tags.*",
    "ssm Tag.Key",
)
_TAG_LISTS = (
    "autoscaling CreateAutoScalingGroupType.Tags",
    "cloudformation CreateStackInput.Tags",
    "ec2 CreateTagsRequest.Tags",
    "ec2 TagSpecification.Tags",
    "fsx CreateFileSystemRequest.Tags",
    "lambda CreateFunctionRequest.Tags",
    "logs CreateLogGroupRequest.tags",
    "s3 Tagging.TagSet",
    "sns CreateTopicInput.Tags",
    "sqs CreateQueueRequest.tags",
)

ROWS = (
    Row(
        places=_TAG_KEYS,
        pattern=r"(?i:(?!aws:)).*",
        message="Tag keys starting with 'aws:' are reserved for internal use",
        source=f"{_API}/tag-editor/latest/userguide/best-practices-and-strats.html",
    ),
    Row(
        places=_TAG_LISTS,
        most=50,
        code="TagLimitExceeded",
        message="You have reached the maximum number of tags on the resource: 50.",
        source=f"{_API}/tag-editor/latest/userguide/best-practices-and-strats.html",
    ),
    # EC2
    Row(
        places=("ec2 IpRange.Description", "ec2 Ipv6Range.Description"),
        pattern=_GROUP_TEXT + "{0,255}",
        message=f"Invalid rule description. {_GROUP_WORDS}",
        source=f"{_EC2_API}/API_IpRange.html",
    ),
    Row(
        places=("ec2 PrefixListId.Description", "ec2 UserIdGroupPair.Description"),
        pattern=f"(?:(?!&){_GROUP_TEXT}){{0,255}}",
        message=f"Invalid rule description. {_GROUP_WORDS}, without &",
        source=f"{_EC2_API}/API_UserIdGroupPair.html",
    ),
    Row(
        places=("ec2 CreateSecurityGroupRequest.Description",),
        pattern=_GROUP_TEXT + "{1,255}",
        message=f"Invalid security group description. {_GROUP_WORDS}",
        source=f"{_EC2_API}/API_CreateSecurityGroup.html",
    ),
    Row(
        places=("ec2 CreateSecurityGroupRequest.GroupName",),
        pattern=f"(?!sg-){_GROUP_TEXT}{{1,255}}",
        message="Value ({value}) for parameter GroupName is invalid. Group names may not be in the format sg-*, "
        "and hold up "
        "to 255 characters of the documented set.",
        source=f"{_EC2_API}/API_CreateSecurityGroup.html",
    ),
    Row(
        places=("ec2 Tag.Key",),
        pattern=r"[\s\S]{1,127}",
        message="Tag key exceeds the maximum length of 127 characters",
        source=f"{_EC2_API}/API_Tag.html",
    ),
    Row(
        places=("ec2 Tag.Value",),
        pattern=r"[\s\S]{0,256}",
        message="Tag value exceeds the maximum length of 256 characters",
        source=f"{_EC2_API}/API_Tag.html",
    ),
    Row(
        places=("ec2 CreatePlacementGroupRequest.GroupName",),
        pattern=r"[ -~]{1,255}",
        message="Value ({value}) for parameter groupName is invalid.",
        source=f"{_EC2_API}/API_CreatePlacementGroup.html",
    ),
    Row(
        places=("ec2 CreateLaunchTemplateRequest.LaunchTemplateName",),
        pattern=r"[a-zA-Z0-9().\-/_]{3,128}",
        code="InvalidLaunchTemplateName.MalformedException",
        message="A launch template name must be between 3 and 128 characters, and may contain letters, numbers, "
        "and the "
        "following characters: - ( ) . / _",
        source=f"{_EC2_API}/API_CreateLaunchTemplate.html",
    ),
    Row(
        places=(
            "ec2 CreateLaunchTemplateRequest.VersionDescription",
            "ec2 CreateLaunchTemplateVersionRequest.VersionDescription",
        ),
        pattern=r"[\s\S]{0,255}",
        message="The version description must have at most 255 characters.",
        source=f"{_EC2_API}/API_CreateLaunchTemplate.html",
    ),
    Row(
        places=("autoscaling CreateAutoScalingGroupType.AutoScalingGroupName",),
        pattern=r"[!-9;-~]{1,255}",
        message="The name of an Auto Scaling group can contain any ASCII character 33 to 126 but a colon.",
        source=f"{_API}/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html",
    ),
    # SNS and SQS
    Row(
        places=("sns PublishInput.Subject",),
        pattern=r"[!-~][ -~]{0,98}",
        message="Invalid parameter: Subject",
        source=f"{_API}/sns/latest/api/API_Publish.html",
    ),
    Row(
        places=("sns PublishInput.Message",),
        pattern=r"[\s\S]+",
        message="Invalid parameter: Empty message",
        source=f"{_API}/sns/latest/api/API_Publish.html",
    ),
    Row(
        places=("sns CreateTopicInput.Name",),
        pattern=r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo",
        message="Invalid parameter: Topic Name",
        source=f"{_API}/sns/latest/api/API_CreateTopic.html",
    ),
    Row(
        places=("sns CreateTopicInput.Attributes.DisplayName",),
        pattern=r"[^\x00-\x08\x0a-\x1f\x7f]{0,100}",
        message="Invalid parameter: DisplayName",
        source=f"{_API}/AWSCloudFormation/latest/TemplateReference/aws-resource-sns-topic.html",
    ),
    Row(
        places=("sns SubscribeInput.Endpoint",),
        pattern=r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+|[a-z]+:\S+|\+?[0-9]+",
        message="Invalid parameter: Email address",
        source=f"{_API}/sns/latest/api/API_Subscribe.html",
    ),
    Row(
        places=(
            "sns Tag.Key",
            "sns Tag.Value",
            "kms Tag.TagKey",
            "kms Tag.TagValue",
        ),
        pattern=_PLAIN_TAG,
        message="Tag keys and values can contain letters, digits, spaces and _ . : / = + - @",
        source=f"{_API}/tag-editor/latest/userguide/best-practices-and-strats.html",
    ),
    Row(
        places=("sqs CreateQueueRequest.tags.*", "sqs TagQueueRequest.Tags.*"),
        pattern=r"[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}",
        message="Tag keys can have 1 to 128 letters, digits, spaces and _ . : / = + - @",
        source=f"{_API}/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html",
    ),
    Row(
        places=("sqs CreateQueueRequest.tags.$", "sqs TagQueueRequest.Tags.$"),
        pattern=r"(?i:(?!aws:))[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}",
        message="Tag values can have at most 256 letters, digits, spaces and _ . : / = + - @, and not aws: first",
        source=f"{_API}/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html",
    ),
    Row(
        places=("sqs CreateQueueRequest.QueueName",),
        pattern=r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo",
        message="Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        source=f"{_API}/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html",
    ),
    # CloudWatch
    Row(
        places=("cloudwatch PutMetricAlarmInput.AlarmName",),
        pattern=r"[^\x00-\x1f\x7f]*",
        message="AlarmName must not contain ASCII control characters",
        source=f"{_CLOUDWATCH_API}/API_PutMetricAlarm.html",
    ),
    Row(
        places=(
            "cloudwatch Metric.Namespace",
            "cloudwatch PutMetricAlarmInput.Namespace",
            "cloudwatch PutMetricDataInput.Namespace",
        ),
        pattern=r"[ -~]*",
        code="InvalidParameterValue",
        message="The value {value} for parameter Namespace must contain only ASCII characters, and no control "
        "characters.",
        source=f"{_CLOUDWATCH_API}/API_PutMetricData.html",
    ),
    Row(
        places=("cloudwatch PutMetricDataInput.Namespace",),
        pattern=r"(?!AWS/).*",
        code="InvalidParameterValue",
        message="The value AWS/ for parameter Namespace is invalid.",
        source=f"{_CLOUDWATCH_API}/API_PutMetricData.html",
    ),
    Row(
        places=("cloudwatch Dimension.Name",),
        pattern=r"(?!:)(?=.*[!-~])[ -~]*",
        code="InvalidParameterValue",
        message="The value {value} for parameter Dimensions.member.1.Name must be ASCII with a character that "
        "is not white "
        "space, and must not start with a colon.",
        source=f"{_CLOUDWATCH_API}/API_Dimension.html",
    ),
    Row(
        places=("cloudwatch Dimension.Value",),
        pattern=r"(?=.*[!-~])[ -~]*",
        code="InvalidParameterValue",
        message="The value {value} for parameter Dimensions.member.1.Value must be ASCII with a character that "
        "is not white "
        "space.",
        source=f"{_CLOUDWATCH_API}/API_Dimension.html",
    ),
    Row(
        places=("cloudwatch MetricDataQuery.Id",),
        pattern=r"[a-z][a-zA-Z0-9_]*",
        message='The value of the "Id" must start with a lowercase letter, and contain letters, numbers and '
        "underscore.",
        source=f"{_CLOUDWATCH_API}/API_MetricDataQuery.html",
    ),
    Row(
        places=("logs CreateLogGroupRequest.logGroupName",),
        pattern=r"(?!aws/).*",
        message="Log groups starting with AWS/ are reserved for AWS.",
        source=f"{_API}/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
    ),
    # Lambda and Systems Manager
    Row(
        places=("lambda CreateFunctionRequest.FunctionName",),
        pattern=r"[A-Za-z0-9-_]{1,64}|arn:.*",
        message="1 validation error detected: Value '{value}' at 'functionName' failed to satisfy constraint: "
        "Member must "
        "have length less than or equal to 64",
        source=f"{_API}/lambda/latest/api/API_CreateFunction.html",
    ),
    Row(
        places=("lambda Environment.Variables",),
        most_bytes=4096,
        code="InvalidParameterValueException",
        message="Lambda was unable to configure your environment variables because the environment variables you "
        "have provided exceeded the 4KB limit. String measured: {value}",
        source=f"{_API}/lambda/latest/dg/configuration-envvars.html",
    ),
    Row(
        places=("lambda Environment.Variables.*",),
        pattern=r"(?!(?:_HANDLER|_X_AMZN_TRACE_ID|AWS_DEFAULT_REGION|AWS_REGION|AWS_EXECUTION_ENV|"
        r"AWS_LAMBDA_FUNCTION_NAME|AWS_LAMBDA_FUNCTION_MEMORY_SIZE|AWS_LAMBDA_FUNCTION_VERSION|"
        r"AWS_LAMBDA_INITIALIZATION_TYPE|AWS_LAMBDA_LOG_GROUP_NAME|AWS_LAMBDA_LOG_STREAM_NAME|AWS_ACCESS_KEY|"
        r"AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY|AWS_SESSION_TOKEN|AWS_LAMBDA_RUNTIME_API|LAMBDA_TASK_ROOT|"
        r"LAMBDA_RUNTIME_DIR)$).*",
        code="InvalidParameterValueException",
        message="Lambda was unable to configure your environment variables because the environment variables you "
        "have provided contains reserved keys that are currently not supported for modification. Reserved keys used "
        "in this request: {value}",
        source=f"{_API}/lambda/latest/dg/configuration-envvars.html",
    ),
    Row(
        places=("ssm PutParameterRequest.Name",),
        pattern=r"(?i:(?!/?(?:aws|ssm)))(?=.{1,950}$)(?:[a-zA-Z0-9_.\-]+|(?:/[a-zA-Z0-9_.\-]+){1,15})",
        message='Parameter name: can\'t be prefixed with "aws" or "ssm" (case-insensitive). If formed as a path, it '
        "can consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers "
        "and the following 3 symbols .-_",
        source=f"{_API}/systems-manager/latest/APIReference/API_PutParameter.html",
    ),
    Row(
        places=("ssm PutParameterRequest.Value",),
        unless=("Tier", ("Advanced", "Intelligent-Tiering")),
        pattern=r"[\s\S]{1,4096}",
        message="Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger "
        "parameter value, upgrade the parameter to use the advanced-parameter tier.",
        source=f"{_API}/systems-manager/latest/APIReference/API_PutParameter.html",
    ),
    Row(
        places=("ssm PutParameterRequest.Value",),
        pattern=r"[\s\S]{1,8192}",
        message="Advanced tier parameters support a maximum parameter value of 8192 characters.",
        source=f"{_API}/systems-manager/latest/APIReference/API_PutParameter.html",
    ),
    Row(
        places=("ssm PutParameterRequest.Value",),
        pattern=r"(?![\s\S]*\{\{[\s\S]*\}\})[\s\S]*",
        message='Parameter value can\'t nest another parameter. Do not use "{{}}" in the value.',
        source=f"{_API}/systems-manager/latest/APIReference/API_PutParameter.html",
    ),
    Row(
        places=("ssm CreateDocumentRequest.Name",),
        pattern=r"(?i:(?!aws|amazon|amzn)).*",
        message="The document name {value} starts with a prefix that is reserved.",
        source=f"{_API}/systems-manager/latest/APIReference/API_CreateDocument.html",
    ),
    # Storage, keys and groups of resources
    Row(
        places=("resource-groups CreateGroupInput.Name",),
        pattern=r"(?i:(?!aws)).*",
        message="Group names cannot start with AWS: {value}",
        source=f"{_API}/ARG/latest/APIReference/API_CreateGroup.html",
    ),
    Row(
        places=("s3 CreateBucketRequest.Bucket",),
        pattern=r"(?!xn--|sthree-|amzn-s3-demo-)(?!\d{1,3}(?:\.\d{1,3}){3}$)(?=.{3,63}$)"
        r"[a-z0-9](?:[a-z0-9-]|\.(?!\.))*[a-z0-9](?<!-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3|-an)",
        code="InvalidBucketName",
        message="The specified bucket is not valid.",
        source=f"{_API}/AmazonS3/latest/userguide/bucketnamingrules.html",
    ),
    Row(
        places=("s3 LifecycleRule.ID",),
        pattern=r".{0,255}",
        code="InvalidArgument",
        message="ID length should not exceed allowed limit of 255",
        source=f"{_API}/AmazonS3/latest/API/API_LifecycleRule.html",
    ),
    Row(
        places=("s3 Tag.Key",),
        pattern=r"[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}",
        code="InvalidTag",
        message="The TagKey you have provided is invalid",
        source=f"{_API}/AmazonS3/latest/userguide/tagging.html",
    ),
    Row(
        places=("s3 Tag.Value",),
        pattern=r"[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}",
        code="InvalidTag",
        message="The TagValue you have provided is invalid",
        source=f"{_API}/AmazonS3/latest/userguide/tagging.html",
    ),
    Row(
        places=(
            "cloudformation CreateStackInput.StackName",
            "cloudformation CreateChangeSetInput.StackName",
        ),
        pattern=r"[a-zA-Z][-a-zA-Z0-9]{0,127}",
        message="1 validation error detected: Value '{value}' at 'stackName' failed to satisfy constraint: "
        "Member must satisfy "
        "regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*",
        source=f"{_API}/AWSCloudFormation/latest/APIReference/API_CreateStack.html",
    ),
)

# EC2 does not check by its model: the pattern of a placement group's ARN has a stray `^`, and no ARN would match.
_OWN_VALIDATION = frozenset({"ec2"})

# XML has no such characters.
_UNPRINTABLE = regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# The code of a service's validation.
_CODES = {
    "autoscaling": "ValidationError",
    "cloudformation": "ValidationError",
    "cloudwatch": "ValidationError",
    "ec2": "InvalidParameterValue",
    "iam": "ValidationError",
    "logs": "InvalidParameterException",
    "resource-groups": "BadRequestException",
    "s3": "InvalidTag",
    "sns": "InvalidParameter",
    "sqs": "InvalidParameterValue",
}


def refusal(call: Call) -> tuple[str, str] | None:
    """Return the error code and message with which the service refuses a text of a call, if it does."""
    if call.operation.startswith(_READS):
        return None
    return refusal_of(call.service, call.operation, call.parameters())


def refusal_of(service: str, operation: str, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the code and message for the first text of a request that breaks a limit.

    Args:
        service: The service's name in boto3.
        operation: The operation's name.
        parameters: The parameters, as boto3 spells them.
    """
    try:
        shape = get_service_model(service).operation_model(operation).input_shape
    except Exception:  # an operation or a service without a model; moto says so
        return None
    if not isinstance(shape, StructureShape):
        return None
    for place, path, member, value in _members(shape, parameters, ""):
        code, shown = _CODES.get(service, "ValidationException"), _UNPRINTABLE.sub("?", str(value))
        broken = None if service in _OWN_VALIDATION else _broken_by_model(member, value)
        if broken is not None:
            told = f"1 validation error detected: Value '{shown}' at '{path[:1].lower()}{path[1:]}'"
            return code, f"{told} failed to satisfy constraint: {broken}"
        rows = _rows_by_place()
        for row in rows.get(f"{service} {place}") or rows.get(f"{service} {place.rpartition('.')[0]}.$", ()):
            if parameters.get(row.unless[0]) not in row.unless[1] and row.refuses(value):
                return row.code or code, row.message.replace("{value}", shown)
    return None


@cache
def _rows_by_place() -> Mapping[str, Sequence[Row]]:
    return {place: [row for row in ROWS if place in row.places] for each in ROWS for place in each.places}


def _members(shape: StructureShape, values: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, Shape, Any]]:
    """Yield each given text, list and map of a structure: its place, its path, its shape and what it is."""
    for name, member in shape.members.items():
        if values.get(name) is not None:
            yield from _within(f"{shape.name}.{name}", f"{path}.{name}".lstrip("."), member, values[name])


def _within(place: str, path: str, shape: Shape, value: Any) -> Iterator[tuple[str, str, Shape, Any]]:
    if isinstance(shape, StructureShape) and isinstance(value, Mapping):
        yield from _members(shape, value, path)
    elif isinstance(shape, ListShape) and isinstance(value, Sequence):
        yield place, path, shape, value
        for number, item in enumerate(value, 1):
            yield from _within(place, f"{path}.{number}.member", shape.member, item)
    elif isinstance(shape, MapShape) and isinstance(value, Mapping):
        yield place, path, shape, value
        for key, item in value.items():
            yield f"{place}.*", path, shape.key, key
            yield from _within(f"{place}.{key}", path, shape.value, item)
    elif isinstance(shape, StringShape) and isinstance(value, str):
        yield place, path, shape, value


def _broken_by_model(shape: Shape, value: Any) -> str | None:
    least, greatest, pattern = (shape.metadata.get(name) for name in ("min", "max", "pattern"))
    if least is not None and isinstance(value, str) and len(value) < least:
        return f"Member must have length greater than or equal to {least}"
    if greatest is not None and len(value) > greatest:
        return f"Member must have length less than or equal to {greatest}"
    if pattern is not None and not _compiled(pattern).fullmatch(value):
        return f"Member must satisfy regular expression pattern: {pattern}"
    return None


@cache
def _compiled(pattern: str) -> Any:
    """Compile a pattern as the services' Java reads it: pairs of surrogates are characters, and `\\w` is ASCII."""
    text = pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
    return regex.compile(text.replace(r"\w", "_a-zA-Z0-9" if "[" in text else "[_a-zA-Z0-9]"), regex.DOTALL)
