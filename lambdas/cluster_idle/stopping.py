"""StopInstances for many instances, of which EC2 may refuse some: it stops all of a request or none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

MOST_AT_ONCE = 50
"""How many instances one request names: few enough that one refusal costs little."""

_ID = re.compile(r"\bi-[0-9a-f]{8,17}\b")

# The instance is gone, or going: what was wanted is so.
_GONE = frozenset({"InvalidInstanceID.NotFound", "IncorrectInstanceState", "IncorrectState"})

# Who is denied or throttled now is so with every part of a batch: asking in parts makes it worse.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_NOT_BY_INSTANCE = re.compile(
    r"Throttl|RequestLimitExceeded|TooManyRequests|Unauthorized|AccessDenied|AuthFailure|OptInRequired|Blocked"
    r"|ExpiredToken|RequestExpired|InvalidClientTokenId|Signature|InternalError|InternalFailure|ServerInternal"
    r"|Unavailable|DryRunOperation|^\d+$"
)


def concerns_all(error: Exception) -> bool:
    """Say whether what AWS says, or that it says nothing, has to do with no single instance of a request."""
    return not isinstance(error, ClientError) or _NOT_BY_INSTANCE.search(error_code(error)) is not None


@dataclass(frozen=True, kw_only=True)
class _Batch:
    ids: Sequence[str]
    hibernate: bool


class Stopper:
    """Stop instances in batches. What EC2 refuses of one instance does not keep the others running."""

    def __init__(self, client: "EC2Client", failures: Failures) -> None:
        self._client = client
        self._failures = failures
        self.refused: dict[str, str] = {}
        """The codes with which EC2 refused to stop instances, by their ids."""

    def stop(self, ids: Sequence[str], *, hibernate: bool = False) -> list[str]:
        """Stop instances, and return those that EC2 stops.

        Args:
            ids: Their ids.
            hibernate: Whether they hibernate.
        """
        stopped: list[str] = []
        for start in range(0, len(ids), MOST_AT_ONCE):
            stopped += self._stop(_Batch(ids=list(ids[start : start + MOST_AT_ONCE]), hibernate=hibernate))
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
        """Drop whom EC2 names and stop the others; if it names nobody, find out by halves."""
        if concerns_all(error):
            self._failures.add(", ".join(batch.ids), "could not be stopped", error)
            return []
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

    def _refused(self, ids: Sequence[str], error: Exception) -> None:
        if error_code(error) in _GONE:
            return
        for one in ids:
            self.refused[one] = error_code(error)
            self._failures.add(one, "could not be stopped", error, instance_id=one)
