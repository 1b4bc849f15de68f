"""The documented limits of every text that the library, its users or their escape hatches put into a template.

One row is one limit of AWS's, with its address and all places in a template that it holds for. A place is a resource
type and the path of a property: `*` stands for each item of a list or each value of a map, `~` for each key of a map,
and `Endpoint if Protocol=email` holds only beside that value, `Value if Tier=` only where Tier is left out. Where AWS
gives no set of characters, none is here.
"""

from collections.abc import Mapping, Sequence

from cdk_training_cluster.checks import is_unknown, shown
from cdk_training_cluster.validation.text_limit import TextLimit

_DOCS = "https://docs.aws.amazon.com"
_EC2_API = f"{_DOCS}/AWSEC2/latest/APIReference"
_IAM_API = f"{_DOCS}/IAM/latest/APIReference"
_CLOUDWATCH_API = f"{_DOCS}/AmazonCloudWatch/latest/APIReference"
_LOGS_API = f"{_DOCS}/AmazonCloudWatchLogs/latest/APIReference"
_EVENTS_API = f"{_DOCS}/eventbridge/latest/APIReference"
_SCHEDULER_API = f"{_DOCS}/scheduler/latest/APIReference"
_LAMBDA_API = f"{_DOCS}/lambda/latest/api"
_SSM_API = f"{_DOCS}/systems-manager/latest/APIReference"
_FSX_API = f"{_DOCS}/fsx/latest/APIReference"
_SNS_API = f"{_DOCS}/sns/latest/api"
_SQS_API = f"{_DOCS}/AWSSimpleQueueService/latest/APIReference"
_KMS_API = f"{_DOCS}/kms/latest/APIReference"
_AUTO_SCALING_API = f"{_DOCS}/autoscaling/ec2/APIReference"
_CLOUDFORMATION_REFERENCE = f"{_DOCS}/AWSCloudFormation/latest/TemplateReference"
_CLOUDFORMATION = f"{_DOCS}/AWSCloudFormation/latest/UserGuide"

_NO_CONTROL = r"[^\x00-\x1f\x7f]"
_ASCII = r"[ -~]"
_ONE_LINE = r"[^\x00\x85\u2028\u2029\r\n]"
_IAM_NAME = r"[A-Za-z0-9_+=,.@-]"
_IAM_NAME_WORDS = "letters, digits and _ + = , . @ -"
_ALARM = "AWS::CloudWatch::Alarm"
_MEASURED = f"{_ALARM} Metrics.*.MetricStat.Metric"

# Names and descriptions of groups may have an ampersand beside these, descriptions of rules may not.
_RULE_TEXT = r"[a-zA-Z0-9. _\-:/()#,@\[\]+=;{}!$*]"
_RULE_WORDS = "a-z, A-Z, 0-9, spaces and . _ - : / ( ) # , @ [ ] + = ; { } ! $ *"
_GROUP_TEXT = rf"(?:{_RULE_TEXT}|&)"
_GROUP_WORDS = f"{_RULE_WORDS} &"
_LAMBDA_KEEPS = (
    "AWS_REGION|AWS_DEFAULT_REGION|AWS_EXECUTION_ENV|AWS_LAMBDA_FUNCTION_NAME|AWS_LAMBDA_FUNCTION_MEMORY_SIZE|"
    "AWS_LAMBDA_FUNCTION_VERSION|AWS_LAMBDA_INITIALIZATION_TYPE|AWS_LAMBDA_LOG_GROUP_NAME|AWS_LAMBDA_LOG_STREAM_NAME|"
    "AWS_ACCESS_KEY|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY|AWS_SESSION_TOKEN|AWS_LAMBDA_RUNTIME_API|"
    "LAMBDA_TASK_ROOT|LAMBDA_RUNTIME_DIR"
)

# Letters, digits, spaces and _ . : / = + - @: what services mean with [\p{L}\p{Z}\p{N}_.:/=+\-@].
_TAG = r"(?![\x00-\x1f\x85])[\w\s.:/=+@-]"
_TAG_WORDS = "letters, digits, spaces and _ . : / = + - @"


