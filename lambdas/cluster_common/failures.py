"""What failed in one run of a function."""

from aws_lambda_powertools import Logger

from cluster_common.errors import PartialFailureError, error_text


class Failures:
    """Collect what failed for one thing or another, so that the others need not wait."""

    def __init__(self, logger: Logger, *, subject_key: str = "subject") -> None:
        """Collect nothing yet.

        Args:
            logger: Where each failure is written at once.
            subject_key: What the log's records call that which a failure is of.
        """
        self._logger = logger
        self._subject_key = subject_key
        self._sentences: list[str] = []

    def __bool__(self) -> bool:
        """Whether anything failed."""
        return bool(self._sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What failed, a sentence each."""
        return tuple(self._sentences)

    def add(self, subject: str, what: str, error: Exception, **keys: object) -> None:
        """Log that something failed, and keep it for the end.

        Args:
            subject: What it failed for, or more of them.
            what: What could not be done.
            error: What AWS says.
            **keys: What else the log's record says, by name.
        """
        self.add_sentence(subject, f"{what} ({error_text(error)})", **keys)

    def add_sentence(self, subject: str, what: str, **keys: object) -> None:
        """Log that something failed of which AWS has nothing to say, and keep it for the end.

        Args:
            subject: What it failed for, or more of them.
            what: What could not be done, and why.
            **keys: What else the log's record says, by name.
        """
        failure = f"{subject}: {what}"
        self._sentences.append(failure)
        self._logger.error(failure, extra={self._subject_key: subject, **keys})

    def raise_all(self) -> None:
        """Raise what failed, if anything did.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        if self._sentences:
            raise PartialFailureError(self._sentences)
