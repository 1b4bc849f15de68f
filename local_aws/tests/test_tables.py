"""DynamoDB tables that come, change and go with their stacks, and what they are refused for."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks, Template


def _table(*keys: str, policy: str = "Delete", **properties: Any) -> Template:
    names = keys or ("part", "name")
    return {
        "Resources": {
            "Items": {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": policy,
                "UpdateReplacePolicy": policy,
                "Properties": {
                    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
                    "KeySchema": [
                        {"AttributeName": name, "KeyType": kind}
                        for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
                    ],
                    "BillingMode": "PAY_PER_REQUEST",
                    **properties,
                },
            }
        }
    }


def _names(aws: LocalAws) -> list[str]:
    return list(aws.client("dynamodb").list_tables()["TableNames"])


def test_a_table_that_is_protected_cannot_be_deleted_until_it_is_not(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(_table(DeletionProtectionEnabled=True))
    table = stacks.physical_ids(name)["Items"]
    with pytest.raises(ClientError, match="DeletionProtectionEnabled"):
        aws.client("dynamodb").delete_table(TableName=table)

    stacks.api.delete_stack(StackName=name)
    assert stacks.status(name) == "DELETE_FAILED"
    aws.client("dynamodb").update_table(TableName=table, DeletionProtectionEnabled=False)
    stacks.api.delete_stack(StackName=name)

    assert table not in _names(aws)


def test_a_table_with_other_keys_is_another_table_and_a_kept_one_stays(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(_table(policy="Retain"))
    before = stacks.physical_ids(name)["Items"]

    stacks.update(name, _table("part", "moment", policy="Retain"))

    after = stacks.physical_ids(name)["Items"]
    assert before != after
    assert {before, after} <= set(_names(aws))
    stacks.api.delete_stack(StackName=name)
    assert {before, after} <= set(_names(aws))


def test_an_attribute_that_is_no_key_is_refused(stacks: Stacks) -> None:
    template = _table()
    properties = template["Resources"]["Items"]["Properties"]
    properties["AttributeDefinitions"].append({"AttributeName": "size", "AttributeType": "N"})

    name = stacks.create(template)

    assert "Some AttributeDefinitions are not used: size" in stacks.reasons(name)["Items"]


@pytest.mark.parametrize(("key", "value"), [("owner", "ana@example.com"), ("team@work", "ml")])
def test_a_tag_with_a_character_that_dynamodb_does_not_take_is_refused(stacks: Stacks, key: str, value: str) -> None:
    name = stacks.create(_table(Tags=[{"Key": key, "Value": value}]))

    assert "provided is invalid" in stacks.reasons(name)["Items"]