def _tag_rows(
    name: str,
    *lists: str,
    maps: Sequence[str] = (),
    characters: str = _TAG,
    words: str = _TAG_WORDS,
    longest_key: int = 128,
    reserved_values: tuple[str, ...] = (),
    shortest_value: int = 0,
    source: str,
) -> tuple[TextLimit, TextLimit]:
    """Return the two rows for the tags of a service: the keys and the values of lists and of maps of tags."""
    of = f" of {words}" if words else ""
    return (
        TextLimit(
            id=f"{name}TagKey",
            places=(*(f"{each}.*.Key" for each in lists), *(f"{each}.~" for each in maps)),
            allowed=f"1 to {longest_key} characters{of}, and must not start with aws:",
            characters=characters,
            minimum=1,
            maximum=longest_key,
            reserved=("aws:",),
            source=source,
        ),
        TextLimit(
            id=f"{name}TagValue",
            places=(*(f"{each}.*.Value" for each in lists), *(f"{each}.*" for each in maps)),
            allowed=f"{'1 to' if shortest_value else 'at most'} 256 characters{of}"
            f"{', and must not start with aws:' if reserved_values else ''}",
            characters=characters,
            minimum=shortest_value,
            maximum=256,
            reserved=reserved_values,
            source=source,
        ),
    )


