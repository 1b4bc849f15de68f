"""Says in a sentence why S3, KMS or the disk refuses, and what to do."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from cdk_training_cluster_cli.core.session import about_credentials
from cdk_training_cluster_file import problems

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_DENIED = ("AccessDenied", "403", "AllAccessDisabled", "AccessDeniedException")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-overview.html: inactive buckets
_LATER = (
    "S3 throttles the requests, or activates a directory bucket that was not used for 90 days: run the command "
    "again in some minutes, which goes on from there"
)
# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_SENTENCES = {
    "NoSuchBucket": "there is no such bucket: check the name, and AWS_PROFILE",
    "NoSuchKey": "it was deleted meanwhile: run the command again",
    "404": "it was deleted meanwhile: run the command again",
    "NoSuchVersion": "this version was deleted meanwhile: run the command again",
    "PreconditionFailed": "it was changed while it was read: run the command again",
    "412": "it was changed while it was read: run the command again",
    "InvalidObjectState": (
        "it is archived: restore it first (aws s3api restore-object --restore-request Days=7), wait, and run the "
        "command again"
    ),
    "SlowDown": _LATER,
    "ServiceUnavailable": _LATER,
    "503": _LATER,
    "RequestTimeTooSkewed": "the clock of this machine is wrong: set it",
    "PermanentRedirect": "the bucket is in another region: give it with --region",
    "IllegalLocationConstraintException": "the bucket is in another region: give it with --region",
}


def explained(error: Exception, sentences: Mapping[str, str] | None = None) -> str | None:
    """Return why something was refused, and what to do. None: the error is a defect.

    Args:
        error: What was raised.
        sentences: What codes mean here, before what they mean elsewhere.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow, and needed with AWS only

    if isinstance(error, ClientError):
        return _of_aws(error, {**_SENTENCES, **(sentences or {})})
    if isinstance(error, BotoCoreError):
        return f"AWS did not answer ({str(error).rstrip('.')})"
    return problems.explain_os_error(error)


def _of_aws(error: "ClientError", sentences: Mapping[str, str]) -> str:
    code, message = str(error.response["Error"]["Code"]), str(error.response["Error"].get("Message", ""))
    known = sentences.get(code) or about_credentials(code)
    if known is not None:
        return known
    if code.startswith("KMS") or (code in _DENIED and "kms:" in message.lower()):
        return f"KMS denies the key ({message}): its policy and yours must allow that"
    if code in _DENIED:
        return (
            f"AWS denies {error.operation_name} ({code}): your policy must allow it, and no other policy may deny it"
        )
    return f"AWS refuses {error.operation_name} ({code}: {message})"


@contextmanager
def plain_refusals(where: str, sentences: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn a refusal of AWS into a mistake that a user reads.

    Args:
        where: What it is about.
        sentences: What codes mean here, before what they mean elsewhere.

    Raises:
        ValueError: AWS refuses.
    """
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        said = explained(error, sentences)
        if said is None:
            raise
        named = isinstance(error, OSError) and error.filename
        known = sentences and said in sentences.values()
        raise ValueError(said if named or known else f"{where}: {said}") from error


def plain_errors(status: int = 2, *, unreadable: int | None = None) -> AbstractContextManager[None]:
    """End the program with one sentence for each mistake of its user, including what AWS refuses.

    Args:
        status: The exit status of a mistake. Default: 2
        unreadable: The exit status where a file cannot be read. Default: - `status`
    """
    return problems.plain_errors(status, unreadable=unreadable, explain=explained)
