"""Tags on instances: as many at a time as EC2 takes, and what EC2 refuses of one keeps no other waiting."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures
from cluster_idle.stopping import DENIED, MAX_DENIED, concerns_all

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import TagTypeDef

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateTags.html
_MAX_TAGGED = 1000


class InstanceTags:
    """Write tags on instances, and take them away."""

    def __init__(self, ec2: "Callable[[], EC2Client]", failures: Failures) -> None:
        self._ec2 = ec2
        self._failures = failures
        self._denied = 0

    def write(self, tags: Iterable[tuple[str, Mapping[str, str]]]) -> set[str]:
        """Write tags on instances by their ids; return the ids of those that could not be tagged."""
        failed: set[str] = set()
        alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for instance_id, own in tags:
            alike.setdefault(tuple(own.items()), []).append(instance_id)
        for items, ids in alike.items():
            written: list[TagTypeDef] = [{"Key": key, "Value": value} for key, value in items]
            for some in _batches(ids):
                failed |= self._tag(
                    some,
                    lambda ids, written=written: self._ec2().create_tags(Resources=ids, Tags=written),  # type: ignore[misc]  # bound now
                )
        return failed

    def clear(self, ids: Sequence[str], keys: Sequence[str]) -> None:
        """Take tags away from instances."""
        tags: list[TagTypeDef] = [{"Key": key} for key in keys]
        for some in _batches(ids):
            self._tag(some, lambda ids: self._ec2().delete_tags(Resources=ids, Tags=tags))

    def _tag(self, ids: list[str], write: Callable[[list[str]], object]) -> set[str]:
        """Tag many; EC2 need not name the one that it refuses, which is found by halves."""
        try:
            write(ids)
        except AWS_ERRORS as error:
            self._denied += error_code(error) in DENIED
            hopeless = concerns_all(error) or (error_code(error) in DENIED and self._denied > MAX_DENIED)
            if len(ids) == 1 or hopeless:
                self._failures.add(", ".join(ids), "its tags could not be written", error)
                return set(ids)
            middle = len(ids) // 2
            return {one for half in (ids[:middle], ids[middle:]) for one in self._tag(half, write)}
        return set()


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _MAX_TAGGED):
        yield list(ids[start : start + _MAX_TAGGED])