_ROWS = (
    # Tags
    *_tag_rows(
        "ec2",
        "AWS::EC2::* Tags",
        "AWS::EC2::* TagSpecifications.*.Tags",
        "AWS::EC2::LaunchTemplate LaunchTemplateData.TagSpecifications.*.Tags",
        "AWS::EC2::SpotFleet SpotFleetRequestConfigData.TagSpecifications.*.Tags",
        characters=r"[\s\S]",
        words="",
        # The user guide says 128.
        longest_key=127,
        source=f"{_EC2_API}/API_Tag.html",
    ),
    *_tag_rows(
        "autoScaling",
        "AWS::AutoScaling::AutoScalingGroup Tags",
        characters=r"[^\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]",
        words="",
        source=f"{_AUTO_SCALING_API}/API_Tag.html",
    ),
    *_tag_rows(
        "cloudwatch",
        "AWS::CloudWatch::* Tags",
        characters=r"[\s\S]",
        words="",
        # CloudWatch takes an empty one, CloudFormation's schema of an alarm does not.
        shortest_value=1,
        source=f"{_CLOUDFORMATION_REFERENCE}/aws-properties-cloudwatch-alarm-tag.html",
    ),
    *_tag_rows("events", "AWS::Events::* Tags", characters=r"[\s\S]", words="", source=f"{_EVENTS_API}/API_Tag.html"),
    *_tag_rows("iam", "AWS::IAM::* Tags", source=f"{_IAM_API}/API_Tag.html"),
    *_tag_rows("lambda", "AWS::Lambda::* Tags", source=f"{_LAMBDA_API}/API_TagResource.html"),
    *_tag_rows("logs", "AWS::Logs::* Tags", source=f"{_LOGS_API}/API_CreateLogGroup.html"),
    *_tag_rows("fsx", "AWS::FSx::* Tags", source=f"{_FSX_API}/API_Tag.html"),
    *_tag_rows(
        "ssm",
        "AWS::SSM::Document Tags",
        # As for an alarm.
        shortest_value=1,
        source=f"{_CLOUDFORMATION_REFERENCE}/aws-properties-ssm-document-tag.html",
    ),
    *_tag_rows("parameter", maps=("AWS::SSM::Parameter Tags",), source=f"{_SSM_API}/API_Tag.html"),
    *_tag_rows(
        "resourceGroups", "AWS::ResourceGroups::* Tags", source=f"{_DOCS}/ARG/latest/APIReference/API_Tag.html"
    ),
    *_tag_rows("s3", "AWS::S3::* Tags", source=f"{_DOCS}/AmazonS3/latest/userguide/tagging.html"),
    *_tag_rows("sns", "AWS::SNS::* Tags", source=f"{_SNS_API}/API_Tag.html"),
    *_tag_rows(
        "sqs",
        "AWS::SQS::* Tags",
        reserved_values=("aws:",),
        source=f"{_DOCS}/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html",
    ),
    *_tag_rows("kms", "AWS::KMS::* Tags", source=f"{_KMS_API}/API_Tag.html"),
    # EC2 and Auto Scaling
    TextLimit(
        id="securityGroupText",
        places=("AWS::EC2::SecurityGroup GroupDescription",),
        allowed=f"1 to 255 characters of {_GROUP_WORDS}",
        characters=_GROUP_TEXT,
        minimum=1,
        maximum=255,
        source=f"{_EC2_API}/API_CreateSecurityGroup.html",
    ),
    TextLimit(
        id="securityGroupRuleText",
        places=(
            "AWS::EC2::SecurityGroup SecurityGroupEgress.*.Description",
            "AWS::EC2::SecurityGroup SecurityGroupIngress.*.Description",
            "AWS::EC2::SecurityGroupEgress Description",
            "AWS::EC2::SecurityGroupIngress Description",
        ),
        allowed=f"at most 255 characters of {_RULE_WORDS}",
        characters=_RULE_TEXT,
        maximum=255,
        source=f"{_EC2_API}/API_UserIdGroupPair.html",
    ),
    TextLimit(
        id="securityGroupName",
        places=("AWS::EC2::SecurityGroup GroupName",),
        allowed=f"1 to 255 characters of {_GROUP_WORDS}, and must not start with sg-",
        characters=_GROUP_TEXT,
        minimum=1,
        maximum=255,
        reserved=("sg-",),
        source=f"{_EC2_API}/API_CreateSecurityGroup.html",
    ),
    TextLimit(
        id="placementGroupName",
        places=(
            "AWS::AutoScaling::AutoScalingGroup PlacementGroup",
            "AWS::EC2::LaunchTemplate LaunchTemplateData.Placement.GroupName",
        ),
        allowed="1 to 255 ASCII characters",
        characters=_ASCII,
        minimum=1,
        maximum=255,
        source=f"{_EC2_API}/API_CreatePlacementGroup.html",
    ),
    TextLimit(
        id="launchTemplateName",
        places=("AWS::EC2::LaunchTemplate LaunchTemplateName",),
        allowed="3 to 128 characters of a-z, A-Z, 0-9 and ( ) . - / _",
        characters=r"[a-zA-Z0-9().\-/_]",
        minimum=3,
        maximum=128,
        source=f"{_EC2_API}/API_CreateLaunchTemplate.html",
    ),
    TextLimit(
        id="launchTemplateVersion",
        places=("AWS::EC2::LaunchTemplate VersionDescription",),
        allowed="at most 255 characters",
        maximum=255,
        source=f"{_EC2_API}/API_CreateLaunchTemplate.html",
    ),
    TextLimit(
        id="autoScalingGroupName",
        places=("AWS::AutoScaling::AutoScalingGroup AutoScalingGroupName",),
        allowed="1 to 255 ASCII characters without spaces and colons",
        characters="[!-9;-~]",
        minimum=1,
        maximum=255,
        source=f"{_AUTO_SCALING_API}/API_CreateAutoScalingGroup.html",
    ),
    TextLimit(
        id="lifecycleHookName",
        places=(
            "AWS::AutoScaling::AutoScalingGroup LifecycleHookSpecificationList.*.LifecycleHookName",
            "AWS::AutoScaling::LifecycleHook LifecycleHookName",
        ),
        allowed="1 to 255 characters of a-z, A-Z, 0-9 and - _ /",
        characters=r"[A-Za-z0-9\-_/]",
        minimum=1,
        maximum=255,
        source=f"{_AUTO_SCALING_API}/API_PutLifecycleHook.html",
    ),
    # IAM
    TextLimit(
        id="roleName",
        places=("AWS::IAM::Role RoleName",),
        allowed=f"1 to 64 {_IAM_NAME_WORDS}",
        characters=_IAM_NAME,
        minimum=1,
        maximum=64,
        source=f"{_IAM_API}/API_CreateRole.html",
    ),
    TextLimit(
        id="policyName",
        places=(
            "AWS::IAM::InstanceProfile InstanceProfileName",
            "AWS::IAM::ManagedPolicy ManagedPolicyName",
            "AWS::IAM::Policy PolicyName",
            "AWS::IAM::Role Policies.*.PolicyName",
        ),
        allowed=f"1 to 128 {_IAM_NAME_WORDS}",
        characters=_IAM_NAME,
        minimum=1,
        maximum=128,
        source=f"{_IAM_API}/API_PutRolePolicy.html",
    ),
    TextLimit(
        id="iamPath",
        places=("AWS::IAM::InstanceProfile Path", "AWS::IAM::Role Path"),
        allowed="1 to 512 ASCII characters without spaces, with a / first and last",
        characters="[!-~]",
        form="/|/.+/",
        minimum=1,
        maximum=512,
        source=f"{_IAM_API}/API_CreateRole.html",
    ),
    TextLimit(
        id="roleDescription",
        places=("AWS::IAM::Role Description",),
        allowed="at most 1000 characters of ASCII and Latin-1",
        characters=r"[\t\n\r -~\xa1-\xff]",
        maximum=1000,
        source=f"{_IAM_API}/API_CreateRole.html",
    ),
    # CloudWatch
    TextLimit(
        id="alarmName",
        places=(f"{_ALARM} AlarmName",),
        allowed="1 to 255 characters, none of them a control character",
        characters=_NO_CONTROL,
        minimum=1,
        maximum=255,
        source=f"{_CLOUDWATCH_API}/API_PutMetricAlarm.html",
    ),
    TextLimit(
        id="alarmDescription",
        places=(f"{_ALARM} AlarmDescription",),
        allowed="at most 1024 characters",
        maximum=1024,
        source=f"{_CLOUDWATCH_API}/API_PutMetricAlarm.html",
    ),
    TextLimit(
        id="metricNamespace",
        places=(f"{_ALARM} Namespace", f"{_MEASURED}.Namespace"),
        allowed="1 to 255 ASCII characters, and no colon first",
        characters=_ASCII,
        form="[^:].*",
        minimum=1,
        maximum=255,
        source=f"{_CLOUDWATCH_API}/API_PutMetricData.html",
    ),
    TextLimit(
        id="metricName",
        places=(f"{_ALARM} MetricName", f"{_MEASURED}.MetricName"),
        allowed="1 to 255 characters",
        minimum=1,
        maximum=255,
        source=f"{_CLOUDWATCH_API}/API_MetricDatum.html",
    ),
    TextLimit(
        id="dimensionName",
        places=(f"{_ALARM} Dimensions.*.Name", f"{_MEASURED}.Dimensions.*.Name"),
        allowed="1 to 255 ASCII characters, not all spaces, and no colon first",
        characters=_ASCII,
        form="(?!:).*[!-~].*",
        minimum=1,
        maximum=255,
        source=f"{_CLOUDWATCH_API}/API_Dimension.html",
    ),
    TextLimit(
        id="dimensionValue",
        places=(f"{_ALARM} Dimensions.*.Value", f"{_MEASURED}.Dimensions.*.Value"),
        allowed="1 to 1024 ASCII characters, not all spaces",
        characters=_ASCII,
        form=".*[!-~].*",
        minimum=1,
        maximum=1024,
        source=f"{_CLOUDWATCH_API}/API_Dimension.html",
    ),
    TextLimit(
        id="metricId",
        places=(f"{_ALARM} Metrics.*.Id",),
        allowed="1 to 255 letters, digits and underscores, with a lower-case letter first",
        characters="[a-zA-Z0-9_]",
        form="[a-z].*",
        minimum=1,
        maximum=255,
        source=f"{_CLOUDWATCH_API}/API_MetricDataQuery.html",
    ),
    TextLimit(
        id="metricExpression",
        places=(f"{_ALARM} Metrics.*.Expression",),
        allowed="1 to 2048 characters",
        minimum=1,
        maximum=2048,
        source=f"{_CLOUDWATCH_API}/API_MetricDataQuery.html",
    ),
    TextLimit(
        id="logGroupName",
        places=("AWS::Lambda::Function LoggingConfig.LogGroup", "AWS::Logs::LogGroup LogGroupName"),
        allowed="1 to 512 characters of a-z, A-Z, 0-9 and . - _ / #, and must not start with aws/",
        characters=r"[.\-_/#A-Za-z0-9]",
        minimum=1,
        maximum=512,
        reserved=("aws/",),
        source=f"{_LOGS_API}/API_CreateLogGroup.html",
    ),
    # SNS and SQS
    TextLimit(
        id="topicName",
        places=("AWS::SNS::Topic TopicName",),
        allowed="1 to 256 ASCII letters, digits, hyphens and underscores, for a FIFO topic with .fifo at the end",
        characters="[A-Za-z0-9_.-]",
        form=r"[A-Za-z0-9_-]+(?:\.fifo)?",
        minimum=1,
        maximum=256,
        source=f"{_SNS_API}/API_CreateTopic.html",
    ),
    TextLimit(
        id="topicDisplayName",
        places=("AWS::SNS::Topic DisplayName",),
        allowed="at most 100 characters, none of them a control character but a tab",
        characters=r"[^\x00-\x08\x0a-\x1f\x7f]",
        maximum=100,
        source=f"{_CLOUDFORMATION_REFERENCE}/aws-resource-sns-topic.html",
    ),
    TextLimit(
        id="email",
        places=(
            "AWS::SNS::Subscription Endpoint if Protocol=email",
            "AWS::SNS::Topic Subscription.*.Endpoint if Protocol=email",
        ),
        # SNS documents no length; RFC 5321 allows a path of 256 with its brackets.
        allowed="the form of an e-mail address, such as ml-platform@example.com",
        characters=r"[^\s<>,;]",
        form=r"[^@]+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]",
        minimum=1,
        maximum=254,
        source=f"{_SNS_API}/API_Subscribe.html",
    ),
    TextLimit(
        id="queueName",
        places=("AWS::SQS::Queue QueueName",),
        allowed="1 to 80 letters, digits, hyphens and underscores, for a FIFO queue with .fifo at the end",
        characters="[A-Za-z0-9_.-]",
        form=r"[A-Za-z0-9_-]+(?:\.fifo)?",
        minimum=1,
        maximum=80,
        source=f"{_SQS_API}/API_CreateQueue.html",
    ),
    # Lambda, EventBridge, Scheduler
    TextLimit(
        id="functionName",
        places=("AWS::Lambda::Function FunctionName",),
        allowed="1 to 64 letters, digits, hyphens and underscores",
        characters="[A-Za-z0-9_-]",
        minimum=1,
        maximum=64,
        source=f"{_LAMBDA_API}/API_CreateFunction.html",
    ),
    TextLimit(
        id="functionAlias",
        places=("AWS::Lambda::Alias Name",),
        allowed="1 to 128 letters, digits, hyphens and underscores, not all of them digits",
        characters="[A-Za-z0-9_-]",
        form="(?![0-9]+$).*",
        minimum=1,
        maximum=128,
        source=f"{_LAMBDA_API}/API_CreateAlias.html",
    ),
    TextLimit(
        id="functionDescription",
        places=("AWS::Lambda::Alias Description", "AWS::Lambda::Function Description"),
        allowed="at most 256 characters",
        maximum=256,
        source=f"{_LAMBDA_API}/API_CreateFunction.html",
    ),
    TextLimit(
        id="functionVariable",
        places=("AWS::Lambda::Function Environment.Variables.~",),
        allowed="at least 2 letters, digits and underscores with a letter first, and no name that Lambda keeps",
        characters="[A-Za-z0-9_]",
        form=rf"(?!(?:{_LAMBDA_KEEPS})$)[A-Za-z].*",
        minimum=2,
        # Names and values of all variables together.
        maximum=4096,
        source=f"{_DOCS}/lambda/latest/dg/configuration-envvars.html",
    ),
    TextLimit(
        id="functionVariableValue",
        places=("AWS::Lambda::Function Environment.Variables.*",),
        allowed="at most 4096 bytes together with all other variables of the function",
        maximum=4096,
        in_bytes=True,
        source=f"{_DOCS}/lambda/latest/dg/configuration-envvars.html",
    ),
    TextLimit(
        id="eventRuleName",
        places=("AWS::Events::Rule Name", "AWS::Events::Rule Targets.*.Id"),
        allowed="1 to 64 letters, digits and . - _",
        characters="[A-Za-z0-9._-]",
        minimum=1,
        maximum=64,
        source=f"{_EVENTS_API}/API_PutRule.html",
    ),
    TextLimit(
        id="eventRuleDescription",
        places=("AWS::Events::Rule Description",),
        allowed="at most 512 characters",
        maximum=512,
        source=f"{_EVENTS_API}/API_PutRule.html",
    ),
    TextLimit(
        id="eventTargetInput",
        places=("AWS::Events::Rule Targets.*.Input",),
        allowed="at most 8192 characters",
        maximum=8192,
        source=f"{_EVENTS_API}/API_Target.html",
    ),
    TextLimit(
        id="scheduleName",
        places=("AWS::Scheduler::Schedule GroupName", "AWS::Scheduler::Schedule Name"),
        allowed="1 to 64 letters, digits and . - _",
        characters="[A-Za-z0-9._-]",
        minimum=1,
        maximum=64,
        source=f"{_SCHEDULER_API}/API_CreateSchedule.html",
    ),
    TextLimit(
        id="scheduleDescription",
        places=("AWS::Scheduler::Schedule Description",),
        allowed="at most 512 characters",
        maximum=512,
        source=f"{_SCHEDULER_API}/API_CreateSchedule.html",
    ),
    # Systems Manager
    TextLimit(
        id="documentName",
        places=("AWS::SSM::Document Name",),
        allowed="3 to 128 characters of a-z, A-Z, 0-9 and _ - ., and must not start with aws, amazon or amzn",
        characters=r"[a-zA-Z0-9_\-.]",
        minimum=3,
        maximum=128,
        reserved=("aws", "amazon", "amzn"),
        source=f"{_SSM_API}/API_CreateDocument.html",
    ),
    TextLimit(
        id="parameterName",
        places=("AWS::SSM::Parameter Name",),
        # 1011 with the start of its ARN, which takes 45 in us-east-2 and more where region or partition are longer.
        allowed="1 to 950 characters of a-z, A-Z, 0-9 and _ . - /, at most 15 levels that each begin with /, and "
        "must not start with aws or ssm",
        characters=r"[a-zA-Z0-9_.\-/]",
        form=r"(?:[^/]+|(?:/[^/]+){1,15})",
        minimum=1,
        maximum=950,
        reserved=("aws", "/aws", "ssm", "/ssm"),
        source=f"{_SSM_API}/API_PutParameter.html",
    ),
    TextLimit(
        id="parameterDescription",
        places=("AWS::SSM::Parameter Description",),
        allowed="at most 1024 characters",
        maximum=1024,
        source=f"{_SSM_API}/API_PutParameter.html",
    ),
    TextLimit(
        id="standardParameterValue",
        # Without a tier it is the account's default: Standard, unless the account changed it.
        places=("AWS::SSM::Parameter Value if Tier=", "AWS::SSM::Parameter Value if Tier=Standard"),
        allowed="at most 4096 characters without Tier: Advanced",
        maximum=4096,
        source=f"{_SSM_API}/API_PutParameter.html",
    ),
    TextLimit(
        id="parameterValue",
        places=("AWS::SSM::Parameter Value",),
        allowed="1 to 8192 characters, and nothing in double braces",
        form=r"(?![\s\S]*\{\{[\s\S]*\}\})[\s\S]*",
        minimum=1,
        maximum=8192,
        source=f"{_SSM_API}/API_PutParameter.html",
    ),
    # Storage, groups, keys
    TextLimit(
        id="bucketName",
        places=("AWS::S3::Bucket BucketName", "AWS::S3::Bucket LoggingConfiguration.DestinationBucketName"),
        allowed="the form of a bucket's name: 3 to 63 lower-case letters, digits, hyphens and dots, a letter or "
        "digit first and last, no two dots side by side, no IP address, without s3:// and without a path",
        characters="[a-z0-9.-]",
        form=r"(?!\d{1,3}(?:\.\d{1,3}){3}$)[a-z0-9](?:[a-z0-9-]|\.(?!\.))*[a-z0-9]",
        minimum=3,
        maximum=63,
        reserved=("xn--", "sthree-", "amzn-s3-demo-"),
        reserved_ends=("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3", "-an"),
        source=f"{_DOCS}/AmazonS3/latest/userguide/bucketnamingrules.html",
    ),
    TextLimit(
        id="lifecycleRuleId",
        places=("AWS::S3::Bucket LifecycleConfiguration.Rules.*.Id",),
        allowed="at most 255 characters",
        maximum=255,
        source=f"{_DOCS}/AmazonS3/latest/API/API_LifecycleRule.html",
    ),
    TextLimit(
        id="fileSystemPath",
        places=("AWS::FSx::DataRepositoryAssociation FileSystemPath",),
        allowed="1 to 4096 characters in one line",
        characters=_ONE_LINE,
        minimum=1,
        maximum=4096,
        source=f"{_FSX_API}/API_CreateDataRepositoryAssociation.html",
    ),
    TextLimit(
        id="dataRepositoryPath",
        places=("AWS::FSx::DataRepositoryAssociation DataRepositoryPath",),
        allowed="3 to 4357 characters in one line",
        characters=_ONE_LINE,
        minimum=3,
        maximum=4357,
        source=f"{_FSX_API}/API_CreateDataRepositoryAssociation.html",
    ),
    TextLimit(
        id="resourceGroupName",
        places=("AWS::ResourceGroups::Group Name",),
        allowed="1 to 128 letters, digits and . - _, and must not start with aws",
        characters="[A-Za-z0-9._-]",
        minimum=1,
        maximum=128,
        reserved=("aws",),
        source=f"{_CLOUDFORMATION_REFERENCE}/aws-resource-resourcegroups-group.html",
    ),
    TextLimit(
        id="resourceGroupDescription",
        places=("AWS::ResourceGroups::Group Description",),
        allowed="at most 512 letters, digits, spaces and . - _",
        characters=r"[ \t\n\x0b\f\ra-zA-Z0-9_.-]",
        maximum=512,
        source=f"{_CLOUDFORMATION_REFERENCE}/aws-resource-resourcegroups-group.html",
    ),
    TextLimit(
        id="keyDescription",
        places=("AWS::KMS::Key Description",),
        allowed="at most 8192 characters",
        maximum=8192,
        source=f"{_KMS_API}/API_CreateKey.html",
    ),
    # Templates themselves
    TextLimit(
        id="templateDescription",
        places=("Template Description",),
        allowed="at most 1024 bytes",
        maximum=1024,
        in_bytes=True,
        source=f"{_CLOUDFORMATION}/cloudformation-limits.html",
    ),
    TextLimit(
        id="logicalId",
        places=("Template Outputs.~", "Template Parameters.~", "Template Resources.~"),
        allowed="1 to 255 letters and digits",
        characters="[A-Za-z0-9]",
        minimum=1,
        maximum=255,
        source=f"{_CLOUDFORMATION}/cloudformation-limits.html",
    ),
    TextLimit(
        id="outputDescription",
        places=("Template Outputs.*.Description",),
        allowed="at most 1024 bytes",
        maximum=1024,
        in_bytes=True,
        source=f"{_CLOUDFORMATION}/outputs-section-structure.html",
    ),
    TextLimit(
        id="exportName",
        places=("Template Outputs.*.Export.Name",),
        allowed="1 to 255 letters, digits, colons and hyphens",
        characters="[A-Za-z0-9:-]",
        minimum=1,
        maximum=255,
        # CloudFormation's own refusal; the page on exports has no pattern.
        source="https://github.com/aws/aws-cdk/issues/28563",
    ),
    TextLimit(
        id="templateParameterDescription",
        places=("Template Parameters.*.Description",),
        allowed="at most 4000 characters",
        maximum=4000,
        source=f"{_CLOUDFORMATION}/parameters-section-structure.html",
    ),
)

