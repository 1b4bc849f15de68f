"""The user's credentials for what a command asks AWS, and why AWS does not answer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import boto3

# https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html, and the names that services use beside these.
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_UNKNOWN = {"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "AuthFailure"}


def aws_session(asker: str, profile: str | None = None) -> "boto3.Session":
    """Return a session with the user's credentials, whose clients try again where AWS is busy.

    Args:
        asker: What asks AWS: a command or an option.
        profile: The profile of the AWS configuration. Default: - `AWS_PROFILE`, or the default one

    Raises:
        ValueError: There are no credentials.
    """
    import boto3  # noqa: PLC0415 - what asks AWS nothing does without it
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    try:
        core = Session(profile=profile)
        core.set_default_client_config(Config(retries={"mode": "standard", "max_attempts": 5}))
        session = boto3.Session(botocore_session=core)
        found = session.get_credentials()
    except BotoCoreError as error:
        raise ValueError(f"{asker} cannot ask AWS: {str(error).rstrip('.')}") from error
    if found is None:
        raise ValueError(
            f"{asker} asks AWS, and there are no credentials: set AWS_PROFILE, or run aws configure or aws sso login"
        )
    return session


def refusal(error: BaseException | None) -> str | None:
    """Return why AWS did not answer, as a code. None: it did.

    Args:
        error: What came in place of an answer.

    Raises:
        BaseException: The error, if it is neither AWS's nor one of the way to AWS.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    if error is None:
        return None
    if isinstance(error, ClientError):
        return str(error.response["Error"]["Code"])
    if isinstance(error, BotoCoreError):
        return type(error).__name__
    raise error


def about_credentials(code: str) -> str | None:
    """Return what is wrong with the credentials, if a code says that it is they. None: it is something else.

    Args:
        code: The code.
    """
    if code in _EXPIRED or "SSO" in code or code == "TokenRetrievalError":
        return "the credentials have expired: run aws sso login, or get new ones"
    if code in _UNKNOWN:
        return "AWS does not know these credentials: check AWS_PROFILE, and that the keys are whole and active"
    return None
