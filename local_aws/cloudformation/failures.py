"""How a CloudFormation operation fails: at once (`ValidationError`) or at one resource (`ResourceError`)."""

import logging
from uuid import uuid4

from botocore.exceptions import ClientError, ParamValidationError

from local_aws.refusal import Refusal

logger = logging.getLogger("local_aws")

# The Java SDK's service names, which CloudFormation prints, where they are not the type's namespace.
_SERVICE_NAMES = {
    "EC2": "Ec2",
    "ECR": "Ecr",
    "Events": "EventBridge",
    "IAM": "Iam",
    "KMS": "Kms",
    "Logs": "CloudWatchLogs",
    "SNS": "Sns",
    "SQS": "Sqs",
    "SSM": "Ssm",
}


class ValidationError(Refusal):
    """An operation that CloudFormation refuses before it starts."""

    def __init__(self, message: str) -> None:
        super().__init__("ValidationError", message)


class ResourceError(Exception):
    """One resource that could not be created, updated or deleted; its text is the ResourceStatusReason.

    Args:
        reason: The reason.
        untouched: Whether the physical resource is surely as it was before.
    """

    def __init__(self, reason: str, *, untouched: bool = False) -> None:
        super().__init__(reason)
        self.untouched = untouched


class HandlerError(Exception):
    """A failure that a resource handler finds itself, rather than a service.

    Args:
        message: What went wrong.
        code: CloudFormation's HandlerErrorCode.
    """

    def __init__(self, message: str, code: str = "InvalidRequest") -> None:
        super().__init__(message)
        self.code = code


class CannotChangeError(HandlerError):
    """A change that a handler does not support; it has changed nothing."""


def is_absent(error: ClientError) -> bool:
    """Tell whether a service says that what it was asked about does not exist."""
    code: str = error.response["Error"]["Code"]
    return (
        "NotFound" in code
        or code.startswith("NoSuch")
        or code in {"InvalidPlacementGroup.Unknown", "AWS.SimpleQueueService.NonExistentQueue"}
        or "NonExistent" in code
        or ("not found" in error.response["Error"]["Message"].lower() and code == "ValidationError")
    )


def _handler_code(code: str) -> str:
    if "NotFound" in code or code.startswith("NoSuch"):
        return "NotFound"
    if "AlreadyExists" in code or "Duplicate" in code:
        return "AlreadyExists"
    if "LimitExceeded" in code:
        return "ServiceLimitExceeded"
    if "AccessDenied" in code or "Unauthorized" in code:
        return "AccessDenied"
    return "InvalidRequest"


def reason_of(error: Exception, resource_type: str) -> str:
    """Word a failure as CloudFormation words a handler's: the service's message in its envelope.

    The envelope is AWS's with one addition, the service's error code, so that a rehearsal can be read.

    Args:
        error: What a handler raised.
        resource_type: The type of the resource whose handler raised it.
    """
    token = uuid4()
    if isinstance(error, ClientError):
        detail, metadata = error.response["Error"], error.response["ResponseMetadata"]
        namespace = resource_type.split("::")[1]
        name = _SERVICE_NAMES.get(namespace, namespace)
        return (
            f'Resource handler returned message: "{detail["Message"]} (Service: {name}, Status Code: '
            f"{metadata['HTTPStatusCode']}, Error Code: {detail['Code']}, Request ID: "
            f'{uuid4()})" (RequestToken: {token}, HandlerErrorCode: '
            f"{_handler_code(detail['Code'])})"
        )
    if isinstance(error, HandlerError):
        return f'Resource handler returned message: "{error}" (RequestToken: {token}, HandlerErrorCode: {error.code})'
    if isinstance(error, ParamValidationError):
        return (
            f'Resource handler returned message: "{error}" (RequestToken: {token}, HandlerErrorCode: InvalidRequest)'
        )
    logger.error("a handler failed inside the local AWS", exc_info=error)
    return f"the local AWS failed inside: {type(error).__name__}: {error}"
