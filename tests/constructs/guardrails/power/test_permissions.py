"""The synthesized policy against the calls that the function was seen to make."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster.functions.owner_permissions import OWNER_ACTIONS
from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cluster_contract.owners import OwnerKind, OwnerSettings
from fake_dynamodb import TABLE
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from power_scene import CLUSTER, TOPIC, Scene
from synthesis import new_stack

LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:power"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
# What Lambda does in the function's name.
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=QUEUE),
]


@cache
def synthesize(life: str) -> list[dict[str, Any]]:
    """Return the statements of the function's role in a cluster that lives so."""
    return made(new_stack(), LIVES[life][0])


def granted(group: PowerGroup, stack: Stack | None = None) -> list[dict[str, Any]]:
    """Return the statements of the function's role in a cluster of one node group."""
    return made(stack or new_stack(), {"workers": group})


def made(stack: Stack, groups: dict[str, PowerGroup]) -> list[dict[str, Any]]:
    """Return the statements of the function's role in a cluster of some node groups."""
    ClusterPower(stack, "Power", cluster_name=CLUSTER, groups=groups, alert_topic=sns.Topic(stack, "Alerts"))
    template = Template.from_stack(stack).to_json()
    ids = {resource["Type"]: name for name, resource in template["Resources"].items()}
    [function] = [one for one in template["Resources"].values() if one["Type"] == "AWS::Lambda::Function"]
    return role_statements(
        template,
        function["Properties"]["Role"]["Fn::GetAtt"][0],
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            ids["AWS::SNS::Topic"]: TOPIC,
            f"{ids['AWS::DynamoDB::Table']}.Arn": TABLE_ARN,
            f"{ids['AWS::Logs::LogGroup']}.Arn": f"{LOGS}:*",
            f"{ids['AWS::SQS::Queue']}.Arn": QUEUE,
        },
    )


def live_with_groups(scene: Scene) -> None:
    """Do all that is done with Auto Scaling groups: start, lack nodes, tell people, stop, start.

    Once its nodes stay when it is stopped.
    """
    group = scene.add(capacity=3)
    scene.minute(12)
    group.capacity, group.suspended = 8, "It failed for 24 hours"
    scene.minute(12)
    group.hooked = True
    scene.order("stop")
    scene.minute(12)
    group.hooked = False
    scene.minute()
    scene.order("start")
    scene.minute()


def live_with_terminations(scene: Scene) -> None:
    """Do all that is done with a group that loses single nodes."""
    live_with_groups(scene)
    [group] = scene.auto_scaling.groups.values()
    scene.minute(2)
    ids = [name for name, _ in group.nodes[:2]]
    scene.order("terminate", node_groups=["workers"], instance_ids=ids)
    scene.minute(2)


def live_with_a_warm_pool(scene: Scene) -> None:
    """Do all that is done with a warm pool when a deployment has changed the launch template."""
    scene.counts["warm"] = 8
    scene.details["warm"] = {"warm_pool": True}
    group = scene.add("warm", version=1, warm={"i-1": 1})
    group.version = 2
    scene.minute(2)


def live_with_a_fleet(scene: Scene) -> None:
    """Do all that is done with a Spot Fleet."""
    fleet = scene.add_fleet("extras", capacity=1)
    scene.minute(3)
    fleet.capacity = 8
    scene.minute(2)
    fleet.deploy()
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    scene.add("extras", name="what-it-was-before", desired=1, in_service=1)
    scene.minute(2)


def live_with_a_block(scene: Scene) -> None:
    """Do all that is done with a Capacity Block."""
    scene.counts["pod"] = 8
    block = scene.add_block(scene.add("pod", capacity=3), starts=timedelta(minutes=2), bought=3)
    scene.minute(5)
    assert block.ends is not None
    scene.now = block.ends - timedelta(minutes=60)
    scene.minute(2)
    scene.now = block.ends - timedelta(minutes=40)
    scene.minute(2)
    block.state = "expired"
    scene.minute()


def live_with_a_release(scene: Scene) -> None:
    """Do all that is done with a reservation that is released."""
    scene.counts["held"] = 8
    reservation = scene.add_reservation(scene.add("held"))
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    reservation.capacity = 7
    scene.order("start")
    scene.minute(2)


def live_with_a_reservation(scene: Scene) -> None:
    """Do all that is done with a reservation that is kept."""
    scene.counts["kept"] = 8
    reservation = scene.add_reservation(scene.add("kept"), release=False)
    scene.minute(2)
    scene.minute(12)
    scene.order("stop")
    scene.minute(2)
    reservation.ends = scene.now + timedelta(hours=2)
    scene.minute(2)


def live_with_blocks_among_others(scene: Scene) -> None:
    """Do all that is done with a group of which some nodes run in a Capacity Block."""
    scene.counts["any"] = 8
    scene.add("any")
    scene.details["any"] = {"blocks": ("cr-any",)}
    ends = scene.now + timedelta(minutes=62)
    scene.ec2.add_reservation("cr-any", 4, starts=scene.now, ends=ends, is_block=True, others=4)
    scene.minute(4)


