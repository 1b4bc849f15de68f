"""What each way to buy makes: reservations, blocks and On-Demand Instances."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack, Tags

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    Capacity,
    IdlePolicy,
    NodeGroup,
    OnIdle,
    Placement,
    TrainingCluster,
)
from fleet_scene import (
    GROUP,
    HOOK,
    PLACED_RESERVATION,
    PLACEMENT,
    RESERVATION,
    RESERVATION_GROUP,
    TEMPLATE,
    FleetScene,
    bought,
    bought_each,
)
from node_group_cases import OWN_IMAGE
from synthesis import ZONE, new_stack, only

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"
_SHARED = f"arn:aws:ec2:us-east-1:444455556666:capacity-reservation/{_OTHER}"
_END = datetime(2026, 12, 24, 18, tzinfo=UTC)

_TAGS = [
    {"Key": "Name", "Value": "pod/workers"},
    {"Key": "cdk-training-cluster:cluster", "Value": "pod"},
    {"Key": "cdk-training-cluster:node-group", "Value": "workers"},
]


def _group(scene: FleetScene) -> dict[str, Any]:
    """Return the group's properties, less tags and subnet, which are the same whatever is bought."""
    _, properties = scene.only(GROUP)
    assert properties["VPCZoneIdentifier"] == [scene.stack.resolve(scene.network.node_subnet.subnet_id)]
    return {key: value for key, value in properties.items() if key not in {"Tags", "VPCZoneIdentifier"}}


def _only_into(reservation: Any) -> dict[str, Any]:
    return {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationIds": [reservation]},
    }


def _plain(scene: FleetScene) -> dict[str, Any]:
    (template,) = scene.all(TEMPLATE)
    return {
        "MinSize": "0",
        "MaxSize": "8",
        "LaunchTemplate": scene.newest(template),
        "TerminationPolicies": ["NewestInstance"],
    }


def test_every_group_is_made_empty_and_keeps_its_size_at_a_deployment() -> None:
    capacities = [capacity for those in _OWNERS.values() for capacity in those]
    for capacity, scene in zip(capacities, bought_each([{"capacity": each} for each in capacities]), strict=True):
        (group,) = scene.all(GROUP).values()
        assert (group["Properties"]["MinSize"], group["Properties"]["MaxSize"]) == ("0", "8")
        assert "DesiredCapacity" not in group["Properties"]
        newest_first = None if "prioritized" in capacity.call else ["NewestInstance"]
        assert group["Properties"].get("TerminationPolicies") == newest_first
        assert group["UpdatePolicy"] == {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}}


def test_on_demand_makes_a_group_in_a_placement_group_and_nothing_more() -> None:
    scene = bought()
    assert scene.kinds == sorted([GROUP, HOOK, PLACEMENT, TEMPLATE])
    place, properties = scene.only(PLACEMENT)
    assert properties == {"Strategy": "cluster"}
    assert _group(scene) == {**_plain(scene), "PlacementGroup": {"Ref": place}}
    data = scene.launch_data()
    assert {"InstanceMarketOptions", "CapacityReservationSpecification", "Placement"}.isdisjoint(data)


