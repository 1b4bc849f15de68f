"""What is read of DescribeInstances: who owns an instance, what is billed anyway, and what EC2 cannot stop."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_common.owners.kinds import AUTO_SCALING_GROUP, OWNER_KINDS, SPOT_FLEET
from cluster_contract.owners import OwnerKind, OwnerSettings
from cluster_idle.accelerators import gpu_count, is_measured
from cluster_idle.context import IdleContext, OwnerState
from cluster_idle.instances import Instance, Owner, instances_of, parse_instance, read_again, read_cluster
from cluster_idle.stoppable import Obstacles
from cluster_idle.verdicts import IdleVerdict
from fake_instances import CLUSTER_TAG, FakeInstances, FakeNode
from idle_function_settings import Group, idle_settings

LAUNCHED = datetime(2026, 11, 2, 8, tzinfo=UTC)
GROUP, FLEET, EC2_FLEET = "aws:autoscaling:groupName", "aws:ec2spot:fleet-request-id", "aws:ec2:fleet-id"
NODE_GROUP = "cdk-training-cluster:node-group"
PCS = {"aws:pcs:cluster-id": "pcs_1", "aws:pcs:compute-node-group-id": "pcs_2"}
EKS = {"eks:cluster-name": "pod", "eks:nodegroup-name": "pods"}
SETTINGS = idle_settings(
    cluster="base-pod",
    groups={
        "workers": Group(),
        "extras": Group(owner=OwnerSettings.spot_fleet("sfr-1")),
        "slurm": Group(owner=OwnerSettings(kind=OwnerKind.PCS_COMPUTE_NODE_GROUP, id="pcs_1/pcs_2")),
        "pods": Group(owner=OwnerSettings(kind=OwnerKind.EKS_NODEGROUP, id="pod/pods")),
        "jobs": Group(owner=OwnerSettings(kind=OwnerKind.BATCH_COMPUTE_ENVIRONMENT, id="jobs-1")),
    },
)


def parse(tags: dict[str, str] | None = None, **raw: Any) -> Instance:
    plain = {
        "InstanceId": "i-1",
        "InstanceType": "p5.48xlarge",
        "LaunchTime": LAUNCHED,
        "State": {"Name": "running"},
        "RootDeviceType": "ebs",
        "Tags": [{"Key": key, "Value": value} for key, value in (tags or {}).items()],
    }
    return parse_instance(cast("Any", {**plain, **raw}), SETTINGS)


def test_a_plain_instance_is_its_own_owner() -> None:
    assert parse() == Instance(
        id="i-1",
        instance_type="p5.48xlarge",
        launched=LAUNCHED,
        owner=Owner.itself("i-1"),
    )


@pytest.mark.parametrize(
    ("tags", "owner"),
    [
        ({NODE_GROUP: "workers", GROUP: "asg"}, Owner.of(AUTO_SCALING_GROUP, "asg")),
        ({NODE_GROUP: "extras", FLEET: "sfr-1"}, Owner.of(SPOT_FLEET, "sfr-1")),
        ({**PCS, EC2_FLEET: "fleet-1"}, Owner.of(OWNER_KINDS["pcs_compute_node_group"], "pcs_1/pcs_2")),
        ({**EKS, GROUP: "eks-1"}, Owner.of(OWNER_KINDS["eks_nodegroup"], "pod/pods")),
        # Nothing on an instance of AWS Batch names its environment.
        (
            {NODE_GROUP: "jobs", GROUP: "AWSBatch-1"},
            Owner.of(OWNER_KINDS["batch_compute_environment"], "jobs-1"),
        ),
        ({NODE_GROUP: "workers"}, Owner.itself("i-1")),
        ({NODE_GROUP: "dev"}, Owner.itself("i-1")),
        # Another owner's.
        ({GROUP: "web"}, Owner.foreign("the Auto Scaling group web, which is none of the cluster's")),
        ({FLEET: "sfr-9"}, Owner.foreign("the Spot Fleet request sfr-9, which is none of the cluster's")),
        ({EC2_FLEET: "fleet-1"}, Owner.foreign("the EC2 Fleet fleet-1, which is none of the cluster's")),
        # What deploys leave behind: a group that is no longer in the file, one in a fleet's place, another fleet.
        (
            {NODE_GROUP: "old", GROUP: "old-asg"},
            Owner.foreign("the Auto Scaling group old-asg, which is none of the cluster's"),
        ),
        (
            {NODE_GROUP: "extras", GROUP: "extras-asg"},
            Owner.foreign("the Auto Scaling group extras-asg, which is none of the cluster's"),
        ),
        (
            {NODE_GROUP: "extras", FLEET: "sfr-0"},
            Owner.foreign("the Spot Fleet request sfr-0, which is none of the cluster's"),
        ),
        # A fleet's node goes with its fleet, whatever people have made of its tags.
        ({NODE_GROUP: "workers", FLEET: "sfr-1"}, Owner.of(SPOT_FLEET, "sfr-1")),
        ({FLEET: "sfr-1"}, Owner.of(SPOT_FLEET, "sfr-1")),
        # A group may launch with an EC2 Fleet of its own.
        ({NODE_GROUP: "workers", GROUP: "asg", EC2_FLEET: "fleet-1"}, Owner.of(AUTO_SCALING_GROUP, "asg")),
    ],
)
def test_who_owns_it(tags: dict[str, str], owner: Owner) -> None:
    assert parse(tags).owner == owner


@pytest.mark.parametrize(
    ("operator", "owner"),
    [
        ({"Managed": True, "Principal": "eks.amazonaws.com"}, "eks.amazonaws.com"),
        ({"Managed": True}, "another service"),
    ],
)
@pytest.mark.parametrize("tags", [{}, {NODE_GROUP: "workers", GROUP: "asg"}])
def test_what_a_service_manages_is_that_services(operator: dict[str, Any], owner: str, tags: dict[str, str]) -> None:
    assert parse(tags, Operator=operator).owner == Owner.foreign(owner)


def test_what_no_service_manages_is_not() -> None:
    assert parse(Operator={"Managed": False}).owner.is_instance


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        (Owner.itself("i-1"), "i-1"),
        (Owner.of(AUTO_SCALING_GROUP, "asg"), "the Auto Scaling group asg"),
        (Owner.of(SPOT_FLEET, "sfr-1"), "the Spot Fleet request sfr-1"),
        (Owner.foreign("eks.amazonaws.com"), "eks.amazonaws.com"),
    ],
)
def test_owners_are_named_in_words(owner: Owner, words: str) -> None:
    assert owner.description == words


@pytest.mark.parametrize(
    ("raw", "reserved"),
    [
        ({}, None),
        ({"CapacityReservationId": "cr-1"}, "the capacity reservation cr-1"),
        (
            {"InstanceLifecycle": "capacity-block", "CapacityBlockId": "cb-1", "CapacityReservationId": "cr-1"},
            "the Capacity Block cb-1",
        ),
        # An older boto3 does not know CapacityBlockId, and drops it.
        (
            {"InstanceLifecycle": "capacity-block", "CapacityReservationId": "cr-1"},
            "the Capacity Block cr-1",
        ),
        ({"InstanceLifecycle": "capacity-block"}, "a Capacity Block"),
        ({"CapacityBlockId": "cb-1"}, "the Capacity Block cb-1"),
        (
            {"InstanceLifecycle": "interruptible-capacity-reservation", "CapacityReservationId": "cr-1"},
            "an interruptible capacity reservation cr-1",
        ),
        ({"InstanceLifecycle": "interruptible-capacity-reservation"}, "an interruptible capacity reservation"),
        ({"InstanceLifecycle": "spot"}, None),
        ({"InstanceLifecycle": "something-new"}, None),
    ],
)
def test_what_it_runs_in_that_is_billed_all_the_same(raw: dict[str, Any], reserved: str | None) -> None:
    assert parse(**raw).reserved == reserved


@pytest.mark.parametrize(
    ("raw", "request_id"),
    [
        ({}, None),
        ({"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-1"}, "sir-1"),
        # Spot all the same: it is not known whether it can be stopped.
        ({"InstanceLifecycle": "spot"}, ""),
        ({"InstanceLifecycle": "scheduled"}, None),
    ],
)
def test_a_spot_instance_has_a_request(raw: dict[str, Any], request_id: str | None) -> None:
    assert parse(**raw).spot_request == request_id


@pytest.mark.parametrize(
    ("raw", "ebs"), [({}, True), ({"RootDeviceType": "instance-store"}, False), ({"RootDeviceType": ""}, False)]
)
def test_the_root_volume_stays_only_if_it_is_ebs(raw: dict[str, Any], ebs: bool) -> None:
    assert parse(**raw).ebs_root is ebs


@pytest.mark.parametrize(
    ("raw", "hibernates"),
    [
        ({}, False),
        ({"HibernationOptions": {"Configured": False}}, False),
        ({"HibernationOptions": {"Configured": True}}, True),
    ],
)
def test_it_hibernates_only_if_it_is_set_up_so(raw: dict[str, Any], hibernates: bool) -> None:
    assert parse(**raw).hibernates is hibernates


@pytest.mark.parametrize(("state", "running"), [("running", True), ("pending", False)])
def test_a_pending_one_does_not_run_yet(state: str, running: bool) -> None:
    assert parse(State={"Name": state}).running is running


def test_its_tags_are_read() -> None:
    found = parse(
        {
            "Name": "node",
            NODE_GROUP: "workers",
            "cdk-training-cluster:keep-until": "2026-11-30",
            "cdk-training-cluster:idle-note": "idle",
        }
    )

    assert found.node_group == "workers"
    assert found.keep_tags.keep_until == "2026-11-30"
    assert found.has_note


def cluster(count: int, state: str = "running", **tags: str) -> FakeInstances:
    """Return EC2 with instances of the cluster, and one of another."""
    ec2 = FakeInstances()
    for number in range(count):
        ec2.nodes[f"i-{number:08x}"] = FakeNode(
            id=f"i-{number:08x}", launched=LAUNCHED, state=state, tags={CLUSTER_TAG: "base-pod", **tags}
        )
    ec2.nodes["i-ffffffff"] = FakeNode(id="i-ffffffff", launched=LAUNCHED, tags={CLUSTER_TAG: "other"})
    return ec2


@pytest.mark.parametrize(
    ("state", "count"), [("running", 7), ("pending", 7), ("stopping", 0), ("stopped", 0), ("terminated", 0)]
)
def test_the_clusters_instances_are_read_page_by_page(state: str, count: int) -> None:
    ec2 = cluster(7, state)

    assert [one.id for one in read_cluster(cast("Any", ec2), SETTINGS)] == sorted(ec2.nodes)[:count]
    assert [request["MaxResults"] for _, request in ec2.requests] == [200] * (1 + (count - 1) // 3 if count else 1)


def test_the_tag_may_be_another() -> None:
    settings = idle_settings(cluster="llama", tag="team")
    ec2 = cluster(2, team="llama")

    assert len(read_cluster(cast("Any", ec2), settings)) == 2
    assert ec2.requests[0][1]["Filters"][0] == {"Name": "tag:team", "Values": ["llama"]}


def test_only_what_still_runs_and_is_still_the_clusters_is_read_again() -> None:
    ec2 = cluster(5)
    ids = sorted(ec2.nodes)
    ec2.nodes[ids[0]].state = "stopping"
    ec2.nodes[ids[1]].state = "pending"
    del ec2.nodes[ids[2]]
    ec2.nodes[ids[3]].tags[CLUSTER_TAG] = "other"

    assert set(read_again(cast("Any", ec2), SETTINGS, ids)) == {ids[4]}


def test_two_hundred_are_read_again_at_a_time() -> None:
    ec2 = cluster(450)
    ec2.page_size = 200

    assert len(read_again(cast("Any", ec2), SETTINGS, sorted(ec2.nodes)[:450])) == 450
    assert [len(request["Filters"][0]["Values"]) for _, request in ec2.requests] == [200, 200, 50]


def test_nodes_that_ec2_does_not_describe_are_read_from_their_owner() -> None:
    kind = OWNER_KINDS["hyperpod_instance_group"]
    nodes = {
        one: OwnedNode(state=state, instance_type="ml.p5.48xlarge", launched=LAUNCHED)
        for one, state in {"i-1": "InService", "i-2": "Pending", "i-3": "Terminating", "i-4": "Failure"}.items()
    }
    group = OwnedGroup(
        name="pod/workers", node_group="workers", desired=2, minimum=0, maximum=2, in_service=1,
        owner=kind, nodes=nodes,
    )  # fmt: skip
    found = list(instances_of(group))
    assert [(one.id, one.running, one.owner) for one in found] == [
        ("i-1", True, Owner.of(kind, "pod/workers")),
        ("i-2", False, Owner.of(kind, "pod/workers")),
    ]
    assert (is_measured("ml.p5.48xlarge"), gpu_count("ml.p5.48xlarge", {})) == (True, 8)


@pytest.mark.parametrize("scheduler_sized", [True, False])
def test_an_idle_node_that_a_scheduler_keeps_is_said_and_left_to_it(scheduler_sized: bool) -> None:
    node = parse({**PCS, NODE_GROUP: "slurm"})
    assert node.owner.traits is not None
    state = OwnerState(
        name="pcs_1/pcs_2", node_group="slurm", desired=8, minimum=0, maximum=8, in_service=1,
        owner=node.owner.traits, nodes={"i-1": OwnedNode(state="InService")}, scheduler_sized=scheduler_sized,
    )  # fmt: skip
    settings = replace(SETTINGS, power_function="power")
    context = IdleContext(settings=settings, now=LAUNCHED, owners={node.owner: state})
    said = (
        IdleVerdict.UNSTOPPABLE,
        "is idle, but AWS PCS alone takes idle nodes out of the PCS compute node group pcs_1/pcs_2: lower its "
        "scaleDownIdleTimeInSeconds, end the job that holds the nodes, or stop the node group",
    )
    assert Obstacles([node], context).find(node) == (said if scheduler_sized else None)
