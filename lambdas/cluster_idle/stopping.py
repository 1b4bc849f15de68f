"""StopInstances for many instances, of which EC2 may refuse some: it stops all of a request or none."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

MAX_AT_ONCE = 50
"""How many instances one request names: few enough that one refusal costs little."""

_ID = re.compile(r"\bi-[0-9a-f]{8,17}\b")

# The instance is gone, or going: what was wanted is so.
_GONE = frozenset({"InvalidInstanceID.NotFound", "IncorrectInstanceState", "IncorrectState"})

DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
"""The codes with which AWS denies a request, which may be for the sake of one instance of it: of its tags, say.

The message names it, or holds it encoded: https://repost.aws/knowledge-center/ec2-not-auth-launch
"""

# Where all are denied, finding that out one by one takes two requests for each.
MAX_DENIED = 20
"""How many denials of one kind of request a run goes on after."""

# Throttling meets every part of a batch: more requests make it worse.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_NOT_BY_INSTANCE = re.compile(
    r"Throttl|RequestLimitExceeded|TooManyRequests|AuthFailure|OptInRequired|Blocked"
    r"|ExpiredToken|RequestExpired|InvalidClientTokenId|Signature|InternalError|InternalFailure|ServerInternal"
    r"|Unavailable|DryRunOperation|^\d+$"
)


# AWS failed itself, perhaps after it had begun.
_UNCLEAR = re.compile(r"InternalError|InternalFailure|ServerInternal|Unavailable|^5\d\d$")


def concerns_all(error: Exception) -> bool:
    """Say whether what AWS says, or that it says nothing, has to do with no single instance of a request."""
    return not isinstance(error, ClientError) or _NOT_BY_INSTANCE.search(error_code(error)) is not None


def _is_unclear(error: Exception) -> bool:
    """Say whether AWS may have done what it was asked, though it did not say so."""
    return not isinstance(error, ClientError) or _UNCLEAR.search(error_code(error)) is not None


@dataclass(frozen=True, kw_only=True)
class _Batch:
    ids: Sequence[str]
    hibernate: bool


class Stopper:
    """Stop instances in batches. What EC2 refuses of one instance does not keep the others running."""

    def __init__(
        self, client: "EC2Client", failures: Failures, read_running: Callable[[Sequence[str]], Collection[str]]
    ) -> None:
        """Stop nothing yet.

        Args:
            client: The client of EC2.
            failures: Where it is kept what failed.
            read_running: Returns which of some instances run still, or may.
        """
        self._client = client
        self._failures = failures
        self._read_running = read_running
        self._denied = 0
        self.refused: dict[str, str] = {}
        """The codes with which EC2 refused to stop instances, by their ids."""

    def stop(self, ids: Sequence[str], *, hibernate: bool = False) -> list[str]:
        """Stop instances, and return those that EC2 stops.

        Args:
            ids: Their ids.
            hibernate: Whether they hibernate.
        """
        stopped: list[str] = []
        for start in range(0, len(ids), MAX_AT_ONCE):
            stopped += self._stop(_Batch(ids=list(ids[start : start + MAX_AT_ONCE]), hibernate=hibernate))
        return stopped

    def _stop(self, batch: _Batch) -> list[str]:
        if not batch.ids:
            return []
        try:
            more = {"Hibernate": True} if batch.hibernate else {}
            self._client.stop_instances(InstanceIds=list(batch.ids), **more)
        except AWS_ERRORS as error:
            return self._after_refusal(batch, error)
        return list(batch.ids)

    def _after_refusal(self, batch: _Batch, error: Exception) -> list[str]:
        """Drop the instances that EC2 names and stop the others; if it names none, find them by halves."""
        self._denied += error_code(error) in DENIED
        if concerns_all(error) or (self._denied > MAX_DENIED and error_code(error) in DENIED):
            return self._after_failure(batch, error)
        named = set(_ID.findall(str(error))) & set(batch.ids)
        if named:
            self._refused(sorted(named), error)
            return self._stop(_Batch(ids=[one for one in batch.ids if one not in named], hibernate=batch.hibernate))
        if len(batch.ids) == 1:
            self._refused(batch.ids, error)
            return []
        middle = len(batch.ids) // 2
        return [
            one
            for half in (batch.ids[:middle], batch.ids[middle:])
            for one in self._stop(_Batch(ids=half, hibernate=batch.hibernate))
        ]

    def _after_failure(self, batch: _Batch, error: Exception) -> list[str]:
        """Return which of a batch are stopped, though AWS did not say so."""
        running = self._read_running(batch.ids) if _is_unclear(error) else batch.ids
        stopped = [one for one in batch.ids if one not in running]
        if running:
            left = (one for one in batch.ids if one in running)
            self._failures.add(", ".join(left), "could not be stopped", error)
        if stopped:
            self._failures.add(", ".join(stopped), "stopped, though EC2 did not say so", error)
        return stopped

    def _refused(self, ids: Sequence[str], error: Exception) -> None:
        if error_code(error) in _GONE:
            return
        for one in ids:
            self.refused[one] = error_code(error)
            self._failures.add(one, "could not be stopped", error, instance_id=one)
