"""What Spot Instances are bought with: one mixed group, or a Spot Fleet, over types of different layouts."""

import json
from functools import cache
from typing import Any

import pytest
from aws_cdk import Aspects, CfnParameter, Tag, Tags
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import Capacity, Placement
from fleet_scene import FLEET, GROUP, HOOK, PLACEMENT, TEMPLATE, FleetScene, bought, cards
from node_group_cases import IMAGE_AT_LAUNCH, OWN_IMAGE
from synthesis import new_stack, resources, warnings

# Two layouts of network interfaces, the first of which two types share.
_TYPES = ("g5.48xlarge", "g6e.48xlarge", "g6.48xlarge")
_ROLE, _POLICY = "AWS::IAM::Role", "service-role/AmazonEC2SpotFleetTaggingRole"


@cache
def _usual(capacity: Capacity) -> FleetScene:
    return bought(instance_types=_TYPES, capacity=capacity)


def _spot(*, capacity: Capacity | None = None, **settings: Any) -> FleetScene:
    buy = capacity or Capacity.spot()
    return bought(**{"instance_types": _TYPES, "capacity": buy, **settings}) if settings else _usual(buy)


def _fleet(**settings: Any) -> FleetScene:
    return _spot(**{"capacity": Capacity.spot_fleet(), **settings})


def _request(scene: FleetScene) -> dict[str, Any]:
    return dict(scene.only(FLEET)[1]["SpotFleetRequestConfigData"])


def test_spot_makes_one_mixed_group_and_a_launch_template_for_each_layout() -> None:
    scene = _spot()
    assert scene.kinds == sorted([GROUP, HOOK, TEMPLATE, TEMPLATE])
    first, second = scene.all(TEMPLATE)
    _, group = scene.only(GROUP)
    assert group["MixedInstancesPolicy"] == {
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0,
            "SpotAllocationStrategy": "price-capacity-optimized",
            # Left out, the limit of an earlier deployment would stay.
            "SpotMaxPrice": "",
        },
        "LaunchTemplate": {
            "LaunchTemplateSpecification": scene.newest(first),
            "Overrides": [
                {"InstanceType": "g5.48xlarge"},
                {"InstanceType": "g6e.48xlarge", "LaunchTemplateSpecification": scene.newest(second)},
                {"InstanceType": "g6.48xlarge"},
            ],
        },
    }
    assert group["CapacityRebalance"] is False
    assert {"LaunchTemplate", "CapacityReservationSpecification", "PlacementGroup"}.isdisjoint(group)
    assert scene.launch_data(first)["InstanceType"] == "g5.48xlarge"
    assert scene.launch_data(second)["InstanceType"] == "g6e.48xlarge"


def test_rebalancing_is_a_choice() -> None:
    _, group = _spot(capacity=Capacity.spot(capacity_rebalancing=True)).only(GROUP)
    assert group["CapacityRebalance"] is True


def test_each_layout_has_the_interfaces_of_its_types() -> None:
    scene = _spot()
    first, second = (cards(scene.launch_data(name)) for name in scene.all(TEMPLATE))
    assert first == [(0, 0, "interface"), (0, 1, "efa-only")]
    assert second == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]
    assert scene.fleet.launch_template is scene.fleet.launch_templates[0]
    assert scene.fleet.efa_interfaces == 1


def test_types_with_and_without_efa_have_templates_of_their_own_and_say_so_to_their_nodes() -> None:
    scene = _spot(instance_types=["g5.xlarge", "g5.48xlarge"])
    plain, with_efa = scene.all(TEMPLATE)
    assert [cards(scene.launch_data(name)) for name in (plain, with_efa)] == [
        [(0, 0, "interface")],
        [(0, 0, "interface"), (0, 1, "efa-only")],
    ]
    assert "\nEFA=''\n" in scene.user_data(plain)
    assert "\nEFA='yes'\n" in scene.user_data(with_efa)


def test_architectures_have_templates_and_images_of_their_own() -> None:
    scene = _spot(instance_types=["g5.xlarge", "g5g.xlarge", "g6.xlarge"])
    x86, arm = (scene.launch_data(name) for name in scene.all(TEMPLATE))
    assert "x8664" in x86["ImageId"]["Ref"]
    assert "arm64" in arm["ImageId"]["Ref"]
    assert cards(x86) == cards(arm)


