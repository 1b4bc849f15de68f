"""What jobs may do with their own role, and what the nodes' role may do that jobs may not."""

from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import ANY

import pytest
from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from cdk_training_cluster import (
    Capacity,
    EksSettings,
    EksTrainingCluster,
    HyperPodCluster,
    HyperPodSettings,
    NodeGroup,
    Observability,
    SlurmCluster,
    TrainingCluster,
)
from cdk_training_cluster.nodes.job_role import make_job_role
from cluster_contract.health import REPORT_DETAIL_TYPE, report_source
from cluster_plans import existing_network
from hyperpod_settings import ARN, EKS
from local_aws.policies import Call, is_allowed
from policy_evaluator import resolve, role_statements
from synthesis import new_stack, resources

_HERE = "us-east-1:111122223333"
_TABLE = f"arn:aws:dynamodb:{_HERE}:table/Runs"
_BUS = f"arn:aws:events:{_HERE}:event-bus/default"
_INSTANCE = f"arn:aws:ec2:{_HERE}:instance/i-1"
_GROUP = f"arn:aws:autoscaling:{_HERE}:autoScalingGroup:1:autoScalingGroupName/g"
_PODS_SERVICE = "pods.eks.amazonaws.com"
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


def _metrics(namespace: str) -> Call:
    return Call(action="cloudwatch:PutMetricData", resource="*", context={"cloudwatch:namespace": namespace})


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
    "metrics of nodes": (_metrics("CdkTrainingCluster/Nodes/pod"), NODES),
    "metrics of jobs": (_metrics("CdkTrainingCluster/Jobs/pod"), JOBS),
    "metrics of functions": (_metrics("CdkTrainingCluster/Functions"), NOBODY),
    "metrics of another cluster's nodes": (_metrics("CdkTrainingCluster/Nodes/other"), NOBODY),
    "metrics of another cluster's jobs": (_metrics("CdkTrainingCluster/Jobs/other"), NOBODY),
    "metrics of a cluster whose name begins likewise": (_metrics("CdkTrainingCluster/Nodes/pod2"), NOBODY),
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
    for each in ids.values():
        template["Resources"][each]["Properties"].pop(
            "ManagedPolicyArns", None
        )  # AWS's own, which have none of these
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


_GROUP_OF_NODES = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
_PLACE: dict[str, Any] = {"cluster_name": "pod", "node_groups": [_GROUP_OF_NODES]}
_ZONE: dict[str, Any] = {**_PLACE, "availability_zone": "us-east-1b"}
_MADE: Mapping[str, Callable[[Stack], TrainingCluster]] = {
    "none": lambda stack: TrainingCluster(stack, "Pod", **_ZONE),
    "slurm": lambda stack: SlurmCluster(stack, "Pod", **_ZONE),
    "eks": lambda stack: EksTrainingCluster(
        stack,
        "Pod",
        **_ZONE,
        eks=EksSettings(control_plane_zone="us-east-1a", job_namespaces=["research", "training"]),
    ),
    "hyperpod": lambda stack: HyperPodCluster(
        stack, "Pod", **_PLACE, network=existing_network(stack), hyperpod=HyperPodSettings(**EKS)
    ),
}
# Nodes that other services own have no lifecycle hooks, and nodes on which pods run do not take the role of pods.
_NO_HOOKS, _PODS = {"end a hook"}, {"end a hook", "become the jobs"}
_MISSING: Mapping[str, set[str]] = {"none": set(), "slurm": _NO_HOOKS, "eks": _PODS, "hyperpod": _PODS}


@pytest.fixture(scope="module", params=_MADE)
def made(request: pytest.FixtureRequest) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """An orchestrator, and what the policies of its nodes and jobs say."""
    stack = new_stack()
    return request.param, _statements(stack, _MADE[request.param](stack))


@pytest.mark.parametrize("name", CALLS)
def test_jobs_and_nodes_each_have_permissions_of_their_own(
    name: str, made: tuple[str, dict[str, list[dict[str, Any]]]]
) -> None:
    orchestrator, statements = made
    call, expected = CALLS[name]
    if name in _MISSING[orchestrator]:
        expected = NOBODY
    assert {who for who, own in statements.items() if is_allowed(own, call)} == expected


