"""The table of the runs in memory, for clients that race: real conditions, lost answers, real error codes."""

import random
import threading
from typing import Any

from botocore.exceptions import ReadTimeoutError

from fake_service import FakeService, refusal

TABLE = "runs"
_ENDPOINT = "https://dynamodb.us-east-1.amazonaws.com/"
_THROTTLED = "ProvisionedThroughputExceededException"


class FakeRunsTable(FakeService):
    """The client of DynamoDB as far as `RunTable` asks it.

    Attributes:
        items: The items by run and key.
        page_size: How many items a page of a query holds.
        returned: How many items queries have returned.
        lost_answers: The share of writes that botocore sends again, since their first answer was lost.
        unanswered: The share of writes that are done, and whose answers are all lost.
        throttled: The share of calls that are refused after all of botocore's repetitions.
        down: Whether DynamoDB does not answer.
    """

    def __init__(self, *, lost_answers: float = 0, throttled: float = 0) -> None:
        super().__init__("dynamodb")
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        self.page_size = 3
        self.returned = 0
        self.lost_answers = lost_answers
        self.unanswered = 0.0
        self.throttled = throttled
        self.down = False
        self._lock = threading.Lock()
        self._random = random.Random(17)  # noqa: S311

    def get_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetItem."""
        with self._lock:
            self._ask("GetItem", parameters)
            assert parameters["ConsistentRead"]
            item = self.items.get(_key(parameters["Key"]))
            return {"Item": dict(item)} if item else {}

    def put_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer PutItem under the conditions that `RunTable` writes."""
        with self._lock:
            self._ask("PutItem", parameters)
            self._twice(lambda: self._put(parameters))
            return {}

    def update_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer UpdateItem of a counter."""
        with self._lock:
            self._ask("UpdateItem", parameters)
            assert parameters["UpdateExpression"] == "ADD marks :marks SET expires = :expires"
            item = self.items.setdefault(_key(parameters["Key"]), {**parameters["Key"], "marks": {"SS": []}})
            marks = parameters["ExpressionAttributeValues"][":marks"]["SS"]
            self._twice(lambda: item.update(marks={"SS": sorted({*item["marks"]["SS"], *marks})}))
            return {"Attributes": {"marks": item["marks"]}}

    def query(self, **parameters: Any) -> dict[str, Any]:
        """Answer Query by pages."""
        with self._lock:
            self._ask("Query", parameters)
            values = parameters["ExpressionAttributeValues"]
            run, first = values[":run"]["S"], values[":first"]["S"]
            condition = parameters["KeyConditionExpression"].removeprefix("#run = :run AND ")
            assert condition in ("begins_with(#key, :first)", "#key BETWEEN :first AND :last")
            last = values[":last"]["S"] if ":last" in values else f"{first}~"
            after = parameters.get("ExclusiveStartKey", {"key": {"S": ""}})["key"]["S"]
            keys = sorted(key for key in self.items if key[0] == run and first <= key[1] <= last and key[1] > after)
            page = [dict(self.items[key]) for key in keys[: self.page_size]]
            self.returned += len(page)
            more = len(keys) > self.page_size
            return {"Items": page, **({"LastEvaluatedKey": {"key": page[-1]["key"]}} if more else {})}

    def _put(self, parameters: dict[str, Any]) -> None:
        item = parameters["Item"]
        found = self.items.get(_key(item))
        condition = parameters.get("ConditionExpression")
        if condition == "attribute_not_exists(#key)":
            holds = found is None
        elif condition == "#version = :version":
            holds = found is not None and found.get("version") == parameters["ExpressionAttributeValues"][":version"]
        else:
            assert condition is None
            holds = True
        if not holds:
            error = refusal("PutItem", "ConditionalCheckFailedException", "The conditional request failed")
            if found and parameters["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD":
                error.response["Item"] = dict(found)  # type: ignore[typeddict-unknown-key]
            raise error
        self.items[_key(item)] = dict(item)

    def _twice(self, write: Any) -> None:
        write()
        if self._random.random() < self.lost_answers:
            write()
        if self._random.random() < self.unanswered:
            raise ReadTimeoutError(endpoint_url=_ENDPOINT)

    def _ask(self, operation: str, parameters: dict[str, Any]) -> None:
        self.record(operation, parameters)
        if self.down:
            raise ReadTimeoutError(endpoint_url=_ENDPOINT)
        if self._random.random() < self.throttled:
            raise refusal(operation, _THROTTLED, "The level of configured provisioned throughput was exceeded")
        if parameters["TableName"] != TABLE:
            raise refusal(operation, "ResourceNotFoundException", "Requested resource not found")


def _key(attributes: dict[str, Any]) -> tuple[str, str]:
    return attributes["run"]["S"], attributes["key"]["S"]
