"""What each rule of templates finds, and what it leaves alone: near misses, and what only the deployment knows."""

import copy
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template as Synthesized
from hypothesis import given
from hypothesis import strategies as st

import cdk_training_cluster
from batch_template import batch_template
from capacity_templates import RESERVATION_ARN
from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup, OnIdle, TrainingCluster, WarmPool
from cdk_training_cluster.validation.templates.rules import RULES, TemplateRule, broken_rules
from cluster_contract.tags import NODE_GROUP_TAG
from eks_template import eks_template
from pcs_scene import pcs_cluster
from silent_costs import (
    COSTLY,
    COUNT,
    CRITERIA,
    IDS,
    IGNORE_SIZES,
    IN_SUBNET,
    PREFERENCE,
    SHARED,
    SPECIFICATION,
    TARGET_CAPACITY,
    Costly,
    changed,
    costly_name,
)
from wrong_hyperpod import hyperpod_template

PARAMETER = {"Ref": "Parameter"}
CONDITION = {"Fn::If": ["Production", "a", {"Ref": "AWS::NoValue"}]}
_LAUNCH = "Launch.Properties.LaunchTemplateData"
_POOL = {
    "Pool": {
        "Type": "AWS::ResourceGroups::Group",
        "Properties": {"Resources": [{"Fn::Sub": f"{RESERVATION_ARN}${{Reserved}}"}]},
    },
    SPECIFICATION: {
        "CapacityReservationPreference": "default",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArns": [{"Fn::GetAtt": ["Pool", "Arn"]}]},
    },
    "Nodes.Properties.MixedInstancesPolicy.InstancesDistribution.DistributionSegments": [
        {"TargetCapacityTypes": ["on-demand-capacity-reservation", "on-demand"]}
    ],
}

# What AWS allows without a surprise, near to what costs, and what only the deployment knows.
# As the library makes a reservation in a placement group.
_ARN = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Placement}"
_PLACED: Mapping[str, Any] = {
    "Reserved.Type": "Custom::CapacityReservation",
    "Reserved.Properties.PlacementGroupArn": {"Fn::Sub": _ARN},
    "Nodes.Properties.PlacementGroup": {"Ref": "Placement"},
}

RIGHT: list[tuple[str, Mapping[str, Any]]] = [
    ("warm", {"Nodes.Properties.DesiredCapacity": "0"}),
    ("warm", {"Nodes.Properties.MinSize": PARAMETER}),
    ("warm", {"Nodes.UpdatePolicy": CONDITION}),
    ("warm", {IGNORE_SIZES: PARAMETER}),
    ("warm", {IGNORE_SIZES: "true"}),
    ("warm", {"Warm.Properties.MaxGroupPreparedCapacity": PARAMETER}),
    ("warm", {"Warm.Properties.AutoScalingGroupName": "another", "Warm.Properties.MaxGroupPreparedCapacity": None}),
    ("warm", {"Nodes.Properties.Tags": [{"Key": "somebody-elses"}], "Nodes.Properties.MinSize": "1"}),
    ("fleet", {TARGET_CAPACITY: PARAMETER}),
    ("reserved", {PREFERENCE: PARAMETER}),
    ("reserved", {PREFERENCE: "default", f"{_LAUNCH}.InstanceMarketOptions": {"MarketType": "capacity-block"}}),
    ("reserved", _POOL),
    # A reservation that a launch template or another stack names, or that is not the cluster's own
    (
        "reserved",
        {
            SPECIFICATION: None,
            f"{_LAUNCH}.CapacityReservationSpecification.CapacityReservationTarget": {
                "CapacityReservationId": {"Ref": "Reserved"}
            },
        },
    ),
    (
        "reserved",
        {
            SPECIFICATION: None,
            "Inner": {"Type": "AWS::CloudFormation::Stack", "Properties": {"A": {"Ref": "Reserved"}}},
        },
    ),
    ("reserved", {SPECIFICATION: None, "Reserved.Properties.TagSpecifications": None}),
    ("reserved", {IDS: CONDITION | {"Fn::If": ["A", [{"Ref": "Reserved"}], []]}}),
    ("reserved", {CRITERIA: PARAMETER}),
    # Reservations that match
    ("reserved", {**SHARED, COUNT: 5}),
    ("reserved", {COUNT: PARAMETER}),
    ("reserved", {COUNT: 16, "Nodes.Properties.MaxSize": PARAMETER}),
    ("reserved", {COUNT: 16, IDS: CONDITION | {"Fn::If": ["A", [{"Ref": "Reserved"}], []]}}),
    ("reserved", {COUNT: 1, IDS: [{"Ref": "Reserved"}, "cr-0a1b2c3d4e5f67890"]}),
    ("reserved", {COUNT: 1, **_POOL}),
    ("reserved", {**IN_SUBNET}),
    ("reserved", {**IN_SUBNET, "Reserved.Properties.AvailabilityZone": PARAMETER}),
    ("reserved", {"Reserved.Properties.InstanceType": "p5.48xlarge", f"{_LAUNCH}.InstanceType": "p5.48xlarge"}),
    ("reserved", {"Reserved.Properties.Tenancy": "dedicated", f"{_LAUNCH}.Placement.Tenancy": "dedicated"}),
    ("reserved", {"Reserved.Properties.Tenancy": PARAMETER}),
    ("reserved", _PLACED),
    ("reserved", {**_PLACED, "Nodes.Properties.PlacementGroup": "mine", "Placement.Properties.GroupName": "mine"}),
    ("reserved", {**_PLACED, "Nodes.Properties.PlacementGroup": "mine", "Placement.Properties.GroupName": PARAMETER}),
    ("reserved", {"Nodes.Properties.PlacementGroup": CONDITION}),
]