def test_a_permission_on_the_whole_table_does_not_open_the_count_to_jobs() -> None:
    stack = new_stack()
    cluster = TrainingCluster(stack, "Pod", **_ZONE)
    cluster.runs_table.grant_full_access(cluster)
    found = _statements(stack, cluster)["jobs"]
    wanted = {
        action: Call(action=f"dynamodb:{action}", resource=_TABLE, context=_COUNT)
        for action in ("PutItem", "DeleteItem")
    }
    assert {name: is_allowed(found, call) for name, call in wanted.items()} == {"PutItem": False, "DeleteItem": False}


def test_on_hyperpod_with_slurm_the_one_role_writes_metrics_of_its_own_cluster_alone() -> None:
    stack = new_stack()
    cluster = HyperPodCluster(stack, "Pod", **_PLACE, network=existing_network(stack))
    own = _statements(stack, cluster)["nodes"]
    calls = {name: call for name, (call, _) in CALLS.items() if name.startswith("metrics of")}
    assert {name for name, call in calls.items() if is_allowed(own, call)} == {"metrics of nodes", "metrics of jobs"}


def test_nodes_services_and_pods_that_a_cluster_names_take_the_role() -> None:
    stack = new_stack()
    nodes = iam.Role(stack, "Nodes", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    role = make_job_role(stack, node_role=nodes, services=["ecs-tasks.amazonaws.com"], eks_cluster_arn=ARN)
    made = resources(stack, "AWS::IAM::Role")[stack.resolve(role.role_name)["Ref"]]
    statements = made["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    trusted = {str(each["Principal"]): each["Action"] for each in statements}
    assert trusted == {
        str({"AWS": stack.resolve(nodes.role_arn)}): "sts:AssumeRole",
        str({"Service": "ecs-tasks.amazonaws.com"}): "sts:AssumeRole",
        str({"Service": _PODS_SERVICE}): ["sts:AssumeRole", "sts:TagSession"],
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


@pytest.mark.parametrize("orchestrator", ["eks", "hyperpod"])
def test_pods_of_one_service_account_of_the_cluster_get_the_role_in_the_namespaces_of_jobs(orchestrator: str) -> None:
    stack = new_stack()
    cluster = _MADE[orchestrator](stack)
    role = stack.resolve(cluster.job_role.role_name)["Ref"]
    values = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "111122223333"}
    found = resources(stack, "AWS::IAM::Role")[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    name = {"eks": "pod", "hyperpod": "training"}[orchestrator]
    tags = {
        "aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:{_HERE}:cluster/{name}",
        "aws:RequestTag/kubernetes-service-account": "cluster-job",
    }
    assert [resolve(each, values) for each in found] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": _PODS_SERVICE},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {"StringEquals": tags},
        }
    ]
    associations = [each["Properties"] for each in resources(stack, "AWS::EKS::PodIdentityAssociation").values()]
    for each in associations:
        assert each["ServiceAccount"] == "cluster-job"
        assert each["RoleArn"] == {"Fn::GetAtt": [role, "Arn"]}
        assert each["ClusterName"] == ({"Ref": ANY} if orchestrator == "eks" else name)
    namespaces = {"eks": ["research", "training"], "hyperpod": ["training"]}[orchestrator]
    assert [each["Namespace"] for each in associations] == namespaces


@pytest.mark.parametrize(
    "namespace",
    ["Training", "training.jobs", "-x", "n" * 64, "", pytest.param(Token.as_string({"Ref": "Name"}), id="token")],
)
def test_a_namespace_that_kubernetes_has_not_is_refused(namespace: str) -> None:
    message = (
        "job_namespaces must hold names of Kubernetes namespaces that are known when the template is made, such as"
    )
    with pytest.raises(ValueError, match=message):
        EksSettings(control_plane_zone="us-east-1a", job_namespaces=[namespace])
    with pytest.raises(ValueError, match=message):
        HyperPodSettings(job_namespaces=[namespace])
