"""A table of DynamoDB in memory, with a partition key and a sort key."""

import json
from collections.abc import Iterator
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from fake_service import ACCOUNT, REGION, FakePaginator, FakeService, refusal

TABLE = "state-table"
_PARTITION_KEY, _SORT_KEY = "part", "name"
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
_MAX_BATCH, _MAX_ITEM_BYTES, _MAX_SORT_KEY_BYTES = 25, 400 * 1024, 1024


class FakeDynamoDb(FakeService):
    """The client of DynamoDB, as far as `StateTable` asks it.

    Attributes:
        items: The items as DynamoDB holds them, by partition and sort key.
        page_size: How many items a page of a query holds.
        leaves: How many items the next BatchWriteItem does not write.
    """

    def __init__(self) -> None:
        super().__init__("dynamodb")
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        self.page_size = 2
        self.leaves = 0

    def values(self, part: str, name: str) -> dict[str, Any]:
        """Return the attributes of an item, as Python has them."""
        deserialize = TypeDeserializer().deserialize
        found = {key: deserialize(value) for key, value in self.items[part, name].items()}
        return dict(json.loads(json.dumps(found, default=int)))

    def change(self, part: str, name: str, **values: Any) -> None:
        """Change attributes of an item by hand; None takes one away."""
        item = self.items.setdefault((part, name), {_PARTITION_KEY: {"S": part}, _SORT_KEY: {"S": name}})
        for key, value in values.items():
            item.pop(key, None)
            if value is not None:
                item[key] = TypeSerializer().serialize(value)

    def get_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetItem."""
        key = _key(parameters["Key"])
        self._ask("GetItem", parameters, *key)
        assert parameters["ConsistentRead"]
        return {"Item": dict(self.items[key])} if key in self.items else {}

    def put_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer PutItem under the conditions that `StateTable` writes."""
        item = parameters["Item"]
        key = _key(item)
        self._ask("PutItem", parameters, *key)
        assert 0 < len(key[1].encode()) <= _MAX_SORT_KEY_BYTES
        assert len(json.dumps(item)) <= _MAX_ITEM_BYTES
        name = parameters["ExpressionAttributeNames"]["#version"]
        found = self.items.get(key, {}).get(name)
        given = parameters.get("ExpressionAttributeValues", {})
        expected = {":seen": found} if found else {}
        holds = "#version = :seen" if found else "attribute_not_exists(#version)"
        assert parameters["ConditionExpression"] in ("#version = :seen", "attribute_not_exists(#version)")
        if (parameters["ConditionExpression"], given) != (holds, expected):
            raise refusal("PutItem", "ConditionalCheckFailedException", "The conditional request failed")
        self.items[key] = dict(item)
        return {}

    def batch_write_item(self, **parameters: Any) -> dict[str, Any]:
        """Answer BatchWriteItem; the first `leaves` items of each request are left for another one."""
        ((table, requests),) = parameters["RequestItems"].items()
        assert 0 < len(requests) <= _MAX_BATCH
        items = [
            one["PutRequest"]["Item"] if "PutRequest" in one else one["DeleteRequest"]["Key"] for one in requests
        ]
        (part,) = {item[_PARTITION_KEY]["S"] for item in items}
        names = [item[_SORT_KEY]["S"] for item in items]
        assert len(set(names)) == len(names)
        self._ask("BatchWriteItem", parameters, part, *names)
        left, self.leaves = requests[: self.leaves], 0
        for item, request in list(zip(items, requests, strict=True))[len(left) :]:
            assert len(json.dumps(item)) <= _MAX_ITEM_BYTES
            if "PutRequest" in request:
                self.items[_key(item)] = dict(item)
            else:
                self.items.pop(_key(item), None)
        return {"UnprocessedItems": {table: left} if left else {}}

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of an operation."""
        return FakePaginator({"query": self._query}[operation])

    def _query(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        assert parameters["KeyConditionExpression"] == "#part = :part"
        assert parameters["ExpressionAttributeNames"] == {"#part": _PARTITION_KEY}
        assert parameters["ConsistentRead"]
        part = parameters["ExpressionAttributeValues"][":part"]["S"]
        self._ask("Query", parameters, part)
        found = [dict(item) for (its_part, _), item in sorted(self.items.items()) if its_part == part]
        yield {"Items": found[: self.page_size]}
        for start in range(self.page_size, len(found), self.page_size):
            yield {"Items": found[start : start + self.page_size]}

    def _ask(self, operation: str, parameters: dict[str, Any], part: str, *names: str) -> None:
        (table,) = parameters.get("RequestItems", [parameters.get("TableName")])
        arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}"
        keys: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": [part]}
        sent = {
            key: value for key, value in parameters.items() if key != "TableName" or operation != "BatchWriteItem"
        }
        self.record(operation, sent, names=[part, *names], arn=arn, context=keys)
        if table != TABLE:
            raise refusal(operation, "ResourceNotFoundException", "Requested resource not found")

    @property
    def writes(self) -> list[str]:
        """The operations that changed something, in order."""
        return [
            call.action.split(":")[1]
            for call in self.calls
            if call.action in ("dynamodb:PutItem", "dynamodb:BatchWriteItem")
        ]


def _key(attributes: dict[str, Any]) -> tuple[str, str]:
    return attributes[_PARTITION_KEY]["S"], attributes[_SORT_KEY]["S"]
