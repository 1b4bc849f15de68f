"""What jobs may do with their own role, and what the nodes' role may do that jobs may not."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from cdk_training_cluster import Capacity, NodeGroup, Observability, SlurmCluster, TrainingCluster
from cdk_training_cluster.nodes.job_role import PODS, make_job_role
from cluster_contract.health import REPORT_DETAIL_TYPE, report_source
from local_aws.policies import Call, is_allowed
from policy_evaluator import role_statements
from synthesis import new_stack, resources

_HERE = "us-east-1:111122223333"
_TABLE = f"arn:aws:dynamodb:{_HERE}:table/Runs"
_BUS = f"arn:aws:events:{_HERE}:event-bus/default"
_INSTANCE = f"arn:aws:ec2:{_HERE}:instance/i-1"
_GROUP = f"arn:aws:autoscaling:{_HERE}:autoScalingGroup:1:autoScalingGroupName/g"
_JOB_ROLE = "arn:aws:iam::111122223333:role/Job"
_COUNT = {"dynamodb:LeadingKeys": ["replaced-before-service/workers"]}
_RUN = {"dynamodb:LeadingKeys": ["llama-7"]}
_BOTH = {"dynamodb:LeadingKeys": ["llama-7", "replaced-before-service/workers"]}
_REPORT = {
    "aws:userid": "AROA1:i-1",
    "events:source": report_source("pod", "AROA1:i-1"),
    "events:detail-type": REPORT_DETAIL_TYPE,
}
_TAGS: dict[str, str | list[str]] = {
    "aws:TagKeys": ["cdk-training-cluster:faults"],
    "ec2:SourceInstanceARN": _INSTANCE,
    "ec2:InstanceID": "i-1",
}
_METRICS = {"cloudwatch:namespace": "CdkTrainingCluster"}

NODES, JOBS, NOBODY = {"nodes"}, {"jobs"}, set[str]()
CALLS: Mapping[str, tuple[Call, set[str]]] = {
    "end a hook": (
        Call(
            action="autoscaling:CompleteLifecycleAction",
            resource=_GROUP,
            context={"aws:ResourceTag/cdk-training-cluster:cluster": "pod"},
        ),
        NODES,
    ),
    "report": (Call(action="events:PutEvents", resource=_BUS, context=_REPORT), NODES),
    "tag": (Call(action="ec2:CreateTags", resource=_INSTANCE, context=_TAGS), NODES),
    "shell": (Call(action="ssmmessages:OpenDataChannel", resource="*"), NODES),
    "count": (Call(action="dynamodb:PutItem", resource=_TABLE, context=_COUNT), NODES),
    "take the count back": (Call(action="dynamodb:DeleteItem", resource=_TABLE, context=_COUNT), NOBODY),
    "read the count": (Call(action="dynamodb:GetItem", resource=_TABLE, context=_COUNT), NOBODY),
    "write a run": (Call(action="dynamodb:PutItem", resource=_TABLE, context=_RUN), JOBS),
    "query a run": (Call(action="dynamodb:Query", resource=_TABLE, context=_RUN), JOBS),
    "write both at once": (Call(action="dynamodb:PutItem", resource=_TABLE, context=_BOTH), NOBODY),
    "name no partition": (Call(action="dynamodb:PutItem", resource=_TABLE), JOBS),
    "scan": (Call(action="dynamodb:Scan", resource=_TABLE), NOBODY),
    "metrics": (Call(action="cloudwatch:PutMetricData", resource="*", context=_METRICS), NODES | JOBS),
    "become the jobs": (Call(action="sts:AssumeRole", resource=_JOB_ROLE), NODES),
    "become another": (Call(action="sts:AssumeRole", resource=f"{_JOB_ROLE}2"), NOBODY),
}


def _statements(stack: Stack, cluster: TrainingCluster) -> dict[str, list[dict[str, Any]]]:
    """Return what the policies of both roles say; what jobs were granted otherwise is granted on the table too."""
    cluster.runs_table.grant_read_write_data(iam.Role(stack, "Other", assumed_by=iam.AccountRootPrincipal()))
    template = Template.from_stack(stack).to_json()
    ids = {
        "nodes": stack.resolve(cluster.role.role_name)["Ref"],
        "jobs": stack.resolve(cluster.job_role.role_name)["Ref"],
    }
    table = stack.resolve(cluster.runs_table.table_name)["Ref"]
    values = {
        **{name: name for name in template["Resources"]},
        **{f"{name}.Arn": name for name in template["Resources"]},
        f"{table}.Arn": _TABLE,
        f"{ids['jobs']}.Arn": _JOB_ROLE,
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1",
        "AWS::AccountId": "111122223333",
    }
    return {who: role_statements(template, role, values) for who, role in ids.items()}


@pytest.fixture(scope="module", params=[TrainingCluster, SlurmCluster])
def statements(request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    """What the policies of nodes and of jobs say."""
    stack = new_stack()
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    cluster = request.param(stack, "Pod", cluster_name="pod", availability_zone="us-east-1b", node_groups=[group])
    return _statements(stack, cluster)


@pytest.mark.parametrize("name", CALLS)
def test_jobs_and_nodes_each_have_permissions_of_their_own(
    name: str, statements: dict[str, list[dict[str, Any]]]
) -> None:
    call, expected = CALLS[name]
    # AWS PCS has no lifecycle hooks.
    if name == "end a hook" and "pcs:RegisterComputeNodeGroupInstance" in str(statements):
        expected = NOBODY
    assert {who for who, own in statements.items() if is_allowed(own, call)} == expected


def test_a_permission_on_the_whole_table_does_not_open_the_count_to_jobs() -> None:
    stack = new_stack()
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    cluster = TrainingCluster(stack, "Pod", cluster_name="pod", availability_zone="us-east-1b", node_groups=[group])
    cluster.runs_table.grant_full_access(cluster)
    found = _statements(stack, cluster)["jobs"]
    wanted = {
        action: Call(action=f"dynamodb:{action}", resource=_TABLE, context=_COUNT)
        for action in ("PutItem", "DeleteItem")
    }
    assert {name: is_allowed(found, call) for name, call in wanted.items()} == {"PutItem": False, "DeleteItem": False}


def test_nodes_and_services_that_a_cluster_names_take_the_role_and_pods_with_tags() -> None:
    stack = new_stack()
    nodes = iam.Role(stack, "Nodes", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    role = make_job_role(stack, node_role=nodes, services=[PODS])
    made = resources(stack, "AWS::IAM::Role")[stack.resolve(role.role_name)["Ref"]]
    statements = made["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    trusted = {str(each["Principal"]): each["Action"] for each in statements}
    assert trusted == {
        str({"AWS": stack.resolve(nodes.role_arn)}): "sts:AssumeRole",
        str({"Service": PODS}): ["sts:AssumeRole", "sts:TagSession"],
    }


def test_nodes_and_login_nodes_learn_which_role_they_give_to_their_users() -> None:
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    fleet = NodeGroup("extras", instance_types=["g5.xlarge"], count=1, capacity=Capacity.spot_fleet(max_price=1.0))
    for kind, groups, expected in ((TrainingCluster, [group, fleet], 2), (SlurmCluster, [group], 2)):
        stack = new_stack()
        cluster = kind(stack, "Pod", cluster_name="pod", availability_zone="us-east-1b", node_groups=groups)
        role = stack.resolve(cluster.job_role.role_arn)
        templates = resources(stack, "AWS::EC2::LaunchTemplate").values()
        user_data = [str(each["Properties"]["LaunchTemplateData"]["UserData"]) for each in templates]
        assert len(user_data) == expected
        assert [("JOB_ROLE=" in each, str(role) in each) for each in user_data] == [(True, True)] * expected


def test_the_collector_which_is_no_process_of_root_s_signs_with_the_role_of_jobs() -> None:
    stack = new_stack()
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    cluster = TrainingCluster(
        stack,
        "Pod",
        cluster_name="pod",
        availability_zone="us-east-1b",
        node_groups=[group],
        observability=Observability.prometheus(),
    )
    policies = {
        role.node.id: str(resources(stack, "AWS::IAM::Policy", {"Roles": [stack.resolve(role.role_name)]}))
        for role in (cluster.role, cluster.job_role)
    }
    assert {name: "aps:RemoteWrite" in each for name, each in policies.items()} == {
        "NodeRole": False,
        "JobRole": True,
    }