def found(template: Any, rules: Sequence[TemplateRule] = RULES, **more: Any) -> dict[str, list[str]]:
    return {
        rule.id: [f"{place.logical_id}.{place.location}" for place in places]
        for rule, places in broken_rules(template, rules, **more)
    }


def expected(row: Costly) -> dict[str, list[str]]:
    return {row.rule: [row.found or next(iter(row.changes))]}


@pytest.mark.parametrize("row", COSTLY, ids=costly_name)
def test_what_costs_silently_breaks_its_rule_in_its_place_and_no_other(row: Costly) -> None:
    assert found(changed(row.kind, row.changes)) == expected(row)


@pytest.mark.parametrize(("kind", "changes"), [("warm", {}), ("reserved", {}), ("fleet", {}), *RIGHT])
def test_what_is_right_or_not_known_breaks_no_rule(kind: str, changes: Mapping[str, Any]) -> None:
    assert found(changed(kind, changes)) == {}


def test_a_reservation_in_another_placement_group_than_its_nodes_is_unusable() -> None:
    other = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
    template = changed("reserved", {**_PLACED, "Other": other, "Nodes.Properties.PlacementGroup": {"Ref": "Other"}})
    assert found(template) == {"reservationUnusable": ["Reserved.Properties.PlacementGroupArn"]}


def test_what_the_library_makes_breaks_no_rule() -> None:
    bought = {
        "plain": Capacity.on_demand(),
        "reserved": Capacity.reservation(end=UNTIL_CANCELLED),
        "block": Capacity.capacity_block("cr-0a1b2c3d4e5f67890"),
        "spot": Capacity.spot(),
        "fleet": Capacity.spot_fleet(),
        "several": Capacity.prioritized(reservations=["cr-0a1b2c3d4e5f67891"]),
    }
    stack = Stack(App(), "Test", env=Environment(region="us-east-1"))
    groups = [NodeGroup(name, instance_types=["p5.48xlarge"], count=1, capacity=one) for name, one in bought.items()]
    warm = NodeGroup(
        "warm", instance_types=["p5.48xlarge"], count=2, capacity=Capacity.on_demand(), warm_pool=WarmPool(size=1)
    )
    released = Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)
    lowered = NodeGroup("released", instance_types=["p5.48xlarge"], count=8, capacity=released)
    TrainingCluster(stack, "Cluster", availability_zone="us-east-1b", node_groups=[*groups, warm, lowered])
    template = Synthesized.from_stack(stack).to_json()
    assert found(template) == {}
    owners = [each for each in template["Resources"].values() if each["Type"] == "AWS::AutoScaling::AutoScalingGroup"]
    for owner in owners:
        owner["Properties"]["MinSize"] = "1"
    assert len(found(template)["groupSize"]) == len(owners) == 7


