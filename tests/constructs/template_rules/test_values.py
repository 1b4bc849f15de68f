"""What can be read from a template before it is deployed, and what cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules import RULES, broken_rules
from cdk_training_cluster.template_rules.values import (
    UNKNOWN,
    flag,
    is_given,
    is_intrinsic,
    items,
    last_of_arn,
    number,
    target_of,
    text,
    value_at,
)

NAME = {"Ref": "Group"}


@pytest.mark.parametrize(
    ("properties", "path", "value"),
    [
        ({"A": {"B": [1, {"C": 2}]}}, "A.B.1.C", 2),
        ({"A": {"B": [1]}}, "A.B.1", None),
        ({"A": "text"}, "A.0", None),
        ({"A": None}, "A.B", None),
        ({"A": {"Ref": "Parameter"}}, "A", {"Ref": "Parameter"}),
        ({"A": {"Ref": "Parameter"}}, "A.B", UNKNOWN),
        ({"A": {"Fn::If": ["C", 1, 2]}}, "A", UNKNOWN),
        ({"A": {"Fn::If": ["C", {"B": 1}, {}]}}, "A.B", UNKNOWN),
        ({"A": [{"Fn::If": ["C", {"B": 1}, {}]}]}, "A.0.B", UNKNOWN),
        ({"A": {"Ref": "AWS::NoValue"}}, "A", None),
        ({"Ref": "a property of this name", "A": 1}, "A", 1),
    ],
)
def test_a_value_is_read_unless_a_function_decides(properties: Any, path: str, value: Any) -> None:
    assert value_at(properties, path) == value


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"Ref": "A"}, True),
        ({"Fn::GetAtt": ["A", "Arn"]}, True),
        ({"Condition": "C"}, True),
        ({"Key": "Ref"}, False),
        ({"Ref": "A", "B": 1}, False),
        ({}, False),
        ("Ref", False),
    ],
)
def test_a_function_is_told_from_a_structure(value: Any, is_one: bool) -> None:
    assert is_intrinsic(value) is is_one


@pytest.mark.parametrize(
    ("value", "whole"),
    [(4, 4), ("4", 4), (-1, -1), (True, None), ("four", None), ({"Ref": "A"}, None), (None, None), (UNKNOWN, None)],
)
def test_a_number_may_be_spelled_as_text(value: Any, whole: int | None) -> None:
    assert number(value) == whole


@pytest.mark.parametrize(
    ("value", "yes"), [(True, True), ("true", True), ("False", False), ("", None), (1, None), ({"Ref": "A"}, None)]
)
def test_a_flag_may_be_spelled_as_text(value: Any, yes: bool | None) -> None:
    assert flag(value) is yes


def test_what_is_no_text_and_no_list_is_none() -> None:
    assert (text("a"), text({"Ref": "A"}), text(UNKNOWN)) == ("a", None, None)
    assert (items([1]), items({"Ref": "A"}), items("ab"), items(None)) == ([1], (), (), ())
    assert (is_given("a"), is_given({"Ref": "A"}), is_given(UNKNOWN), is_given(None)) == (True, True, False, False)


@pytest.mark.parametrize(
    ("value", "logical_id"),
    [
        ({"Ref": "A"}, "A"),
        ({"Fn::GetAtt": ["A", "Arn"]}, "A"),
        ({"Fn::GetAtt": "A.Arn"}, "A"),
        ({"Fn::GetAtt": []}, None),
        ({"Fn::ImportValue": "A"}, None),
        ({"Ref": ["A"]}, None),
        ("A", None),
    ],
)
def test_a_reference_within_the_template_is_followed(value: Any, logical_id: str | None) -> None:
    assert target_of(value) == logical_id


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:ec2:us-east-1:1:placement-group/mine", "mine"),
        ("arn:aws:ec2:us-east-1:1:instance/i-1", None),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":1:placement-group/", NAME]]}, NAME),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":1:placement-group/mine"]]}, "mine"),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":1:other/", NAME]]}, None),
        ({"Fn::Join": ["-", ["placement-group/", NAME]]}, None),
        ({"Fn::Join": ["", [NAME]]}, None),
        ({"Fn::Join": ["", []]}, None),
        ({"Fn::Join": ["", NAME]}, None),
        ({"Fn::Sub": "arn:${AWS::Partition}:ec2:r:1:placement-group/${Group}"}, NAME),
        ({"Fn::Sub": "arn:${AWS::Partition}:ec2:r:1:placement-group/mine"}, "mine"),
        ({"Fn::Sub": ["arn:aws:ec2:r:1:placement-group/${Name}", {"Name": NAME}]}, NAME),
        ({"Fn::Sub": ["arn:aws:ec2:r:1:placement-group/${Group}", {"Name": "other"}]}, NAME),
        ({"Fn::Sub": "arn:aws:ec2:r:1:placement-group/${A}-${B}"}, None),
        ({"Fn::Sub": "arn:aws:ec2:r:1:placement-group/a-${B}"}, None),
        ({"Fn::Sub": {}}, None),
        ({"Ref": "Arn"}, None),
        ({"Fn::If": ["C", "placement-group/a", "placement-group/b"]}, None),
        (None, None),
    ],
)
def test_the_name_at_the_end_of_an_arn_is_found(arn: Any, name: Any) -> None:
    assert last_of_arn(arn, "placement-group/") == name


_ATTRIBUTES = [
    "AutoScalingGroupName",
    "CapacityReservationSpecification",
    "CapacityReservationTarget",
    "Configuration",
    "DistributionSegments",
    "InstancesDistribution",
    "LaunchTemplate",
    "LaunchTemplateConfigs",
    "LaunchTemplateData",
    "LaunchTemplateId",
    "MixedInstancesPolicy",
    "NetworkInterfaces",
    "Overrides",
    "Placement",
    "PlacementGroup",
    "Ref",
    "SpotFleetRequestConfigData",
    "TagSpecifications",
    "Tags",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["A", "B", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_ATTRIBUTES), inner, max_size=4),
    max_leaves=12,
)
_OURS = [{"Key": NODE_GROUP_TAG}]


@given(_JSON, _JSON, _JSON)
def test_no_shape_of_a_template_makes_a_rule_fail(group: Any, fleet: Any, other: Any) -> None:
    properties = {**group, "Tags": _OURS} if isinstance(group, dict) else {"Tags": _OURS}
    resources = {
        "A": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties},
        "B": {"Type": "AWS::EC2::SpotFleet", "Properties": {"Tags": _OURS, "SpotFleetRequestConfigData": fleet}},
        "x": {"Type": "AWS::EC2::LaunchTemplate", "Properties": other},
        "y": other,
    }
    ids = {rule.id for rule in RULES}
    assert {rule.id for rule, _ in broken_rules({"Resources": resources})} <= ids


@pytest.mark.parametrize("template", [{}, {"Resources": None}, {"Resources": {"A": None}}])
def test_a_template_with_nothing_of_ours_breaks_nothing(template: Any) -> None:
    assert list(broken_rules(template)) == []