@pytest.mark.parametrize(
    ("end", "dates"),
    [
        (_END, {"EndDateType": "limited", "EndDate": "2026-12-24T18:00:00Z"}),
        (UNTIL_CANCELLED, {"EndDateType": "unlimited"}),
    ],
)
@pytest.mark.parametrize("on_idle", list(OnIdle))
def test_a_reservation_is_made_in_the_placement_group_that_the_nodes_go_into(
    end: Any, dates: dict[str, str], on_idle: OnIdle
) -> None:
    scene = bought(capacity=Capacity.reservation(end=end, on_idle=on_idle))
    assert scene.kinds == sorted([GROUP, HOOK, PLACEMENT, PLACED_RESERVATION, TEMPLATE])
    place, _ = scene.only(PLACEMENT)
    name, reservation = scene.only(PLACED_RESERVATION)
    function = reservation.pop("ServiceToken")
    assert scene.template[function["Fn::GetAtt"][0]]["Type"] == "AWS::Lambda::Function"
    # A placement group has no Arn attribute.
    assert reservation == {
        "ServiceTimeout": "3600",
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 8,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": ZONE,
        "InstanceMatchCriteria": "targeted",
        "Tenancy": "default",
        **dates,
        "PlacementGroupArn": {
            "Fn::Sub": [
                "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Name}",
                {"Name": {"Ref": place}},
            ]
        },
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": _TAGS}],
        "OnIdle": on_idle.value,
    }
    assert _group(scene) == {
        **_plain(scene),
        "PlacementGroup": {"Ref": place},
        "CapacityReservationSpecification": _only_into({"Ref": name}),
    }
    assert {"InstanceMarketOptions", "CapacityReservationSpecification", "Placement"}.isdisjoint(scene.launch_data())
    assert scene.fleet.capacity_reservation is not None


def test_a_reservation_of_another_platform_says_so() -> None:
    scene = bought(
        capacity=Capacity.reservation(end=_END, instance_platform="Red Hat Enterprise Linux"), machine_image=OWN_IMAGE
    )
    assert scene.only(PLACED_RESERVATION)[1]["InstancePlatform"] == "Red Hat Enterprise Linux"


def test_a_reservation_for_nodes_that_work_alone_is_made_in_no_placement_group() -> None:
    scene = bought(capacity=Capacity.reservation(end=_END), placement=Placement.NONE)
    assert scene.kinds == sorted([GROUP, HOOK, RESERVATION, TEMPLATE])
    assert "PlacementGroupArn" not in scene.only(RESERVATION)[1]
    assert "PlacementGroup" not in _group(scene)


def test_a_reservation_has_the_tags_that_an_app_adds() -> None:
    stack = new_stack()
    scene = bought(stack, capacity=Capacity.reservation(end=_END))
    Tags.of(stack).add("team", "ml")
    assert scene.only(PLACED_RESERVATION)[1]["TagSpecifications"] == [
        {"ResourceType": "capacity-reservation", "Tags": [*_TAGS, {"Key": "team", "Value": "ml"}]}
    ]
    assert "Tags" not in scene.only(PLACED_RESERVATION)[1]


def test_a_reservation_of_a_count_that_is_not_known_yet_follows_it() -> None:
    stack = new_stack()
    count: Any = CfnParameter(stack, "Count", type="Number").value_as_number
    scene = bought(stack, capacity=Capacity.reservation(end=_END), count=count)
    assert scene.only(PLACED_RESERVATION)[1]["InstanceCount"] == {"Ref": "Count"}
    assert _group(scene)["MaxSize"] == {"Ref": "Count"}


@pytest.mark.parametrize(("place", "named"), [("rack", {"PlacementGroup": "rack"}), (None, {})])
def test_an_existing_reservation_is_named_with_its_own_placement_group_or_none(
    place: str | None, named: dict[str, str]
) -> None:
    scene = bought(capacity=Capacity.from_reservation(_ID, placement_group=place))
    assert scene.kinds == sorted([GROUP, HOOK, TEMPLATE])
    assert _group(scene) == {**_plain(scene), **named, "CapacityReservationSpecification": _only_into(_ID)}
    assert scene.fleet.placement_group_name == place
    assert {"InstanceMarketOptions", "CapacityReservationSpecification", "Placement"}.isdisjoint(scene.launch_data())


def test_a_block_is_named_in_the_launch_template_and_the_group_is_plain() -> None:
    scene = bought(capacity=Capacity.capacity_block(_ID))
    assert scene.kinds == sorted([GROUP, HOOK, TEMPLATE])
    assert _group(scene) == _plain(scene)
    data = scene.launch_data()
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": _ID}}
    assert "Placement" not in data


