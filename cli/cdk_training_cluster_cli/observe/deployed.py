"""A deployed cluster as commands ask about it: clients for several threads, and its functions' answers."""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TypeVar

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.target import Target, resolve
from cluster_contract.description import ClusterDescription

# arn:aws:lambda:us-east-1:111122223333:function:name, and :alias where there is one.
_PARTS_OF_ARN = 7
_Read = TypeVar("_Read")
STATUS = {"action": "status"}
# Where functions run: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_REFUSALS = {
    "TooManyRequestsException": "the function is busy with another invocation: run the command again in a moment",
    "ResourceNotFoundException": "it is gone: deploy the cluster again",
}


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A deployed cluster at a moment.

    Attributes:
        target: The cluster, and the user's credentials.
        description: What its deployment wrote down.
        now: When AWS is asked.
    """

    target: Target
    description: ClusterDescription
    now: datetime
    # A session makes clients for one thread at a time; clients themselves are for several.
    # https://docs.aws.amazon.com/boto3/latest/guide/session.html#multithreading-or-multiprocessing-with-sessions
    _lock: Lock = field(default_factory=Lock, compare=False)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.target.name

    def client(self, service: str, region: str | None = None) -> Any:  # noqa: ANN401 - each service has its own type
        """Return a client of a service.

        Args:
            service: The service, as boto3 calls it.
            region: The region. Default: - the cluster's.
        """
        with self._lock:
            return self.target.session.client(service, region_name=region or self.target.region)  # type: ignore[call-overload]

    def ask(self, kind: str, event: Mapping[str, object] = STATUS) -> Mapping[str, Any] | None:
        """Return what one of the cluster's functions answers. None: the cluster has no such function.

        Args:
            kind: What the function is for, as the cluster's description says.
            event: What it is asked.

        Raises:
            ValueError: It cannot be invoked, or it failed.
        """
        function = self.description.functions.get(kind)
        if function is None:
            return None
        called = f"the {kind} function"
        with plain_refusals(called, _REFUSALS):
            answer = self.client("lambda").invoke(
                FunctionName=unqualified(function.invoke), Payload=json.dumps(event).encode()
            )
            text = answer["Payload"].read().decode(errors="replace")
        content = _content(text)
        if answer.get("FunctionError") or content is None:
            said = (content or {}).get("errorMessage", text[:200])
            raise ValueError(f"{called} failed: {said} (its log group is {function.log_group})")
        return content


def deployed(cluster: str, *, region: str | None, profile: str | None, asker: str) -> Deployed:
    """Find a deployed cluster.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        region: The region. None: the file's, or the AWS configuration's.
        profile: The profile of the AWS configuration. None: the default one.
        asker: The command.

    Raises:
        ValueError: There are no credentials, no region is given, or the cluster is not deployed.
        ClusterFileError: The file is wrong.
    """
    return at_this_moment(resolve(cluster, region=region, profile=profile, asker=asker))


def at_this_moment(target: Target) -> Deployed:
    """Return a deployed cluster as it is asked about now.

    Args:
        target: The cluster.

    Raises:
        ValueError: The cluster is not deployed.
    """
    return Deployed(target=target, description=target.description, now=datetime.now(UTC).replace(microsecond=0))


def read_all(sources: Mapping[str, Callable[[], Iterable[_Read]]]) -> tuple[list[_Read], dict[str, str]]:
    """Read several sources at once, and return what they hold in their order, and why some of it is not known.

    Args:
        sources: What reads each, by its name.
    """
    found: list[_Read] = []
    unknown: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=len(sources)) as threads:
        asked = {name: threads.submit(lambda read=read: list(read())) for name, read in sources.items()}  # type: ignore[misc]
        for name, one in asked.items():
            try:
                found += one.result()
            except ValueError as error:
                unknown[name] = str(error)
    return found, unknown


def unqualified(function: str) -> str:
    """Return what invokes a function through no alias: then the power function takes no commands.

    Args:
        function: Its name or ARN, with an alias or without.
    """
    parts = function.split(":")
    return ":".join(parts[:_PARTS_OF_ARN]) if function.startswith("arn:") else parts[0]


def _content(text: str) -> Mapping[str, Any] | None:
    try:
        content = json.loads(text)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
