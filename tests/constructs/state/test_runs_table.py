"""The table in which the nodes of a run find each other."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match

from cdk_training_cluster.state.runs_table import make_runs_table
from synthesis import new_stack, only


def test_nodes_read_and_write_it_and_it_goes_with_its_stack() -> None:
    stack = new_stack()
    role = iam.Role(stack, "Nodes", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    make_runs_table(stack, role, role, kms.Key(stack, "Key"))
    table = only(
        stack,
        "AWS::DynamoDB::Table",
        {
            "KeySchema": [{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
            "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
            "BillingMode": "PAY_PER_REQUEST",
            "TableName": Match.absent(),
            "SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": Match.any_value()},
        },
    )
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Delete", "Delete")
    policy = only(stack, "AWS::IAM::Policy")["Properties"]["PolicyDocument"]["Statement"]
    items, key = policy
    assert items["Action"] == [f"dynamodb:{one}Item" for one in ("Get", "Put", "Update", "Delete")] + [
        "dynamodb:Query"
    ]
    assert "dynamodb" in str(key["Condition"]["StringEquals"]["kms:ViaService"])