def _arn(reservation: str) -> dict[str, Any]:
    return {
        "Fn::Join": [
            "",
            [
                "arn:",
                {"Ref": "AWS::Partition"},
                ":ec2:",
                {"Ref": "AWS::Region"},
                ":",
                {"Ref": "AWS::AccountId"},
                f":capacity-reservation/{reservation}",
            ],
        ]
    }


@pytest.mark.parametrize(
    ("settings", "types", "arns"),
    [
        ({"reservations": [_ID]}, ["on-demand-capacity-reservation", "on-demand"], [_arn(_ID)]),
        (
            {"reservations": [_ID], "on_demand": False},
            ["on-demand-capacity-reservation"],
            [_arn(_ID)],
        ),
        ({"capacity_blocks": [_ID, _SHARED]}, ["capacity-block", "on-demand"], [_arn(_ID), _SHARED]),
        (
            {"capacity_blocks": [_ID], "reservations": [_SHARED]},
            ["on-demand-capacity-reservation", "capacity-block", "on-demand"],
            [_SHARED, _arn(_ID)],
        ),
    ],
)
def test_what_is_reserved_comes_first_by_way_of_one_resource_group(
    settings: dict[str, Any], types: list[str], arns: list[Any]
) -> None:
    scene = bought(capacity=Capacity.prioritized(**settings))
    assert scene.kinds == sorted([GROUP, HOOK, RESERVATION_GROUP, TEMPLATE])
    name, resource_group = scene.only(RESERVATION_GROUP)
    assert resource_group["Resources"] == arns
    group = _group(scene)
    distribution = group["MixedInstancesPolicy"]["InstancesDistribution"]
    assert distribution["DistributionSegments"] == [{"TargetCapacityTypes": types}]
    assert group["CapacityReservationSpecification"]["CapacityReservationTarget"] == {
        "CapacityReservationResourceGroupArns": [{"Fn::GetAtt": [name, "Arn"]}]
    }
    # The segments say what is bought; a market in the template makes it unfit for a mixed group.
    assert {"InstanceMarketOptions", "CapacityReservationSpecification", "Placement"}.isdisjoint(scene.launch_data())


def test_types_of_different_layouts_share_a_segment_in_the_user_s_order() -> None:
    scene = bought(
        capacity=Capacity.prioritized(reservations=[_ID], capacity_blocks=[_OTHER]),
        instance_types=["p5en.48xlarge", "p5.48xlarge", "p5e.48xlarge"],
    )
    first, second = scene.all(TEMPLATE)
    launch = _group(scene)["MixedInstancesPolicy"]["LaunchTemplate"]
    assert launch["LaunchTemplateSpecification"] == scene.newest(first)
    assert launch["Overrides"] == [
        {"InstanceType": "p5en.48xlarge"},
        {"InstanceType": "p5.48xlarge", "LaunchTemplateSpecification": scene.newest(second)},
        {"InstanceType": "p5e.48xlarge", "LaunchTemplateSpecification": scene.newest(second)},
    ]


# By the construct's id, of which CloudFormation's is made: ways to buy that share a group.
_OWNERS = {
    "AutoScalingGroup": [Capacity.on_demand()],
    "ReservationGroup": [
        Capacity.reservation(end=_END),
        Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE),
    ],
    "ExistingReservationGroup": [
        Capacity.from_reservation(_ID),
        Capacity.from_reservation(_OTHER, placement_group="rack", instance_count=8),
    ],
    "CapacityBlockGroup": [Capacity.capacity_block(_ID), Capacity.capacity_block(_OTHER, instance_count=8)],
    "SpotGroup": [Capacity.spot(), Capacity.spot(max_price=12.5)],
    "PrioritizedGroup": [
        Capacity.prioritized(reservations=[_ID]),
        Capacity.prioritized(reservations=[_ID], capacity_blocks=[_OTHER], on_demand=False),
    ],
}


