"""How a function reports that a part of its work failed."""

from botocore.exceptions import BotoCoreError, ClientError

from cluster_contract.texts import printable

_LONGEST_REFUSAL = 1000

AWS_ERRORS = (BotoCoreError, ClientError)
"""What a call to AWS can raise: an answer that is an error, or no answer."""


class InvalidEventError(ValueError):
    """Say that an event asks for something the function does not do. Nothing was done.

    Lambda logs it, and an event has up to 6 MB: the text is one line of at most 1,000 characters.
    """

    def __init__(self, text: str) -> None:
        super().__init__(printable(text, _LONGEST_REFUSAL))


class PartialFailureError(Exception):
    """Say, when all of the work was tried, what failed, so that the function's error metric rises."""

    def __init__(self, failures: list[str]) -> None:
        super().__init__(f"{'; '.join(failures)}. Everything else was done.")
        self.failures = tuple(failures)


def error_code(error: Exception) -> str:
    """Return the code that AWS gave an error, or the error's own name where AWS gave no answer."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__


def error_text(error: Exception) -> str:
    """Return an AWS error as `Code: message`."""
    if isinstance(error, ClientError):
        message = str(error.response.get("Error", {}).get("Message", "")).strip()
        return f"{error_code(error)}: {message}" if message else error_code(error)
    return f"{error_code(error)}: {error}"
