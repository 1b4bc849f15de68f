"""The table in which a cluster's functions remember, and who may read and write which part of it."""

from typing import Any

import pytest
from aws_cdk import Aws, RemovalPolicy, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterState
from cluster_contract.state import StatePart
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements
from synthesis import new_stack, only, warnings

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/state"


def test_the_table_is_kept_billed_by_request_restorable_and_has_no_name() -> None:
    stack = new_stack()
    ClusterState(stack, "State")

    table = only(stack, "AWS::DynamoDB::Table")

    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert table["Properties"] == {
        "AttributeDefinitions": [
            {"AttributeName": "part", "AttributeType": "S"},
            {"AttributeName": "name", "AttributeType": "S"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "part", "KeyType": "HASH"},
            {"AttributeName": "name", "KeyType": "RANGE"},
        ],
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    }


def test_a_table_may_go_with_its_stack() -> None:
    stack = new_stack()
    ClusterState(stack, "State", removal_policy=RemovalPolicy.DESTROY)

    table = only(stack, "AWS::DynamoDB::Table")

    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Delete", "Delete")


def test_a_table_has_no_snapshot() -> None:
    with pytest.raises(
        ValueError, match=r"removal_policy must be RemovalPolicy\.DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE, got"
    ):
        ClusterState(new_stack(), "State", removal_policy=RemovalPolicy.SNAPSHOT)


def test_a_tag_that_dynamodb_refuses_and_other_services_take_is_left_off_with_a_warning() -> None:
    stack = new_stack()
    ClusterState(stack, "State")
    sns.Topic(stack, "Topic")
    for key, value in {"owner": "ana@example.com", "team@work": "ml", "cost": "ml 1+2"}.items():
        Tags.of(stack).add(key, value, priority=1000)

    told = [text for text in warnings(stack) if "the state table" in text]

    assert only(stack, "AWS::DynamoDB::Table")["Properties"]["Tags"] == [{"Key": "cost", "Value": "ml 1+2"}]
    assert len(only(stack, "AWS::SNS::Topic")["Properties"]["Tags"]) == 3
    assert len(told) == 2
    assert told[0].startswith(
        "the state table goes without the tag 'owner', which DynamoDB does not take: its value must have at most 256 "
        "characters, got 'ana@example.com': take '@' out."
    )
    assert "[ack: cdk-training-cluster:stateTableTag]" in told[0]


def test_a_tag_that_only_the_deployment_knows_stays() -> None:
    stack = new_stack()
    ClusterState(stack, "State")
    Tags.of(stack).add("stack", stack.stack_name)
    Tags.of(stack).add("partition", Aws.PARTITION)

    tags = only(stack, "AWS::DynamoDB::Table")["Properties"]["Tags"]

    assert {"Key": "partition", "Value": {"Ref": "AWS::Partition"}} in tags


def granted(
    stack: Stack, *, key: kms.IKey | None = None, part: StatePart = StatePart.POWER, writes: bool = False
) -> list[dict[str, Any]]:
    """Return the statements of a role that may read a part, or write it as well."""
    state = ClusterState(stack, "State", encryption_key=key)
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    (state.grant_read_write if writes else state.grant_read)(role, part, "base-pod")
    template = Template.from_stack(stack).to_json()
    ids = {resource["Type"]: name for name, resource in template["Resources"].items()}
    values = {
        "AWS::Region": REGION,
        "AWS::URLSuffix": "amazonaws.com",
        f"{ids['AWS::DynamoDB::Table']}.Arn": TABLE,
    }
    return role_statements(template, ids["AWS::IAM::Role"], values)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    ("action", "part", "allowed"),
    [
        ("GetItem", ["power#base-pod"], True),
        ("Query", ["power#base-pod"], True),
        ("PutItem", ["power#base-pod"], None),
        ("GetItem", ["power#other-pod"], False),
        ("PutItem", ["power#base-pod", "idle#base-pod"], False),
        ("DeleteItem", ["power#base-pod"], False),
        ("Scan", [], False),
    ],
)
def test_a_function_is_limited_to_its_part(action: str, part: list[str], allowed: bool | None, writes: bool) -> None:
    context: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": part}
    call = Call(action=f"dynamodb:{action}", resource=TABLE, context=context)

    assert is_allowed(granted(new_stack(), writes=writes), call) is (writes if allowed is None else allowed)


def test_the_idle_function_reads_and_writes_all_items_of_its_part_at_once() -> None:
    stack = new_stack()
    statements = granted(stack, part=StatePart.IDLE, writes=True)

    allowed = {
        (action, part): is_allowed(
            statements,
            Call(action=f"dynamodb:{action}", resource=TABLE, context={"dynamodb:LeadingKeys": [part]}),
        )
        for action in ("BatchWriteItem", "Query", "PutItem", "GetItem")
        for part in ("idle#base-pod", "power#base-pod")
    }

    assert {call for call, is_granted in allowed.items() if is_granted} == {
        ("BatchWriteItem", "idle#base-pod"),
        ("Query", "idle#base-pod"),
    }


def test_the_key_is_used_through_dynamodb_only() -> None:
    stack = new_stack()
    statements = granted(stack, key=kms.Key.from_key_arn(stack, "Key", KEY))

    through = {
        service: is_allowed(
            statements,
            Call(action="kms:Decrypt", resource=KEY, context={"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}),
        )
        for service in ("dynamodb", "s3")
    }

    assert through == {"dynamodb": True, "s3": False}


def test_a_part_of_a_cluster_has_one_writer_and_every_cluster_its_own() -> None:
    stack = new_stack()
    state = ClusterState(stack, "State")
    one, other = (
        iam.Role(stack, name, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")) for name in ("One", "Other")
    )
    state.grant_read_write(one, StatePart.POWER, "base-pod")
    state.grant_read_write(other, StatePart.POWER, "other-pod")

    with pytest.raises(
        ValueError,
        match="the part power of the cluster base-pod in the state table has a writer already: give the other "
        "cluster another name, or another ClusterState",
    ):
        state.grant_read_write(other, StatePart.POWER, "base-pod")
