"""One run's items in the cluster's table of runs: state that changes by conditional puts, values, counters, history.

The keys of the table are `run` and `key`; items go by themselves at `expires`, since nothing in it outlives a run.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cluster_job.hang_watch import say

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEPT_SECONDS = 14 * 86_400
"""How long after its last change an item stays. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html"""

KEPT_REPORT_SECONDS = 400 * 86_400
"""The same for the last report of a run, which holds its cost and goes on after a pause."""

_NODES_OWN = "replaced-before-service/"

PATIENCE_SECONDS = 600
PAUSE_SECONDS = 30

_Answer = TypeVar("_Answer")

_CONDITION_FAILED = "ConditionalCheckFailedException"


class TableError(Exception):
    """The table did not answer, or refused: the message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """A value with the number that `replace` has to name.

    Attributes:
        value: The value.
        version: Its number, which grows by 1 with each change; 0 for what `put` wrote.
    """

    value: bytes
    version: int


class RunTable:
    """The items of one run.

    botocore repeats what throttling, a fault of the service or the network ended. So each change here gives the
    same result if it arrives twice: a repeated put whose first answer was lost finds its own mark.

    Args:
        client: boto3's client of DynamoDB.
        table: The table's name.
        run: The run's name.
        kept_seconds: How long after its last change an item stays.

    Raises:
        ValueError: The name is kept for the nodes.
    """

    def __init__(self, client: "DynamoDBClient", table: str, run: str, *, kept_seconds: float = KEPT_SECONDS) -> None:
        if run.startswith(_NODES_OWN):
            raise ValueError(f"the name of a run must not start with {_NODES_OWN}, got {run!r}: give it another name")
        self._client = client
        self._table = table
        self._run = run
        self._kept_seconds = kept_seconds

    def read(self, key: str) -> Versioned | None:
        """Return what lies at a key; None: nothing.

        Args:
            key: The key within the run.
        """
        answer = self._call("get_item", Key=self._key(key), ConsistentRead=True)
        return _versioned(answer.get("Item"))

    def replace(self, key: str, value: bytes, version: int | None) -> tuple[Versioned | None, bool]:
        """Change a value unless another process has changed it since; return what it is now, and whether it is ours.

        Args:
            key: The key within the run.
            value: The new value.
            version: The number of the value it replaces. None: nothing lies there yet.
        """
        mark = uuid.uuid4().hex
        new = Versioned(value=value, version=(version or 0) + 1)
        item = {**self._item(key, value), "version": {"N": str(new.version)}, "mark": {"S": mark}}
        if version is None:
            condition: dict[str, Any] = {
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": {"#key": "key"},
            }
        else:
            condition = {
                "ConditionExpression": "#version = :version",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": {":version": {"N": str(version)}},
            }
        refused = self._put(item, condition)
        if refused is None or refused.get("mark") == {"S": mark}:
            return new, True
        return _versioned(refused), False

    def put(self, key: str, value: bytes) -> None:
        """Put a value at a key, whatever lies there.

        Args:
            key: The key within the run.
            value: The value.
        """
        self._put(self._item(key, value), {})

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, exactly once, and return its value; it begins at 0.

        A counter is a set with a mark for each unit: a mark that arrives twice counts once.

        Args:
            key: The key within the run.
            amount: How much to add: 1 or more.
        """
        answer = self._call(
            "update_item",
            Key=self._key(key),
            UpdateExpression="ADD marks :marks SET expires = :expires",
            ExpressionAttributeValues={
                ":marks": {"SS": [uuid.uuid4().hex for _ in range(amount)]},
                ":expires": self._expires(),
            },
            ReturnValues="UPDATED_NEW",
        )
        return len(answer["Attributes"]["marks"]["SS"])

    def list(self, prefix: str, *, since: str = "") -> Mapping[str, bytes]:
        """Return the values whose keys begin with a text, by their keys, in the order of these.

        Args:
            prefix: The beginning.
            since: What comes after it in the first key to read. Default: - all are read
        """
        return dict(self._pages(prefix, since))

    def _pages(self, prefix: str, since: str) -> Iterator[tuple[str, bytes]]:
        values = {":run": {"S": self._run}, ":first": {"S": prefix + since}}
        condition = "begins_with(#key, :first)"
        if since:
            values[":last"] = {"S": f"{prefix}~"}  # behind all letters and digits
            condition = "#key BETWEEN :first AND :last"
        start: dict[str, Any] = {}
        while True:
            answer = self._call(
                "query",
                KeyConditionExpression=f"#run = :run AND {condition}",
                ExpressionAttributeNames={"#run": "run", "#key": "key"},
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                **start,
            )
            for item in answer["Items"]:
                yield item["key"]["S"], bytes(item["value"]["B"])
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _key(self, key: str) -> dict[str, Any]:
        return {"run": {"S": self._run}, "key": {"S": key}}

    def _item(self, key: str, value: bytes) -> dict[str, Any]:
        return {**self._key(key), "value": {"B": value}, "expires": self._expires()}

    def _expires(self) -> dict[str, str]:
        return {"N": str(int(time.time() + self._kept_seconds))}

    def _put(self, item: dict[str, Any], condition: dict[str, Any]) -> dict[str, Any] | None:
        """Put an item; return what lies there where the condition does not hold, and None where it was put."""
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html
        returned = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if condition else {}
        answer = self._call("put_item", Item=item, **condition, **returned)
        return answer.get("refused_by")

    def _call(self, action: str, **arguments: object) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - the extra `torchrun` brings it

        try:
            answer: dict[str, Any] = getattr(self._client, action)(TableName=self._table, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] == _CONDITION_FAILED:
                return {"refused_by": error.response.get("Item", {})}
            raise TableError(f"DynamoDB's table {self._table} refused {action}: {error}") from error
        except BotoCoreError as error:
            raise TableError(f"DynamoDB's table {self._table} did not answer {action}: {error}") from error
        return answer


def _versioned(item: Mapping[str, Any] | None) -> Versioned | None:
    if not item:
        return None
    return Versioned(value=bytes(item["value"]["B"]), version=int(item.get("version", {"N": "0"})["N"]))


def keep_asking(
    call: Callable[[], _Answer],
    errors: tuple[type[Exception], ...],
    *,
    patience: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> _Answer:
    """Ask until there is an answer: all nodes ask at once when they start again.

    Args:
        call: What asks.
        errors: What it raises where the table does not answer; it is raised after the patience.
        patience: For how many seconds it is asked again.
        pause: The most seconds between two calls.
        clock: Returns seconds that never go back.
        sleep: Waits for some seconds.
    """
    end = clock() + patience
    while True:
        try:
            return call()
        except errors as error:
            if clock() >= end:
                raise
            seconds = random.uniform(1, pause)  # noqa: S311 - it spreads the nodes
            say(f"{error}: this node asks again in {seconds:.0f} s")
            sleep(seconds)


def open_table(table: str, run: str, *, region: str | None, kept_seconds: float = KEPT_SECONDS) -> RunTable:
    """Return a run's items in a table, with boto3's client.

    Args:
        table: The table's name.
        run: The run's name.
        region: The AWS Region. None: what boto3 finds.
        kept_seconds: How long after its last change an item stays.

    Raises:
        TableError: boto3 is not installed.
    """
    try:
        import boto3  # noqa: PLC0415 - the extra `torchrun` brings it
        from botocore.config import Config  # noqa: PLC0415
    except ImportError as error:
        raise TableError(
            "torchrun's environment has no boto3, which the rendezvous needs: "
            "pip install 'cdk-training-cluster-job[torchrun]'"
        ) from error
    # Short, since a rendezvous takes a node for lost that has not written for some seconds.
    config = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 3})
    client = boto3.client("dynamodb", region_name=region, config=config)
    return RunTable(client, table, run, kept_seconds=kept_seconds)