LIMITS: Mapping[str, TextLimit] = {row.id: row for row in _ROWS}
"""All rows, by their ids."""


TAG_COUNT = TextLimit(
    id="tagCount",
    places=(),
    allowed="at most 50 tags",
    maximum=50,
    source=f"{_DOCS}/tag-editor/latest/userguide/best-practices-and-strats.html",
)
"""How many tags a resource may have."""

# It is within descriptions, of which a function's is the shortest: 256 characters.
_LONGEST_CLUSTER_NAME = 128


def cluster_name_problems(cluster_name: object) -> list[str]:
    """Say in one sentence why a cluster cannot be called so: its name is a tag, a metric's dimension and in texts.

    Args:
        cluster_name: What was given.
    """
    if not isinstance(cluster_name, str) or len(cluster_name) > _LONGEST_CLUSTER_NAME:
        return [
            f"cluster_name must be text of at most {_LONGEST_CLUSTER_NAME} characters, such as 'llama', got "
            f"{shown(cluster_name)}"
        ]
    return text_problems("cluster_name", cluster_name, "dimensionValue", "sqsTagValue")


def text_problems(setting: str, value: str, *limits: str) -> list[str]:
    """Say in one sentence why a setting's text cannot be; nothing if it can, or if only the deployment knows it.

    Args:
        setting: The setting as its user spelled it.
        value: What was given.
        limits: The ids of the rows that it has to keep, the most telling first.
    """
    if is_unknown(value):
        return []
    problems = (LIMITS[each].problem(setting, (value,)) for each in limits)
    return [problem for problem in problems if problem is not None][:1]
