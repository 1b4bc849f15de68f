"""What launch templates say to the services that launch nodes from them, beside Auto Scaling and Spot Fleet."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import Capacity, NodeGroup
from cdk_training_cluster.nodes import launch_dialect
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.fleet_owners import FleetOwners, MadeOwner
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from fleet_scene import FleetScene, bought_each

_DIALECTS = {"pcs": launch_dialect.PCS, "eks": launch_dialect.EKS, "batch": launch_dialect.BATCH}


class _Services(FleetOwners):
    """Launches each node group with the service that it is named after, or with one that takes no template."""

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect | None:
        return _DIALECTS.get(node_group.name.partition("-")[0])

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002
        return MadeOwner(resource=CfnResource(fleet, "Owner", type="AWS::Example::Owner"))

    def node_setup(self, fleet: Fleet) -> NodeSetup:  # noqa: ARG002
        part = ec2.MultipartBody.from_raw_body(content_type="application/node.eks.aws", body="kind: NodeConfig")
        return NodeSetup(user_data_parts=[part])

    def security_groups(self, fleet: Fleet) -> Sequence[str]:  # noqa: ARG002
        return ["sg-1"]


@pytest.fixture(scope="module")
def made() -> Mapping[str, FleetScene]:
    placed = Capacity.from_reservation("cr-0a1b2c3d4e5f67890", placement_group="close")
    settings = [{"name": name, "capacity": placed} for name in (*_DIALECTS, "none")]
    settings.append({"name": "pcs-block", "capacity": Capacity.capacity_block("cr-0f1e2d3c4b5a67890")})
    scenes = bought_each(settings, _owners=_Services())
    return {scene.fleet.node_group.name: scene for scene in scenes}


_ID = {"CapacityReservationId": "cr-0a1b2c3d4e5f67890"}


@pytest.mark.parametrize(
    ("service", "placement"),
    [
        # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_launch-templates.html
        pytest.param("pcs", {"GroupName": "close"}, id="pcs"),
        # https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
        pytest.param("eks", {"GroupName": "close"}, id="eks"),
        # https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html
        pytest.param("batch", None, id="batch"),
    ],
)
def test_a_template_names_what_its_service_takes_from_it(
    made: Mapping[str, FleetScene], service: str, placement: Any
) -> None:
    scene = made[service]
    data = scene.launch_data()
    assert not {"InstanceType", "IamInstanceProfile"} & {*data}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": _ID}
    assert data.get("Placement") == placement
    assert all(each["Groups"][1:] == ["sg-1"] and "SubnetId" not in each for each in data["NetworkInterfaces"])
    text = scene.user_data()
    assert text.index("MIME-Version: 1.0") < text.index("kind: NodeConfig") < text.index("#!/bin/bash")


def test_a_template_for_a_capacity_block_names_its_type(made: Mapping[str, FleetScene]) -> None:
    data = made["pcs-block"].launch_data()
    assert data["InstanceType"] == "p5.48xlarge"
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_a_service_may_take_no_template(made: Mapping[str, FleetScene]) -> None:
    fleet = made["none"].fleet
    assert fleet.launch_templates == ()
    with pytest.raises(ValueError, match="is launched from no launch template"):
        fleet.launch_template  # noqa: B018  # asking is what is refused
