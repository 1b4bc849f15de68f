"""What the local AWS makes of AWS's schemas may only refuse more than AWS's own."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from local_aws.cloudformation import schemas
from local_aws.cloudformation.resources import HANDLERS

# The properties whose change replaces a resource: more of them refuse nothing, and fewer hide a replacement.
_SETS = ("createOnlyProperties",)
# The local AWS refuses the change itself: see `CustomResource.update`.
_REFUSED_INSTEAD = {"AWS::CloudFormation::CustomResource": ["/createOnlyProperties: /properties/ServiceToken"]}
# What the check of properties demands of each, where a schema does not say it.
_OBJECT = {"type": "object"}


def _published(resource_type: str) -> dict[str, Any]:
    file = schemas.directory() / "resources" / f"{schemas._files()[resource_type]}.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def _looser(before: Any, after: Any, place: str = "") -> list[str]:
    """Return the places of a schema that take, after a change, what they refused before."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        gone = [f"{place}/{key}" for key in before if key not in after]
        # A property or definition that is added to a closed object is taken from then on.
        is_closed = place.endswith(("properties", "definitions", "patternProperties"))
        new = [f"{place}/{key}" for key in after if key not in before and (is_closed or key == "patternProperties")]
        kept = [each for key in before if key in after for each in _looser(before[key], after[key], f"{place}/{key}")]
        return gone + new + kept
    if place.rpartition("/")[2] in (*_SETS, "required"):
        return [f"{place}: {each}" for each in before if each not in after]
    if place.rpartition("/")[2] == "enum":
        return [f"{place}: {each}" for each in after if each not in before]
    return [] if before == after else [place]


@pytest.mark.parametrize("resource_type", sorted(HANDLERS))
def test_properties_are_checked_against_a_schema_that_is_at_least_as_strict_as_the_published_one(
    resource_type: str,
) -> None:
    published = _published(resource_type)
    # Both what describes a resource and what its properties are checked against.
    for used in (schemas.schema_of(resource_type), schemas._validator(resource_type).schema):
        assert isinstance(used, Mapping)
        assert _looser({**_OBJECT, **published}, {**_OBJECT, **used}) == _REFUSED_INSTEAD.get(resource_type, [])


@pytest.mark.parametrize("resource_type", sorted(schemas._PATCHES))
def test_each_patch_changes_its_schema(resource_type: str) -> None:
    assert schemas.schema_of(resource_type) != _published(resource_type)


def test_a_pattern_that_is_corrected_is_looser() -> None:
    before = _published("AWS::EC2::CapacityReservation")
    after = copy.deepcopy(before)
    prop = after["properties"]["PlacementGroupArn"]
    prop["pattern"] = prop["pattern"].replace("placement-group/^", "placement-group/")
    assert _looser(before, after) == ["/properties/PlacementGroupArn/pattern"]


_RESERVATION, _FUNCTION, _GROUP = "AWS::EC2::CapacityReservation", "AWS::Lambda::Function", "AWS::EKS::Nodegroup"


@pytest.mark.parametrize(
    ("resource_type", "change", "place"),
    [
        (_RESERVATION, lambda schema: schema["properties"].pop("Tenancy"), "/properties/Tenancy"),
        (_RESERVATION, lambda schema: schema["required"].pop(), "/required: "),
        (_RESERVATION, lambda schema: schema.pop("required"), "/required"),
        (_RESERVATION, lambda schema: schema["properties"].update(New={}), "/properties/New"),
        (_RESERVATION, lambda schema: schema.update(additionalProperties=True), "/additionalProperties"),
        (_RESERVATION, lambda schema: schema.update(patternProperties={".*": {}}), "/patternProperties"),
        (
            _RESERVATION,
            lambda schema: schema["properties"]["InstanceCount"].update(type=["integer", "string"]),
            "/properties/InstanceCount/type",
        ),
        (_RESERVATION, lambda schema: schema["createOnlyProperties"].pop(), "/createOnlyProperties: "),
        (
            _FUNCTION,
            lambda schema: schema["properties"]["PackageType"]["enum"].append("Tar"),
            "/properties/PackageType/enum: Tar",
        ),
        (
            _FUNCTION,
            lambda schema: schema["properties"]["Description"].pop("maxLength"),
            "/properties/Description/maxLength",
        ),
        (
            _FUNCTION,
            lambda schema: schema["properties"]["Description"].update(maxLength=10_000),
            "/properties/Description/maxLength",
        ),
        (
            _FUNCTION,
            lambda schema: schema["properties"]["Handler"].update(pattern=".*"),
            "/properties/Handler/pattern",
        ),
        (
            _GROUP,
            lambda schema: schema["definitions"]["ScalingConfig"]["properties"]["MaxSize"].pop("minimum"),
            "/definitions/ScalingConfig/properties/MaxSize/minimum",
        ),
    ],
)
def test_each_way_to_loosen_a_schema_is_found(
    resource_type: str, change: Callable[[dict[str, Any]], object], place: str
) -> None:
    before = _published(resource_type)
    after = copy.deepcopy(before)
    change(after)
    (found,) = _looser(before, after)
    assert found.startswith(place)


@pytest.mark.parametrize(("key", "taken"), [("équipe 2", True), ("a\tb", False), ("a\nb", False), ("a*", False)])
def test_keys_match_the_unicode_classes_of_a_pattern(key: str, taken: bool) -> None:
    # `\p{Z}` has spaces, and no control characters.
    refusal = schemas.check("AWS::SSM::Parameter", "P", {"Type": "String", "Value": "x", "Tags": {key: "llama"}})[1]
    expected = (
        f"Properties validation failed for resource P with message:\n#/Tags: extraneous key [{key}] is not permitted"
    )
    assert refusal == (None if taken else expected)