def test_an_image_of_one_s_own_is_in_every_template() -> None:
    scene = _spot(machine_image=OWN_IMAGE)
    assert {scene.launch_data(name)["ImageId"] for name in scene.all(TEMPLATE)} == {"ami-0a1b2c3d4e5f67890"}
    assert warnings(scene.stack) == []


def test_an_image_that_a_launch_looks_up_suits_a_group_but_no_fleet() -> None:
    scene = _spot(machine_image=IMAGE_AT_LAUNCH)
    assert {scene.launch_data(name)["ImageId"] for name in scene.all(TEMPLATE)} == {"resolve:ssm:/images/tested"}
    with pytest.raises(ValueError, match=r"machine_image must be an AMI's id for Capacity.spot_fleet\(\)"):
        _fleet(machine_image=IMAGE_AT_LAUNCH)


def test_an_image_that_turns_out_to_be_looked_up_at_launch_is_refused_all_the_same() -> None:
    image = ec2.MachineImage.generic_linux({"us-east-1": "resolve:ssm:/images/tested"})
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _fleet(machine_image=image)
    assert str(refused.value) == (
        "node group 'workers': machine_image must be an AMI's id for Capacity.spot_fleet(), got a parameter that is "
        "resolved at launch (resolve:ssm:…): a Spot Fleet does not resolve it; use "
        "ec2.MachineImage.from_ssm_parameter(), which the deployment resolves, or Capacity.spot()"
    )


@pytest.mark.parametrize("buy", [_spot, _fleet])
def test_no_launch_template_names_a_market_which_would_make_it_unfit(buy: Any) -> None:
    scene = buy()
    for name in scene.all(TEMPLATE):
        assert {"InstanceMarketOptions", "CapacityReservationSpecification", "Placement"}.isdisjoint(
            scene.launch_data(name)
        )


def test_a_fleet_names_its_limit_to_the_price() -> None:
    assert _request(_fleet(capacity=Capacity.spot_fleet(max_price=12.5)))["SpotPrice"] == "12.5"


def test_a_group_names_its_limit_to_the_price_and_an_empty_one_when_it_is_left_out_again() -> None:
    limited, free = (_spot(capacity=Capacity.spot(max_price=price)) for price in (12.5, None))
    ((name, before), (same, after)) = limited.only(GROUP), free.only(GROUP)
    assert name == same  # so that it is an update of the group there is, which keeps what is left out
    assert before["MixedInstancesPolicy"]["InstancesDistribution"].pop("SpotMaxPrice") == "12.5"
    assert after["MixedInstancesPolicy"]["InstancesDistribution"].pop("SpotMaxPrice") == ""
    assert before == after


def test_a_price_that_is_not_known_yet_follows_its_parameter() -> None:
    stack = new_stack()
    price = CfnParameter(stack, "Price", type="Number").value_as_number
    scene = bought(stack, instance_types=["g5.48xlarge"], capacity=Capacity.spot(max_price=price))
    (group,) = resources(stack, GROUP).values()
    assert scene.fleet.node_group.count == 8
    assert group["Properties"]["MixedInstancesPolicy"]["InstancesDistribution"]["SpotMaxPrice"] == {"Ref": "Price"}


def test_a_spot_fleet_is_a_request_that_maintains_nothing_until_it_is_told_to() -> None:
    scene = _fleet()
    assert scene.kinds == sorted([FLEET, TEMPLATE, TEMPLATE])
    first, second = scene.all(TEMPLATE)
    request = _request(scene)
    assert (request["Type"], request["TargetCapacity"]) == ("maintain", 0)
    assert request["AllocationStrategy"] == "priceCapacityOptimized"
    assert request["ExcessCapacityTerminationPolicy"] == "noTermination"
    assert request["InstanceInterruptionBehavior"] == "terminate"
    assert request["LaunchTemplateConfigs"] == [
        {
            "LaunchTemplateSpecification": scene.newest(first),
            "Overrides": [{"InstanceType": "g5.48xlarge"}, {"InstanceType": "g6.48xlarge"}],
        },
        {"LaunchTemplateSpecification": scene.newest(second), "Overrides": [{"InstanceType": "g6e.48xlarge"}]},
    ]
    assert scene.stack.resolve(scene.fleet.spot_fleet.ref) == {"Ref": scene.only(FLEET)[0]}


