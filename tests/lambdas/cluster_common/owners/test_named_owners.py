"""The adapters of owners that the settings name: what each asks its service, and what it makes of the answers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cluster_common.owners.eks_configuration import changed_configuration
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import NodeOwner, OwnerBusyError
from cluster_contract.eks import eks_options
from cluster_contract.owners import OwnerKind
from stubbed_owners import KEYED, NOW, TAGS, StubbedAws

PCS_ARN = "arn:aws:pcs:us-east-1:111122223333:cluster/pcs_1/computenodegroup/pcs_2"
EKS_ARN = "arn:aws:eks:us-east-1:111122223333:nodegroup/pod/workers/1"
HYPERPOD_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
BATCH_ARN = "arn:aws:batch:us-east-1:111122223333:compute-environment/workers"
ROLE = "arn:aws:iam::111122223333:role/nodes"
PCS_IDS = {"clusterIdentifier": "pcs_1", "computeNodeGroupIdentifier": "pcs_2"}
EKS_NAMES = {"clusterName": "pod", "nodegroupName": "workers"}
PCS, EKS = (OwnerKind.PCS_COMPUTE_NODE_GROUP, "pcs_1/pcs_2"), (OwnerKind.EKS_NODEGROUP, "pod/workers")
HYPERPOD = (OwnerKind.HYPERPOD_INSTANCE_GROUP, "pod/workers")
BATCH = (OwnerKind.BATCH_COMPUTE_ENVIRONMENT, "workers")
NAMES = {"pcs": PCS, "eks": EKS, "hyperpod": HYPERPOD, "batch": BATCH}


@pytest.fixture
def aws() -> Iterator[StubbedAws]:
    """Return AWS, of which every call that a test expects must be made."""
    stubbed = StubbedAws()
    yield stubbed
    stubbed.check()


def instances(aws: StubbedAws, filters: dict[str, str], *states: str) -> None:
    request = [{"Name": f"tag:{key}", "Values": [value]} for key, value in filters.items()]
    request.append({"Name": "instance-state-name", "Values": ["pending", "running"]})
    found = [{"InstanceId": f"i-{number}", "State": {"Name": state}} for number, state in enumerate(states)]
    answer = {"Reservations": [{"Instances": found}]}
    aws.expect("ec2.describe_instances", {"Filters": request, "MaxResults": 200}, answer)


def pcs_group(aws: StubbedAws, least: int, most: int, *states: str, status: str = "ACTIVE", **more: Any) -> None:
    described = {
        **{"name": "workers", "id": "pcs_2", "arn": PCS_ARN, "clusterId": "pcs_1", "createdAt": NOW},
        **{"modifiedAt": NOW, "status": status, "subnetIds": ["subnet-1"], "purchaseOption": "ONDEMAND"},
        **{"customLaunchTemplate": {"id": "lt-1", "version": "1"}, "iamInstanceProfileArn": ROLE},
        "scalingConfiguration": {"minInstanceCount": least, "maxInstanceCount": most},
        "instanceConfigs": [{"instanceType": "p5.48xlarge"}],
        **more,
    }
    aws.expect("pcs.get_compute_node_group", PCS_IDS, {"computeNodeGroup": described})
    aws.expect("pcs.list_tags_for_resource", {"resourceArn": PCS_ARN}, {"tags": TAGS})
    instances(aws, {"aws:pcs:compute-node-group-id": "pcs_2"}, *states)


def eks_group(aws: StubbedAws, *, desired: int = 2, status: str = "ACTIVE", made: bool = True) -> None:
    described = {
        **{"nodegroupArn": EKS_ARN, "status": status, "tags": TAGS},
        "scalingConfig": {"minSize": 0, "maxSize": 500, "desiredSize": 8},
        **({"resources": {"autoScalingGroups": [{"name": "eks-workers"}]}} if made else {}),
    }
    aws.expect("eks.describe_nodegroup", EKS_NAMES, {"nodegroup": described})
    if not made:
        return
    node = {"AvailabilityZone": "us-east-1a", "HealthStatus": "Healthy", "ProtectedFromScaleIn": False}
    underneath = {
        **{"AutoScalingGroupName": "eks-workers", "MinSize": 0, "MaxSize": 500, "DesiredCapacity": desired},
        **{"DefaultCooldown": 1, "AvailabilityZones": ["us-east-1a"], "HealthCheckType": "EC2", "CreatedTime": NOW},
        "Instances": [{"InstanceId": "i-0", "LifecycleState": "InService", **node}],
        "SuspendedProcesses": [{"ProcessName": "Launch", "SuspensionReason": "User suspended"}],
    }
    names = {"AutoScalingGroupNames": ["eks-workers"]}
    aws.expect("autoscaling.describe_auto_scaling_groups", names, {"AutoScalingGroups": [underneath]})


INSTANCE_GROUP = {
    **{"InstanceGroupName": "workers", "InstanceType": "ml.p5.48xlarge", "ExecutionRole": ROLE, "ThreadsPerCore": 1},
    **{"LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "on_create.sh"}},
}


def hyperpod_group(aws: StubbedAws, *statuses: str, target: int = 2, status: str = "InService", **more: Any) -> None:
    group = {
        **{**INSTANCE_GROUP, "TargetCount": target, "CurrentCount": len(statuses), "Status": "InService"},
        "KubernetesConfig": {"DesiredLabels": {"team": "a"}, "CurrentLabels": {}},
    }
    described = {"ClusterArn": HYPERPOD_ARN, "ClusterStatus": status, "InstanceGroups": [group], **more}
    aws.expect("sagemaker.describe_cluster", {"ClusterName": "pod"}, described)
    nodes = [
        {
            **{"InstanceGroupName": "workers", "InstanceId": f"i-{number}", "InstanceType": "ml.p5.48xlarge"},
            **{"LaunchTime": NOW, "InstanceStatus": {"Status": one}},
        }
        for number, one in enumerate(statuses)
    ]
    request = {"ClusterName": "pod", "InstanceGroupNameContains": "workers", "MaxResults": 100}
    other = {**nodes[0], "InstanceGroupName": "workers-2", "InstanceId": "i-9"}
    aws.expect("sagemaker.list_cluster_nodes", request, {"ClusterNodeSummaries": [other], "NextToken": "1"})
    aws.expect("sagemaker.list_cluster_nodes", {**request, "NextToken": "1"}, {"ClusterNodeSummaries": nodes})
    own = [{"Key": "keep/workers", "Value": "mine"}, {"Key": "keep", "Value": "all"}, {"Key": "keep/x", "Value": ""}]
    aws.expect("sagemaker.list_tags", {"ResourceArn": HYPERPOD_ARN}, {"Tags": [*KEYED, *own]})


def environment(
    aws: StubbedAws, *states: str, vcpus: int = 8 * 192, state: str = "ENABLED", status: str = "VALID"
) -> None:
    described = {
        **{"computeEnvironmentName": "workers", "computeEnvironmentArn": BATCH_ARN, "tags": TAGS},
        **{"state": state, "status": status},
        "computeResources": {
            **{"type": "EC2", "maxvCpus": vcpus, "subnets": ["subnet-1"], "instanceTypes": ["p5.48xlarge"]},
        },
    }
    request = {"computeEnvironments": ["workers"]}
    aws.expect("batch.describe_compute_environments", request, {"computeEnvironments": [described]})
    types = {"InstanceTypes": [{"InstanceType": "p5.48xlarge", "VCpuInfo": {"DefaultVCpus": 192}}]}
    if state == "ENABLED":
        aws.expect("ec2.describe_instance_types", {"InstanceTypes": ["p5.48xlarge"]}, types)
    instances(aws, TAGS, *states)


def read(owner: NodeOwner) -> OwnedGroup:
    reading = owner.read()
    assert reading.unread == {}
    [group] = reading.groups
    return group


def sizes(group: OwnedGroup) -> tuple[Any, ...]:
    return group.desired, group.maximum, group.reset_to, group.in_service, group.out_of_service


@pytest.mark.parametrize(
    ("scheduler_sized", "least", "most", "found"),
    [
        (True, 0, 8, (8, 8, 8, 1, ("Pending",))),
        (True, 0, 3, (3, 8, None, 1, ("Pending",))),
        (False, 8, 8, (8, 8, None, 1, ("Pending",))),
        (False, 0, 0, (0, 8, None, 1, ("Pending",))),
        (False, 0, 8, (0, 8, 0, 1, ("Pending",))),  # A deployment has written the template's sizes again.
    ],
)
def test_a_compute_node_group_is_read(
    aws: StubbedAws, scheduler_sized: bool, least: int, most: int, found: tuple[Any, ...]
) -> None:
    pcs_group(aws, least, most, "running", "pending")
    group = read(aws.owner(*PCS, scheduler_sized=scheduler_sized))
    assert (sizes(group), group.scheduler_sized) == (found, scheduler_sized)
    assert (group.name, group.node_group, group.tags) == ("pcs_1/pcs_2", "workers", TAGS)


def test_errors_of_a_compute_node_group_are_failed_launches(aws: StubbedAws) -> None:
    pcs_group(aws, 8, 8, errorInfo=[{"code": "Capacity", "message": "there is\nnone"}])
    owner = aws.owner(*PCS)
    [activity] = owner.read_activities(read(owner), None)
    assert (activity.failed, activity.launch, activity.message) == (True, True, "Capacity: there is none")


def test_a_managed_node_group_is_read_with_the_auto_scaling_group_underneath(aws: StubbedAws) -> None:
    eks_group(aws)
    group = read(aws.owner(*EKS))
    assert (sizes(group), group.auto_scaling_group) == ((2, 500, None, 1, ()), "eks-workers")
    assert (group.owner.key, group.launching_suspended) == (OwnerKind.EKS_NODEGROUP, "User suspended")


@pytest.mark.parametrize(("size", "gets_settings"), [(0, False), (1, False), (3, True)])
def test_a_managed_node_group_gets_its_settings_with_a_larger_size(
    size: int, gets_settings: bool, aws: StubbedAws
) -> None:
    options = eks_options(repairs=True, nvidia=True, warm_nodes=2, labels={"nvidia.com/mig.config": "workers"})
    owner = aws.owner(*EKS, options=options)
    eks_group(aws)
    group = read(owner)
    config = changed_configuration(options, {})
    assert config.keys() == {"nodeRepairConfig", "warmPoolConfig", "labels"}
    asked = {**EKS_NAMES, "scalingConfig": {"desiredSize": size}, **(config if gets_settings else {})}
    aws.expect("eks.update_nodegroup_config", asked, {})
    owner.set_size(group, size)


def test_a_managed_node_group_that_is_being_made_has_no_group_underneath(aws: StubbedAws) -> None:
    eks_group(aws, status="CREATING", made=False)
    group = read(aws.owner(*EKS))
    assert (sizes(group), group.busy, group.auto_scaling_group) == ((8, 500, None, 0, ()), True, "")


def test_an_instance_group_is_read_with_the_tags_of_its_cluster(aws: StubbedAws) -> None:
    hyperpod_group(aws, "Running", "Pending", "Failure", "NotFound", "ShuttingDown", target=4)
    group = read(aws.owner(*HYPERPOD))
    assert sizes(group) == (4, 8, 8, 1, ("Failure", "Pending", "Terminating"))
    assert (group.tags["keep"], group.counted, group.nodes["i-0"].instance_type) == ("mine", 3, "ml.p5.48xlarge")


@pytest.mark.parametrize(
    ("state", "vcpus", "desired"), [("ENABLED", 8 * 192, 8), ("ENABLED", 3 * 192, 3), ("DISABLED", 8 * 192, 0)]
)
def test_a_compute_environment_is_read_in_nodes(aws: StubbedAws, state: str, vcpus: int, desired: int) -> None:
    environment(aws, "running", vcpus=vcpus, state=state)
    group = read(aws.owner(*BATCH))
    assert (sizes(group), group.scheduler_sized) == ((desired, 8, 8, 1, ()), True)


@pytest.mark.parametrize(
    ("kind", "describe", "status", "expected"),
    [
        *(("pcs", lambda aws, one: pcs_group(aws, 8, 8, status=one), *row) for row in (
            ("ACTIVE", (False, False)), ("UPDATING", (True, False)), ("SUSPENDED", (True, False)),
            ("UPDATE_FAILED", (False, False)), ("DELETING", (False, True)),
        )),
        *(("eks", lambda aws, one: eks_group(aws, status=one), *row) for row in (
            ("DEGRADED", (False, False)), ("UPDATING", (True, False)), ("DELETING", (False, True)),
        )),
        *(("hyperpod", lambda aws, one: hyperpod_group(aws, "Running", status=one), *row) for row in (
            ("Failed", (False, False)), ("SystemUpdating", (True, False)), ("Deleting", (False, True)),
        )),
        ("hyperpod",
         lambda aws, one: hyperpod_group(aws, "Running", status=one, NodeProvisioningMode="Continuous"),
         "Updating", (False, False)),
        *(("batch", lambda aws, one: environment(aws, status=one), *row) for row in (
            ("INVALID", (False, False)), ("UPDATING", (True, False)), ("DELETING", (False, True)),
        )),
    ],
)  # fmt: skip
def test_the_state_of_an_owner_is_read(
    aws: StubbedAws, kind: str, describe: Any, status: str, expected: tuple[bool, bool]
) -> None:
    describe(aws, status)
    group = read(aws.owner(*NAMES[kind]))
    assert (group.busy, group.deleting) == expected


GONE: dict[str, tuple[str, dict[str, Any], Any]] = {
    "pcs": ("pcs.get_compute_node_group", PCS_IDS, "ResourceNotFoundException"),
    "eks": ("eks.describe_nodegroup", EKS_NAMES, "ResourceNotFoundException"),
    "hyperpod": ("sagemaker.describe_cluster", {"ClusterName": "pod"}, "ResourceNotFound"),
    "batch": (
        "batch.describe_compute_environments", {"computeEnvironments": ["workers"]}, {"computeEnvironments": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", GONE)
def test_an_owner_that_is_gone_is_left_out(aws: StubbedAws, kind: str) -> None:
    aws.expect(*GONE[kind])
    reading = aws.owner(*NAMES[kind]).read()
    assert (reading.groups, reading.unread) == ([], {})


@pytest.mark.parametrize("kind", GONE)
def test_an_owner_that_cannot_be_read_is_unread(aws: StubbedAws, kind: str) -> None:
    call, request, _ = GONE[kind]
    aws.expect(call, request, "ThrottlingException: slow")
    assert list(aws.owner(*NAMES[kind]).read().unread) == ["workers"]


def test_another_clusters_owner_is_left_out(aws: StubbedAws) -> None:
    pcs_group(aws, 8, 8)
    owner = aws.owner(*PCS)
    owner._cluster = "other"  # type: ignore[attr-defined]
    assert owner.read().groups == []


def named(kind: str, **changes: Any) -> OwnedGroup:
    """Return what an adapter reads of an owner, as far as its writes need it."""
    of_kind, name = NAMES[kind]
    arns = {"pcs": PCS_ARN, "eks": EKS_ARN, "hyperpod": HYPERPOD_ARN, "batch": BATCH_ARN}
    group = OwnedGroup(
        name=name, node_group="workers", desired=8, minimum=0, maximum=8, in_service=0, arn=arns[kind],
        instance_types=("p5.48xlarge",), auto_scaling_group="eks-workers" if of_kind is EKS[0] else "",
    )  # fmt: skip
    return replace(group, **changes)


def expect_size(aws: StubbedAws, kind: str, size: int, answer: Any, *, scheduler_sized: bool = False) -> None:
    """Expect the request for a size of one kind of owner."""
    match kind:
        case "pcs":
            least = 0 if scheduler_sized else size
            scaling = {"minInstanceCount": least, "maxInstanceCount": size}
            aws.expect("pcs.update_compute_node_group", {**PCS_IDS, "scalingConfiguration": scaling}, answer)
        case "eks":
            scaling = {"desiredSize": size}
            aws.expect("eks.update_nodegroup_config", {**EKS_NAMES, "scalingConfig": scaling}, answer)
        case "hyperpod":
            described = {"ClusterArn": HYPERPOD_ARN, "ClusterStatus": "InService"}
            labels = {"KubernetesConfig": {"DesiredLabels": {"team": "a"}}}
            found = {**described, "InstanceGroups": [{**INSTANCE_GROUP, "TargetCount": 8, **labels}]}
            aws.expect("sagemaker.describe_cluster", {"ClusterName": "pod"}, found)
            sent = {**INSTANCE_GROUP, "InstanceCount": size, "KubernetesConfig": {"Labels": {"team": "a"}}}
            sent_in = {"ClusterName": "pod", "InstanceGroups": [sent]}
            aws.expect("sagemaker.update_cluster", sent_in, answer or {"ClusterArn": HYPERPOD_ARN})
        case _:
            if size:
                types = {"InstanceTypes": [{"InstanceType": "p5.48xlarge", "VCpuInfo": {"DefaultVCpus": 192}}]}
                aws.expect("ec2.describe_instance_types", {"InstanceTypes": ["p5.48xlarge"]}, types)
            on = {"state": "ENABLED", "computeResources": {"maxvCpus": size * 192}}
            change = on if size else {"state": "DISABLED"}
            aws.expect("batch.update_compute_environment", {"computeEnvironment": "workers", **change}, answer)


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize(("kind", "scheduler_sized"), [("pcs", True), ("pcs", False), ("eks", False),
                                                    ("hyperpod", False), ("batch", True)])  # fmt: skip
def test_a_size_is_set_by_the_owners_own_verb(aws: StubbedAws, kind: str, scheduler_sized: bool, size: int) -> None:
    expect_size(aws, kind, size, {}, scheduler_sized=scheduler_sized)
    aws.owner(*NAMES[kind]).set_size(named(kind, scheduler_sized=scheduler_sized), size)


BUSY = {
    "pcs": "ConflictException",
    "eks": "ResourceInUseException",
    "hyperpod": "ConflictException",
    "batch": "ClientException: Cannot update, resource is being modified.",
}


@pytest.mark.parametrize("kind", BUSY)
def test_an_owner_that_takes_no_size_at_the_moment_is_busy(aws: StubbedAws, kind: str) -> None:
    expect_size(aws, kind, 3, BUSY[kind])
    with pytest.raises(OwnerBusyError):
        aws.owner(*NAMES[kind]).set_size(named(kind), 3)


@pytest.mark.parametrize("kind", BUSY)
def test_a_refused_size_is_an_error(aws: StubbedAws, kind: str) -> None:
    expect_size(aws, kind, 3, "ValidationException: no")
    with pytest.raises(ClientError, match="no"):
        aws.owner(*NAMES[kind]).set_size(named(kind), 3)


TAG_CALLS: dict[str, tuple[str, str, str, dict[str, Any], dict[str, Any]]] = {
    "pcs": ("pcs.tag_resource", "pcs.untag_resource", "resourceArn", {"tags": {"a": "1"}}, {"tagKeys": ["a"]}),
    "eks": ("eks.tag_resource", "eks.untag_resource", "resourceArn", {"tags": {"a": "1"}}, {"tagKeys": ["a"]}),
    "hyperpod": (
        "sagemaker.add_tags", "sagemaker.delete_tags", "ResourceArn",
        {"Tags": [{"Key": "a/workers", "Value": "1"}]}, {"TagKeys": ["a/workers"]},
    ),
    "batch": ("batch.tag_resource", "batch.untag_resource", "resourceArn", {"tags": {"a": "1"}}, {"tagKeys": ["a"]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAG_CALLS)
def test_tags_are_written_on_the_owner(aws: StubbedAws, kind: str) -> None:
    write, remove, arn, tags, keys = TAG_CALLS[kind]
    group, owner = named(kind), aws.owner(*NAMES[kind])
    aws.expect(write, {arn: group.arn, **tags}, {})
    aws.expect(remove, {arn: group.arn, **keys}, {})
    owner.tag(group, {"a": "1"})
    owner.untag(group, ["a"])


def test_a_node_of_a_managed_node_group_is_terminated_and_its_launches_resumed(aws: StubbedAws) -> None:
    owner, group = aws.owner(*EKS), named("eks")
    request = {"InstanceId": "i-1", "ShouldDecrementDesiredCapacity": True}
    aws.expect("autoscaling.terminate_instance_in_auto_scaling_group", request, {})
    launch = {"AutoScalingGroupName": "eks-workers", "ScalingProcesses": ["Launch"]}
    aws.expect("autoscaling.resume_processes", launch, {})
    activities = {"AutoScalingGroupName": "eks-workers", "MaxRecords": 100}
    aws.expect("autoscaling.describe_scaling_activities", activities, {"Activities": []})
    owner.terminate(group, "i-1")
    owner.resume_launching(group)
    assert owner.read_activities(group, None) == ()


def test_a_node_of_an_instance_group_is_deleted_or_the_refusal_raised(aws: StubbedAws) -> None:
    owner, group = aws.owner(*HYPERPOD), named("hyperpod")
    request = {"ClusterName": "pod", "NodeIds": ["i-1"]}
    aws.expect("sagemaker.batch_delete_cluster_nodes", request, {"Successful": ["i-1"]})
    failure = {"Code": "NodeIdInUse", "Message": "a controller", "NodeId": "i-1"}
    aws.expect("sagemaker.batch_delete_cluster_nodes", request, {"Failed": [failure]})
    owner.terminate(group, "i-1")
    with pytest.raises(ClientError, match=r"NodeIdInUse.*a controller"):
        owner.terminate(group, "i-1")


@pytest.mark.parametrize(
    ("answer", "messages"),
    [({"Events": [
        {"EventId": "1", "ClusterArn": HYPERPOD_ARN, "ClusterName": "pod", "ResourceType": "InstanceGroup",
         "EventTime": NOW, "EventLevel": level, "Description": f"{level}\nevent"} for level in ("Info", "Error")
    ]}, ["Error event"]), ("ValidationException: only with Continuous", [])],
)  # fmt: skip
def test_errors_among_the_events_of_an_instance_group_are_failed_launches(
    aws: StubbedAws, answer: Any, messages: list[str]
) -> None:
    request = {"ClusterName": "pod", "InstanceGroupName": "workers", "MaxResults": 100, "EventTimeAfter": NOW}
    aws.expect("sagemaker.list_cluster_events", request, answer)
    found = aws.owner(*HYPERPOD).read_activities(named("hyperpod"), NOW)
    assert [one.message for one in found] == messages


@pytest.mark.parametrize("kind", ["pcs", "batch"])
def test_a_single_node_is_never_said_to_be_terminated_by_a_scheduler(aws: StubbedAws, kind: str) -> None:
    owner = aws.owner(*NAMES[kind])
    with pytest.raises(NotImplementedError, match="chooses itself which nodes"):
        owner.terminate(named(kind), "i-1")
