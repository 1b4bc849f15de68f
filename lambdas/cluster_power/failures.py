"""What failed in one run of the function."""

from aws_lambda_powertools import Logger

from cluster_common.errors import PartialFailureError, error_text


class Failures:
    """Collect what failed for one node group or another, so that the others need not wait."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._sentences: list[str] = []

    def __bool__(self) -> bool:
        """Whether anything failed."""
        return bool(self._sentences)

    def add(self, node_group: str, what: str, error: Exception) -> None:
        """Log that something failed, and keep it for the end.

        Args:
            node_group: The node group that it failed for, or more of them.
            what: What could not be done.
            error: What AWS says.
        """
        failure = f"{node_group}: {what} ({error_text(error)})"
        self._sentences.append(failure)
        self._logger.error(failure, extra={"node_group": node_group})

    def raise_all(self) -> None:
        """Raise what failed, if anything did.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        if self._sentences:
            raise PartialFailureError(self._sentences)
