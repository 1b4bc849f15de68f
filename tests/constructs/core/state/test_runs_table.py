"""The table in which the nodes of a run find each other."""

import re

import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match

from cdk_training_cluster.core.state.runs_table import REPLACED_PARTITIONS, make_runs_table
from cdk_training_cluster.nodes.bootstrap.asset import SCRIPTS
from cluster_job import Run
from cluster_job.table import RunTable
from fake_runs_table import TABLE, FakeRunsTable
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


def test_no_run_has_the_name_under_which_nodes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    own = REPLACED_PARTITIONS.removesuffix("*")
    assert f"\"{own}'$NODE_GROUP" in (SCRIPTS / "hook.sh").read_text()
    sentence = f"the name of a run must not start with {own}, got '{own}workers': give it another name"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        RunTable(FakeRunsTable(), TABLE, f"{own}workers")  # type: ignore[arg-type]
    monkeypatch.setenv("RUN_NAME", f"{own}workers")
    for name, value in {"CLUSTER": "llama", "NODE_GROUP": "w", "REGION": "us-east-1", "RUNS_TABLE": "runs"}.items():
        monkeypatch.setenv(f"TRAINING_CLUSTER_{name}", value)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        next(Run(global_batch=8).steps(1))
