"""What AWS's services do when a KMS key does not let them use it; moto asks no key's policy.

Where AWS fails in silence and much later, as an alarm that reaches no subscriber, the local AWS refuses at once.
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from moto.core.responses import ActionResult
from moto.kms.models import Key, kms_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from local_aws.policies import Call, as_list, is_allowed
from local_aws.refusal import Refusal
from local_aws.services.roles import statements_of

DATA_KEYS = ("kms:Decrypt", "kms:GenerateDataKey")
_VOLUMES = ("kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:CreateGrant")
_OBJECTS = ("kms:Decrypt", "kms:GenerateDataKey")


def add_key(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a key with an ARN and a policy that the caller chooses."""
    _, _, _, region, account, name = str(request["arn"]).split(":")
    key = Key(str(request["policy"]), "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "", account, region)
    key.id, key.arn = name.removeprefix("key/"), str(request["arn"])
    kms_backends[account][region].keys[key.id] = key
    return {"added": True}


def usable(key_id: str, account: str, region: str, principal: str, *actions: str, **context: str) -> bool:
    """Tell whether a key is there, enabled, and lets a principal that has no permission of its own use it.

    Args:
        key_id: The key's ARN or id.
        account: The account that asks.
        region: The region that it asks in.
        principal: The service's name, or the ARN of its service-linked role.
        actions: What the service does with the key.
        context: The request's condition keys, with `__` in place of `:`.
    """
    key = _key(key_id, account, region)
    if key is None or key.key_state != "Enabled":
        return False
    statements = as_list(json.loads(key.policy)["Statement"])
    known = {"kms:CallerAccount": account, "kms:GrantIsForAWSResource": "true"}
    known |= {name.replace("__", ":"): value for name, value in context.items()}
    known |= {"aws:PrincipalArn": principal} if principal.startswith("arn:") else {}
    calls = (Call(action=action, resource=key.arn, context=known, principal=principal) for action in actions)
    return all(is_allowed(statements, call) for call in calls)


def checked_log_group(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return CreateLogGroup so that it asks the key's policy.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
    """

    @wraps(original)
    def create_log_group(backend: Any, log_group_name: str, *more: Any, **named: Any) -> Any:
        key, region, account = named.get("kmsKeyId"), backend.region_name, backend.account_id
        if key:
            _check_log_group_key(backend, log_group_name, key, region, account)
        return original(backend, log_group_name, *more, **named)

    return create_log_group


def _check_log_group_key(backend: Any, name: str, key: str, region: str, account: str) -> None:
    arn = f"arn:{backend.partition}:logs:{region}:{account}:log-group:{name}"
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    actions = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:GenerateDataKey", "kms:DescribeKey")
    context = {"kms__EncryptionContext__aws__logs__arn": arn}
    if not usable(key, account, region, f"logs.{region}.{suffix}", *actions, **context):
        raise Refusal(
            "InvalidParameterException",
            f"The specified KMS key does not exist or is not allowed to be used with Arn '{arn}'",
        )


def checked_alarm(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return PutMetricAlarm so that it refuses a topic whose key CloudWatch may not use: AWS drops each message.

    https://repost.aws/knowledge-center/cloudwatch-configure-alarm-sns
    """

    @wraps(original)
    def put_metric_alarm(response: Any) -> ActionResult:
        for kind in ("AlarmActions", "OKActions", "InsufficientDataActions"):
            for arn in response._get_param(kind, []) or []:
                _check_topic(arn)
        return original(response)

    return put_metric_alarm


def _check_topic(arn: str) -> None:
    _, _, service, region, account, _ = arn.split(":", 5)
    topic = sns_backends[account][region].topics.get(arn) if service == "sns" else None
    key = getattr(topic, "kms_master_key_id", None)
    if key and not usable(key, account, region, "cloudwatch.amazonaws.com", *DATA_KEYS):
        raise Refusal(
            "ValidationError",
            f'Failed to execute action {arn}. Received error: "CloudWatch Alarms does not have authorization to '
            'access the SNS topic encryption key." (AWS takes such an alarm, and its messages are lost.)',
        )


def check_volumes(ec2: Any, data: Mapping[str, Any], roles: Mapping[str, str]) -> None:
    """Refuse a launch by a service whose role may not use the key of a volume: AWS ends such instances at once.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html

    Args:
        ec2: The backend.
        data: The launch data.
        roles: The names of the service-linked roles that launch, by their services.
    """
    for mapping in data.get("BlockDeviceMappings") or []:
        key = str((mapping.get("Ebs") or {}).get("KmsKeyId") or "")
        for service, role in roles.items() if key else ():
            arn = f"arn:{ec2.partition}:iam::{ec2.account_id}:role/aws-service-role/{service}/{role}"
            if not usable(key, ec2.account_id, ec2.region_name, arn, *_VOLUMES):
                raise Refusal("Client.InternalError", "Client.InternalError: Client error on launch.")


def unusable_key(file_system: Any, role: str, bucket: Any) -> str | None:
    """Return the key of a linked bucket that FSx's role may not use, if there is one.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html
    """
    rules = as_list((bucket.encryption or {}).get("Rule") or [])
    keys = [(rule.get("ApplyServerSideEncryptionByDefault") or {}).get("KMSMasterKeyID") for rule in rules]
    suffix = "amazonaws.com.cn" if file_system.region.startswith("cn-") else "amazonaws.com"
    context = {"kms__ViaService": f"s3.{file_system.region}.{suffix}"}
    for key in keys:
        if key and not usable(key, file_system.account, file_system.region, role, *_OBJECTS, **context):
            return str(key)
    return None


def check_linked_bucket(file_system: Any, role: str, bucket: Any) -> None:
    """Refuse a link to a bucket whose key FSx may not use: AWS says MISCONFIGURED of such a link, later."""
    key = unusable_key(file_system, role, bucket)
    if key is not None:
        raise Refusal("BadRequest", f"Amazon FSx is unable to access the KMS key {key} of the linked S3 bucket.")


def check_file_system_key(key_id: str | None, account: str, region: str) -> None:
    """Refuse a key for a file system that is not there, or not in its region."""
    if key_id and _key(key_id, account, region) is None:
        raise Refusal("BadRequest", f"The KMS key {key_id} does not exist in {region}.")


def exists(key_id: str, account: str, region: str) -> bool:
    """Tell whether a key is in an account and region."""
    return _key(key_id, account, region) is not None


def check_environment(function: Any) -> None:
    """Refuse an invocation where the function's role may not decrypt the environment.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html
    """
    key_id = function.kms_key_arn
    if key_id and not is_allowed(statements_of(function.role), Call(action="kms:Decrypt", resource=key_id)):
        raise Refusal(
            "KMSAccessDeniedException",
            "Lambda was unable to decrypt the environment variables because KMS access was denied. Please check the "
            "function's KMS key settings.",
        )


def check_destination(function: Any, destination: str) -> None:
    """Refuse a queue whose key the function's role may not use: AWS loses each record.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    """
    _, _, service, region, account, name = destination.split(":", 5)
    queue = sqs_backends[account][region].queues.get(name) if service == "sqs" else None
    key_id = getattr(queue, "kms_master_key_id", None)
    statements = statements_of(function.role)
    if key_id and not all(is_allowed(statements, Call(action=action, resource=key_id)) for action in DATA_KEYS):
        raise Refusal(
            "InvalidParameterValueException",
            f"The function's execution role may not use the key of {destination}. (AWS takes it, and loses each "
            "record.)",
        )


def _key(key_id: str, account: str, region: str) -> Any:
    """Return a key of the region, or None."""
    if key_id.startswith("arn:"):
        _, _, _, place, account, _ = key_id.split(":", 5)
        if place != region:
            return None
    return kms_backends[account][region].keys.get(key_id.rpartition("/")[2])