def test_a_group_that_is_bought_in_another_way_is_another_and_one_that_is_bought_alike_stays() -> None:
    owners = [(owner, {"capacity": capacity}) for owner, capacities in _OWNERS.items() for capacity in capacities]
    for (owner, _), scene in zip(owners, bought_each([settings for _, settings in owners]), strict=True):
        assert re.sub(r"^Fleet\d{3}(\w+)[0-9A-F]{8}$", r"\1", scene.only(GROUP)[0]) == owner


_NAME = re.compile(r"reservations-[a-zA-Z0-9-]{1,115}")


def _resource_group_name(stack_name: str, cluster: str) -> str:
    stack = Stack(App(), "Test", stack_name=stack_name, env=Environment(region="us-east-1"))
    workers = NodeGroup(
        "w" * 63, instance_types=["p5.48xlarge"], count=8, capacity=Capacity.prioritized(reservations=[_ID])
    )
    TrainingCluster(stack, cluster, availability_zone=ZONE, node_groups=[workers], idle_policy=IdlePolicy.off())
    return str(only(stack, RESERVATION_GROUP)["Properties"]["Name"])


def test_the_name_of_a_resource_group_is_its_cluster_s_own_and_never_too_long() -> None:
    longest = "L" * 128
    names = [_resource_group_name(stack, cluster) for stack in ("a", "b", longest) for cluster in ("Pod", "P" * 200)]
    assert len(set(names)) == len(names)
    assert all(_NAME.fullmatch(name) for name in names)
    assert names[0].startswith("reservations-a-Pod-NodeGroups-www")


# Where nodes go, for each way to buy and each word of the user's. EC2 knows no placement group with a block.
_OWN, _RESERVED, _NONE = "a placement group of their own", "the reservation's placement group", "no placement group"
_ANYWHERE = {None: _NONE, Placement.CLUSTER: _OWN, Placement.NONE: _NONE}
_TOGETHER = {None: _OWN, Placement.CLUSTER: _OWN, Placement.NONE: _NONE}
_WITH_A_BLOCK = {None: _NONE, Placement.NONE: _NONE}


_WHERE: list[tuple[Capacity, dict[Placement | None, str]]] = [
    (Capacity.on_demand(), _TOGETHER),
    (Capacity.reservation(end=_END), _TOGETHER),
    (
        Capacity.from_reservation(_ID, placement_group="rack"),
        {None: _RESERVED, Placement.CLUSTER: _RESERVED, Placement.NONE: _NONE},
    ),
    (Capacity.from_reservation(_ID), _ANYWHERE),
    (Capacity.capacity_block(_ID), _WITH_A_BLOCK),
    (Capacity.spot(), _ANYWHERE),
    (Capacity.spot_fleet(), _ANYWHERE),
    (Capacity.prioritized(reservations=[_ID]), _ANYWHERE),
    (Capacity.prioritized(reservations=[_ID], capacity_blocks=[_OTHER]), _WITH_A_BLOCK),
]


def test_nodes_go_where_it_suits_what_is_bought_or_where_the_user_says() -> None:
    cases = [(capacity, *place) for capacity, places in _WHERE for place in places.items()]
    scenes = bought_each([{"capacity": capacity, "placement": placement} for capacity, placement, _ in cases])
    for (capacity, _, where), scene in zip(cases, scenes, strict=True):
        own = [{"Ref": name} for name in scene.all(PLACEMENT)]
        assert len(own) == (1 if where == _OWN else 0)
        places: dict[str, list[Any]] = {_OWN: own, _RESERVED: ["rack"], _NONE: []}
        named = places[where]
        if capacity.owned_by_spot_fleet:
            # A fleet has no placement group of its own to name: its launch templates do.
            said = [data["GroupName"] for data in [scene.launch_data().get("Placement")] if data]
        else:
            said = [place for place in [_group(scene).get("PlacementGroup")] if place]
            assert "Placement" not in scene.launch_data()
        assert said == named
        assert scene.stack.resolve([scene.fleet.placement_group_name] if named else []) == named
