"""The parameter by which commands find the parts of a deployed cluster."""

import json
import re
from typing import Any

import pytest
from aws_cdk import CfnParameter, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from cdk_training_cluster import Budget, ClusterNetwork, Dataset, ExpressCheckpoints, NodeGroup, TrainingCluster
from cluster_contract.description import MAX_CHARACTERS, ClusterDescription
from local_aws.policies import as_list
from policy_evaluator import Call, is_allowed, role_statements
from synthesis import ZONE, new_stack, only, resources

_WORKERS = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)
# CloudFormation makes names of the stack's name, the logical id and a random text; Lambda's end after 64 characters.
_NAME, _ALIAS, _LOG_GROUP = "n" * 64, "arn:aws:lambda:us-gov-west-1:111122223333:function:" + "n" * 72, "l" * 200


@pytest.fixture(scope="module")
def stack() -> Stack:
    """Return the stack of a cluster with every function, and a role that may operate it."""
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    cluster = TrainingCluster(
        stack,
        "Cluster",
        network=network,
        cluster_name="pod",
        node_groups=[_WORKERS],
        budget=Budget(monthly_usd=1, weekly_report=True),
        datasets=[Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data", preload=True)],
        checkpoints=ExpressCheckpoints(stack, "Checkpoints", network=network, zone_id="use1-az4"),
    )
    cluster.grant_power(iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal()))
    return stack


def test_it_names_every_function_and_fits_a_standard_parameter(stack: Stack) -> None:
    (parameter,) = resources(stack, "AWS::SSM::Parameter", {"Name": "/training-cluster/pod/description"}).values()
    pieces = parameter["Properties"]["Value"]["Fn::Join"][1]
    longest = {"Log": _LOG_GROUP, "Operate": _ALIAS}
    text = "".join(
        piece
        if isinstance(piece, str)
        else next((long for name, long in longest.items() if name in str(piece)), _NAME)
        for piece in pieces
    )
    said = ClusterDescription.parse(text)
    watching = {"power", "idle", "health", "spend", "hydration", "checkpoints", "costs", "billing_alarms"}
    assert set(said.functions) == watching
    assert said.functions["power"].invoke.startswith("arn:")
    assert len(text) < MAX_CHARACTERS


def test_who_may_operate_a_cluster_may_find_its_power_function(stack: Stack) -> None:
    (policy,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in resources(stack, "AWS::IAM::Policy").items()
        if name.startswith("Operators")
    )
    invoke, look, read, *_ = policy
    assert (invoke["Action"], look["Action"]) == ("lambda:InvokeFunction", "lambda:InvokeFunction")
    assert read["Action"] == ["ssm:GetParameter", "ssm:GetParameters"]
    (parameter,) = re.findall(r"ClusterDescription\w+", json.dumps(read["Resource"]))
    assert resources(stack, "AWS::SSM::Parameter")[parameter]


def test_a_name_that_only_the_deployment_knows_is_taken_as_it_is() -> None:
    stack = new_stack()
    name = CfnParameter(stack, "Name").value_as_string
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, cluster_name=name, node_groups=[_WORKERS])
    parameter = only(stack, "AWS::SSM::Parameter")["Properties"]["Name"]
    assert parameter == {"Fn::Join": ["", ["/training-cluster/", {"Ref": "Name"}, "/description"]]}


def test_who_may_look_at_a_cluster_may_read_and_have_functions_look_again_and_nothing_else() -> None:
    stack = new_stack()
    cluster = TrainingCluster(stack, "Cluster", availability_zone=ZONE, cluster_name="pod", node_groups=[_WORKERS])
    cluster.grant_look(iam.Role(stack, "Lookers", assumed_by=iam.AccountRootPrincipal()))
    (statements,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in resources(stack, "AWS::IAM::Policy").items()
        if name.startswith("Lookers")
    )
    invoke, parameters, runs, logs, *reads = statements
    functions = resources(stack, "AWS::Lambda::Function")
    # Through no alias the power function takes no commands.
    assert [functions[each["Fn::GetAtt"][0]]["Type"] for each in invoke["Resource"]] == ["AWS::Lambda::Function"] * 3
    assert "/training-cluster/pod/hydration" in json.dumps(parameters["Resource"])
    assert (runs["Action"], runs["Resource"]["Fn::GetAtt"][0][:11]) == ("dynamodb:Query", "ClusterRuns")
    assert (logs["Action"], len(logs["Resource"])) == ("logs:FilterLogEvents", 3)
    actions = [action for each in reads for action in as_list(each["Action"])]
    assert all(re.fullmatch(r"\w+:(Describe|Get)\w+", action) for action in actions)


_HERE = "us-east-1:111122223333"
_INSTANCE = f"arn:aws:ec2:{_HERE}:instance/i-1"
_OWN = {"aws:ResourceTag/cdk-training-cluster:cluster": "pod"}
_OTHER = {"aws:ResourceTag/cdk-training-cluster:cluster": "other"}
_STACKS = f"arn:aws:cloudformation:{_HERE}:stack"
_LOOKS = {
    "the console of a node": (Call(action="ec2:GetConsoleOutput", resource=_INSTANCE, context=_OWN), True),
    "that of another cluster": (Call(action="ec2:GetConsoleOutput", resource=_INSTANCE, context=_OTHER), False),
    "that of another instance": (Call(action="ec2:GetConsoleOutput", resource=_INSTANCE), False),
    "its stack": (Call(action="cloudformation:DescribeStackEvents", resource=f"{_STACKS}/Test/1"), True),
    "another stack": (Call(action="cloudformation:DescribeStackEvents", resource=f"{_STACKS}/Test2/1"), False),
    "nodes": (Call(action="ec2:DescribeInstances", resource="*"), True),
    "nodes elsewhere": (Call(action="ec2:DescribeInstances", resource="*", region="eu-west-1"), False),
    "billing alarms": (Call(action="cloudwatch:DescribeAlarms", resource="*", region="us-east-1"), True),
    "an item": (
        Call(action="kms:Decrypt", resource="Key", context={"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}),
        True,
    ),
    "an object": (
        Call(action="kms:Decrypt", resource="Key", context={"kms:ViaService": "s3.us-east-1.amazonaws.com"}),
        False,
    ),
    "what the key encrypts": (Call(action="kms:Decrypt", resource="Key"), False),
}


@pytest.fixture(scope="module")
def looker() -> list[dict[str, Any]]:
    """Return what the policy of a role that may look at an encrypted cluster says."""
    stack = new_stack()
    key = kms.Key(stack, "Secrets")
    cluster = TrainingCluster(
        stack, "Cluster", availability_zone=ZONE, cluster_name="pod", node_groups=[_WORKERS], encryption_key=key
    )
    role = iam.Role(stack, "Lookers", assumed_by=iam.AccountRootPrincipal())
    cluster.grant_look(role)
    template = Template.from_stack(stack).to_json()
    values = {
        **{name: name for name in template["Resources"]},
        **{f"{name}.Arn": name for name in template["Resources"]},
        f"{stack.resolve(key.key_arn)['Fn::GetAtt'][0]}.Arn": "Key",
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1",
        "AWS::AccountId": "111122223333",
        "AWS::URLSuffix": "amazonaws.com",
    }
    return role_statements(template, stack.resolve(role.role_name)["Ref"], values)


@pytest.mark.parametrize("what", _LOOKS)
def test_who_may_look_reads_nothing_of_other_owners_that_may_hold_secrets(
    what: str, looker: list[dict[str, Any]]
) -> None:
    call, allowed = _LOOKS[what]
    assert is_allowed(looker, call) is allowed
