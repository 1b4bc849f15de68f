"""One part of a cluster's state: items of a DynamoDB table, by name, that only one function writes.

A write of one item is conditional on the version that the writer has seen, so that no run overwrites what it does not
know. A write of many has no condition: it is for functions of which one run ends before the next begins.

Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html and
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from cluster_common.errors import error_code
from cluster_contract.state import StateAttribute

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


# BatchWriteItem takes so many, and may leave some of them for another request.
_MAX_ITEMS = 25
_PAUSES = (0.05, 0.2, 1.0)


class StateChangedError(Exception):
    """Say that an item has changed since it was read. Nothing was written."""


@dataclass(frozen=True, kw_only=True)
class StateItem:
    """One item, as it was read.

    Attributes:
        values: Its attributes but for its keys, version and expiry: text, whole numbers, truth values, lists and
            mappings.
        version: Its version as DynamoDB has it. None: there is no such item yet.
        expires: When DynamoDB may delete it, as DynamoDB has that. None: never.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    version: Any = None
    expires: Any = None


NO_ITEM = StateItem()
"""What is known of an item that does not exist yet."""


class StateTable:
    """The items of one part, read as they are after the last write."""

    def __init__(self, client: "DynamoDBClient", table: str, part: str) -> None:
        """Know where the items are.

        Args:
            client: The client of DynamoDB.
            table: The table's name.
            part: The part, by its partition key.
        """
        self._client = client
        self._part = part
        self.name = table

    def read_all(self) -> dict[str, StateItem]:
        """Read all items of the part, by name."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self.name,
            ConsistentRead=True,
            KeyConditionExpression="#part = :part",
            ExpressionAttributeNames={"#part": StateAttribute.PART},
            ExpressionAttributeValues={":part": {"S": self._part}},
        )
        found = [raw for page in pages for raw in page["Items"]]
        return {raw[StateAttribute.NAME]["S"]: _item(raw) for raw in found}

    def read(self, name: str) -> StateItem:
        """Read one item, or say that there is none.

        Args:
            name: The item's name.
        """
        answer = self._client.get_item(TableName=self.name, Key=self._key(name), ConsistentRead=True)
        return _item(answer["Item"]) if "Item" in answer else NO_ITEM

    def write(
        self, name: str, values: Mapping[str, Any], *, seen: StateItem, expires: datetime | None = None
    ) -> StateItem:
        """Write one item whole, if it is still as it was seen, and return it.

        Args:
            name: The item's name.
            values: Its attributes, as `StateItem` has them.
            seen: What was read of it, or written last.
            expires: When DynamoDB may delete it. Default: - never.

        Raises:
            StateChangedError: Another run has written it since.
        """
        before = str((seen.version or {}).get("N", 0))
        version = {"N": str(int(before) + 1 if before.isdecimal() else 1)}
        serialize = TypeSerializer().serialize
        written = {key: serialize(value) for key, value in values.items()}
        item = {**written, **self._key(name), StateAttribute.VERSION: version}
        forgotten = None if expires is None else {"N": str(int(expires.timestamp()))}
        if forgotten is not None:
            item[StateAttribute.EXPIRES] = forgotten
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#version)"}
        if seen.version is not None:
            values_seen = {":seen": seen.version}
            condition = {"ConditionExpression": "#version = :seen", "ExpressionAttributeValues": values_seen}
        try:
            self._client.put_item(
                TableName=self.name,
                Item=item,
                ExpressionAttributeNames={"#version": StateAttribute.VERSION},
                **condition,
            )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                raise StateChangedError(f"{self._part} {name} was changed by another run") from error
            raise
        return StateItem(values=values, version=version, expires=forgotten)

    def write_many(self, items: Mapping[str, Mapping[str, Any] | None], pause: Callable[[float], None]) -> None:
        """Write items whole, or delete them, whatever they hold: 25 with each request.

        Args:
            items: The attributes of each item, by its name. None: it is deleted.
            pause: Waits for some seconds.

        Raises:
            ClientError: DynamoDB wrote some items, or none.
        """
        requests = [self._request(name, values) for name, values in items.items()]
        for start in range(0, len(requests), _MAX_ITEMS):
            left = requests[start : start + _MAX_ITEMS]
            for seconds in _PAUSES:
                answer = self._client.batch_write_item(RequestItems={self.name: left})
                left = answer.get("UnprocessedItems", {}).get(self.name, [])
                if not left:
                    break
                pause(seconds)
            else:
                code = "ProvisionedThroughputExceededException"
                message = f"{len(left)} items were not written"
                raise ClientError({"Error": {"Code": code, "Message": message}}, "BatchWriteItem")

    def delete_command(self, name: str, region: str) -> str:
        """Return the command of the AWS CLI that deletes an item, for a shell.

        Args:
            name: The item's name.
            region: The table's region.
        """
        key = shlex.quote(json.dumps(self._key(name), separators=(",", ":")))
        return f"aws dynamodb delete-item --region {region} --table-name {self.name} --key {key}"

    def _request(self, name: str, values: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 (boto3's input is not its output)
        if values is None:
            return {"DeleteRequest": {"Key": self._key(name)}}
        serialize = TypeSerializer().serialize
        return {"PutRequest": {"Item": {key: serialize(value) for key, value in values.items()} | self._key(name)}}

    def _key(self, name: str) -> dict[str, Any]:
        return {StateAttribute.PART: {"S": self._part}, StateAttribute.NAME: {"S": name}}


def _item(raw: Mapping[str, Any]) -> StateItem:
    deserialize = TypeDeserializer().deserialize
    values = {key: _plain(deserialize(value)) for key, value in raw.items() if key not in list(StateAttribute)}
    return StateItem(values=values, version=raw.get(StateAttribute.VERSION), expires=raw.get(StateAttribute.EXPIRES))


def _plain(value: Any) -> Any:  # noqa: ANN401 (any value that DynamoDB holds)
    """Return whole numbers as such: boto3 reads every number as a Decimal."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value