# What AWS PCS does in the function's name with each size.
PCS_CALLS = [
    *(Call(action=action, resource="*") for action in OWNER_ACTIONS[OwnerKind.PCS_COMPUTE_NODE_GROUP].validates),
    Call(action="ec2:CreateTags", resource="*", context={"ec2:CreateAction": "CreateFleet"}),
    # IAM is global: its calls count as those of one Region, whichever the stack's is.
    Call(
        action="iam:GetInstanceProfile",
        resource=f"arn:aws:iam::{ACCOUNT}:instance-profile/nodes",
        context={"aws:RequestedRegion": "none of the stack's"},
    ),
]


def live_with_slurm(scene: Scene) -> None:
    """Do all that is done with a compute node group of AWS PCS."""
    group = scene.add_compute_node_group()
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    group.deploy(4)
    scene.minute(2)
    scene.ec2.calls.extend(PCS_CALLS)


def owned(kind: OwnerKind, id: str = "a/b", **settings: Any) -> PowerGroup:
    return PowerGroup(count=4, owner=OwnerSettings(kind=kind, id=id), **settings)


LIVES: dict[str, tuple[dict[str, PowerGroup], list[Callable[[Scene], None]]]] = {
    "groups": ({"workers": PowerGroup(count=8)}, [live_with_groups]),
    "terminations": ({"workers": PowerGroup(count=8, terminates_nodes=True)}, [live_with_terminations]),
    "a warm pool": (
        {"workers": PowerGroup(count=8), "warm": PowerGroup(count=8, warm_pool=True)},
        [live_with_groups, live_with_a_warm_pool],
    ),
    "a fleet": ({"extras": PowerGroup(count=4, spot_fleet_id="sfr-extras")}, [live_with_a_fleet]),
    "a block": (
        {"workers": PowerGroup(count=8), "pod": PowerGroup(count=8, capacity_block="cr-pod")},
        [live_with_groups, live_with_a_block],
    ),
    "a release": (
        {
            "workers": PowerGroup(count=8),
            "held": PowerGroup(count=8, capacity_reservation_id="cr-held", released=True),
        },
        [live_with_groups, live_with_a_release],
    ),
    "a reservation": (
        {"workers": PowerGroup(count=8), "kept": PowerGroup(count=8, capacity_reservation_id="cr-kept")},
        [live_with_groups, live_with_a_reservation],
    ),
    "blocks among others": (
        {"workers": PowerGroup(count=8), "any": PowerGroup(count=8, capacity_blocks=["cr-any"])},
        [live_with_groups, live_with_blocks_among_others],
    ),
    "slurm": (
        {"workers": PowerGroup(count=8), "slurm": owned(OwnerKind.PCS_COMPUTE_NODE_GROUP)},
        [live_with_groups, live_with_slurm],
    ),
    "everything": (
        {
            "workers": PowerGroup(count=8, terminates_nodes=True),
            "extras": PowerGroup(count=4, spot_fleet_id="sfr-extras"),
            "pod": PowerGroup(count=8, capacity_block="cr-pod"),
            "held": PowerGroup(count=8, capacity_reservation_id="cr-held", released=True),
        },
        [live_with_terminations, live_with_a_fleet, live_with_a_block, live_with_a_release],
    ),
}


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest) -> tuple[list[dict[str, Any]], list[Call]]:
    """The statements for some node groups, and everything the function does in its life with them."""
    _, parts = LIVES[request.param]
    calls = list(LAMBDA_CALLS)
    for part in parts:
        scene = Scene(counts={"workers": 8} if part in (live_with_groups, live_with_terminations) else {})
        part(scene)
        calls += scene.calls
    return synthesize(request.param), calls


@pytest.fixture(scope="module")
def statements() -> list[dict[str, Any]]:
    return synthesize("everything")