def test_a_template_is_too_large_above_a_million_bytes() -> None:
    template = changed("warm", {})
    assert found(template, size=1_000_000) == {}
    assert found(template, size=1_000_001) == {"templateSize": ["Nodes.Properties"]}


# Those of orchestrators are taken away in the tests of the local AWS, which refuses the same templates.
_ORCHESTRATORS = ("batch", "eks", "hyperpod", "pcs")
_OWN = [rule for rule in RULES if rule.id != "templateSize" and not rule.id.startswith(_ORCHESTRATORS)]


@pytest.mark.parametrize("taken", _OWN, ids=lambda rule: rule.id)
def test_without_any_one_rule_something_costly_is_not_found(taken: TemplateRule) -> None:
    others = [rule for rule in RULES if rule is not taken]
    missed = {row.rule for row in COSTLY if found(changed(row.kind, row.changes), others) != expected(row)}
    assert missed == {taken.id}


def test_every_rule_has_an_id_of_its_own_and_names_the_document_that_states_it() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z][a-zA-Z]+", rule.id)
        assert re.fullmatch(r"https://docs\.aws\.amazon\.com/[\w/.-]+\.html", rule.source)


_NAMES = [
    "CapacityReservationSpecification",
    "LaunchTemplate",
    "Properties",
    "Ref",
    "Fn::GetAtt",
    "Resources",
    "Tags",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["A", "B", "x", "${x}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)
_OURS = [{"Key": NODE_GROUP_TAG}]


@given(_JSON, _JSON, _JSON)
def test_no_shape_of_a_template_makes_a_rule_fail(group: Any, fleet: Any, other: Any) -> None:
    properties = {**group, "Tags": _OURS} if isinstance(group, dict) else {"Tags": _OURS}
    resources = {
        "A": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties, "UpdatePolicy": other},
        "B": {"Type": "AWS::EC2::SpotFleet", "Properties": {"Tags": _OURS, "SpotFleetRequestConfigData": fleet}},
        "x": {"Type": "AWS::ResourceGroups::Group", "Properties": other},
        "C": {"Type": "AWS::EC2::CapacityReservation", "Properties": {"Tags": _OURS, "PlacementGroupArn": other}},
        "y": other,
    }
    assert found({"Resources": resources, "Outputs": other}).keys() <= {rule.id for rule in RULES}


@pytest.mark.parametrize("template", [{}, {"Resources": None}, {"Resources": {"A": None}}])
def test_a_template_with_nothing_of_ours_breaks_nothing(template: Any) -> None:
    assert found(template) == {}


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if not str(key).startswith(("Fn::", "Ref")):
            yield (*above, key)
            yield from _paths(each, (*above, key))


@pytest.mark.parametrize("make", [batch_template, eks_template, hyperpod_template, pcs_cluster])
def test_what_only_the_deployment_knows_breaks_no_rule_of_an_orchestrator(make: Callable[[], Any]) -> None:
    for path in _paths({name: each.get("Properties") for name, each in make()["Resources"].items()}):
        # A policy is read as text.
        if len(path) > 1 and "Policies" not in path:
            template = copy.deepcopy(make())
            place = template["Resources"][path[0]]["Properties"]
            for key in path[1:-1]:
                place = place[key]
            place[path[-1]] = PARAMETER
            assert found(template) == {}, path


def test_the_import_of_the_library_alone_knows_the_rules_of_every_orchestrator() -> None:
    files = (Path(cdk_training_cluster.__file__).parent / "orchestrators").glob("*/template_rules.py")
    written = {name for path in files for name in re.findall(r'\bid="(\w+)"', path.read_text())}
    prints = "from cdk_training_cluster.validation.templates.rules import RULES; print(*(rule.id for rule in RULES))"
    known = subprocess.run([sys.executable, "-c", prints], capture_output=True, text=True, check=True).stdout
    assert written - set(known.split()) == set()