def test_the_interfaces_of_a_spot_fleet_name_their_subnet_and_no_first_card() -> None:
    scene = _fleet()
    subnet = scene.stack.resolve(scene.network.node_subnet.subnet_id)
    interfaces = [
        interface
        for template in scene.all(TEMPLATE).values()
        for interface in template["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]
    ]
    assert [interface["SubnetId"] for interface in interfaces] == [subnet] * len(interfaces)
    assert {interface.get("NetworkCardIndex") for interface in interfaces} == {None, 1, 2, 3}
    in_a_group = bought(new_stack(), instance_types=["g6e.48xlarge"], capacity=Capacity.spot())
    for template in in_a_group.all(TEMPLATE).values():
        for interface in template["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]:
            assert "SubnetId" not in interface
            assert "NetworkCardIndex" in interface


def _fleet_roles(scene: FleetScene) -> dict[str, Any]:
    return {
        name: role["Properties"]
        for name, role in scene.all(_ROLE).items()
        if "spotfleet.amazonaws.com" in json.dumps(role)
    }


def test_a_spot_fleet_has_a_role_of_its_own_with_aws_s_own_policy() -> None:
    (role,) = _fleet_roles(_fleet()).values()
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": "spotfleet.amazonaws.com"}}
    ]
    assert role["ManagedPolicyArns"] == [
        {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":iam::aws:policy/{_POLICY}"]]}
    ]


def test_a_spot_fleet_comes_after_its_role_and_the_nodes_way_out() -> None:
    scene = _fleet()
    (fleet,), (role,) = scene.all(FLEET), _fleet_roles(scene)
    assert _request(scene)["IamFleetRole"] == {"Fn::GetAtt": [role, "Arn"]}
    routes = resources(scene.stack, "AWS::EC2::Route")
    (to_nat,) = (name for name, route in routes.items() if "NatGatewayId" in route["Properties"])
    assert {to_nat, *resources(scene.stack, "AWS::EC2::VPCEndpoint")} <= set(scene.template[fleet]["DependsOn"])


def test_nothing_that_an_app_tags_replaces_a_spot_fleet() -> None:
    plain = _fleet().only(FLEET)
    stack = new_stack()
    scene = bought(stack, instance_types=_TYPES, capacity=Capacity.spot_fleet())
    Tags.of(stack).add("team", "ml")
    Aspects.of(scene.fleet).add(Tag("cost-center", "42"))
    assert scene.only(FLEET) == plain


def test_the_instances_of_a_spot_fleet_are_found_by_the_tags_of_their_template() -> None:
    scene = _fleet()
    for name in scene.all(TEMPLATE):
        instance, volume = scene.launch_data(name)["TagSpecifications"]
        assert (instance["ResourceType"], volume["ResourceType"]) == ("instance", "volume")
        assert {"Key": "cdk-training-cluster:node-group", "Value": "workers"} in instance["Tags"]


def test_spot_in_a_placement_group_is_terminated_when_it_is_interrupted() -> None:
    grouped = _spot(placement=Placement.CLUSTER)
    (place,) = grouped.all(PLACEMENT)
    assert grouped.only(GROUP)[1]["PlacementGroup"] == {"Ref": place}
    fleet = _fleet(placement=Placement.CLUSTER)
    (place,) = fleet.all(PLACEMENT)
    assert _request(fleet)["InstanceInterruptionBehavior"] == "terminate"
    for name in fleet.all(TEMPLATE):
        assert fleet.launch_data(name)["Placement"] == {"GroupName": {"Ref": place}}


def test_a_node_group_knows_who_runs_its_nodes() -> None:
    group, fleet = _spot().fleet, _fleet().fleet
    assert group.owner is group.auto_scaling_group
    assert fleet.owner is fleet.spot_fleet
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        fleet.auto_scaling_group_name  # noqa: B018  # asking is what is refused
    assert str(refused.value) == (
        "node group 'workers' has no Auto Scaling group: its nodes are launched by an AWS::EC2::SpotFleet; use owner"
    )
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        group.spot_fleet  # noqa: B018  # asking is what is refused
    assert str(refused.value) == (
        "node group 'workers' has no Spot Fleet: its nodes are launched by an AWS::AutoScaling::AutoScalingGroup; "
        "use owner"
    )