def test_everything_the_function_does_is_allowed(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert [call for call in calls if not is_allowed(statements, call)] == []


def test_nothing_is_allowed_that_the_function_does_not_do(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert unused(statements, calls) == []


@pytest.mark.parametrize(
    ("kind", "actions", "resource"),
    [
        ("eks_nodegroup", ["eks:UpdateNodegroupConfig", "eks:TagResource"], "eks:{}:nodegroup/a/b/1"),
        (
            "hyperpod_instance_group",
            ["sagemaker:UpdateCluster", "sagemaker:BatchDeleteClusterNodes"],
            "sagemaker:{}:cluster/abc",
        ),
        ("batch_compute_environment", ["batch:UpdateComputeEnvironment"], "batch:{}:compute-environment/a"),
    ],
)
def test_owners_are_written_on_by_their_own_verbs_within_the_cluster(
    kind: str, actions: list[str], resource: str
) -> None:
    of_kind = OwnerKind(kind)
    group = owned(of_kind, terminates_nodes=of_kind.terminates_nodes)
    statements, arn = granted(group), f"arn:aws:{resource.format(f'{REGION}:{ACCOUNT}')}"

    def allowed(action: str, tags: dict[str, str], on: str = arn) -> bool:
        context: dict[str, str | list[str]] = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
        return is_allowed(statements, Call(action=action, resource=on, context=context | {"aws:TagKeys": WRITTEN}))

    own = {"cdk-training-cluster:cluster": CLUSTER}
    assert [action for action in actions if not allowed(action, own)] == []
    assert [action for action in actions if allowed(action, {})] == []
    # The Auto Scaling group under a managed node group has the tags of EKS only.
    for action in ("autoscaling:ResumeProcesses", "autoscaling:TerminateInstanceInAutoScalingGroup"):
        assert allowed(action, {"eks:cluster-name": "a"}, GROUP) == (kind == "eks_nodegroup")
        assert not allowed(action, {"eks:cluster-name": "other"}, GROUP)


def test_the_role_of_nodes_is_passed_on_to_the_service_that_asks_for_it_alone() -> None:
    stack = new_stack()
    role = iam.Role.from_role_arn(stack, "Role", f"arn:aws:iam::{ACCOUNT}:role/nodes")
    statements = granted(owned(OwnerKind.HYPERPOD_INSTANCE_GROUP, role=role), stack)

    def passes(resource: str, service: str) -> bool:
        context: dict[str, str | list[str]] = {"iam:PassedToService": service}
        return is_allowed(statements, Call(action="iam:PassRole", resource=resource, context=context))

    assert passes(role.role_arn, "sagemaker.amazonaws.com")
    assert not passes(role.role_arn, "ec2.amazonaws.com")
    assert not passes(f"{role.role_arn}-of-others", "sagemaker.amazonaws.com")


EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
FLEET = f"{EC2}:spot-fleet-request/sfr-1"
RESERVATION = f"{EC2}:capacity-reservation/cr-1"
GROUP = Scene().add().arn
OWN = "aws:ResourceTag/cdk-training-cluster:cluster"
WRITTEN = ["cdk-training-cluster:power"]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:ModifySpotFleetRequest", FLEET),
        ("ec2:CreateTags", FLEET),
        ("ec2:ModifyCapacityReservation", RESERVATION),
        ("autoscaling:ResumeProcesses", GROUP),
        ("autoscaling:SetDesiredCapacity", GROUP),
        ("autoscaling:TerminateInstanceInAutoScalingGroup", GROUP),
        ("autoscaling:CreateOrUpdateTags", GROUP),
    ],
)
def test_a_write_ends_at_the_clusters_tag_account_and_region(
    statements: list[dict[str, Any]], action: str, resource: str
) -> None:
    def allowed(resource: str = resource, cluster: str = "") -> bool:
        context: dict[str, str | list[str]] = {"aws:TagKeys": WRITTEN} | ({OWN: cluster} if cluster else {})
        return is_allowed(statements, Call(action=action, resource=resource, context=context))

    assert allowed(cluster=CLUSTER)
    assert not allowed(cluster="other-pod")
    assert not allowed()
    assert not allowed(resource.replace(ACCOUNT, "999999999999"), cluster=CLUSTER)
    assert not allowed(resource.replace(REGION, "eu-west-1"), cluster=CLUSTER)


@pytest.mark.parametrize(
    ("action", "resource", "keys"),
    [
        ("ec2:CreateTags", RESERVATION, WRITTEN),
        ("ec2:CreateTags", f"{EC2}:instance/i-1", WRITTEN),
        ("ec2:CreateTags", FLEET, ["cdk-training-cluster:cluster"]),
        ("ec2:CreateTags", FLEET, [*WRITTEN, "Owner"]),
        ("autoscaling:CreateOrUpdateTags", GROUP, ["cdk-training-cluster:cluster"]),
        ("autoscaling:CreateOrUpdateTags", GROUP, [*WRITTEN, "Owner"]),
        ("ec2:CancelSpotFleetRequests", FLEET, []),
        ("ec2:CancelCapacityReservation", RESERVATION, []),
    ],
)
def test_no_other_write_and_no_other_tag_is_allowed(
    statements: list[dict[str, Any]], action: str, resource: str, keys: list[str]
) -> None:
    context: dict[str, str | list[str]] = {OWN: CLUSTER, "aws:TagKeys": keys}

    assert not is_allowed(statements, Call(action=action, resource=resource, context=context))


@pytest.mark.parametrize(
    ("action", "resource", "partitions"),
    [
        ("sns:Publish", f"{TOPIC}-other", []),
        ("logs:PutLogEvents", LOGS.replace("power", "other") + ":log-stream:1", []),
        ("dynamodb:PutItem", f"{TABLE_ARN}-other", ["power#base-pod"]),
        ("dynamodb:PutItem", TABLE_ARN, ["power#other-pod"]),
        ("dynamodb:GetItem", TABLE_ARN, ["power#other-pod"]),
        ("dynamodb:PutItem", TABLE_ARN, ["power#base-pod", "idle#base-pod"]),
        ("dynamodb:DeleteTable", TABLE_ARN, []),
        ("dynamodb:Scan", TABLE_ARN, []),
    ],
)
def test_no_other_log_topic_table_or_part_of_it_can_be_written(
    statements: list[dict[str, Any]], action: str, resource: str, partitions: list[str]
) -> None:
    context: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": partitions} if partitions else {}

    assert not is_allowed(statements, Call(action=action, resource=resource, context=context))
