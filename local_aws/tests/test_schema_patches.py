"""A change of AWS's schemas may only refuse more than AWS's own."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from local_aws.cloudformation import schemas

# The properties whose change replaces a resource: more of them refuse nothing, and fewer hide a replacement.
_SETS = ("createOnlyProperties",)
# The local AWS refuses the change itself: see `CustomResource.update`.
_REFUSED_INSTEAD = {"AWS::CloudFormation::CustomResource": ("/properties/ServiceToken",)}


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


@pytest.mark.parametrize("resource_type", sorted(schemas._PATCHES))
def test_a_patch_makes_a_schema_only_stricter(resource_type: str) -> None:
    before = _published(resource_type)
    after = copy.deepcopy(before)
    schemas._PATCHES[resource_type](after)
    assert after != before
    allowed = [f"/createOnlyProperties: {each}" for each in _REFUSED_INSTEAD.get(resource_type, ())]
    assert _looser(before, after) == allowed


def test_a_pattern_that_is_corrected_is_looser() -> None:
    before = _published("AWS::EC2::CapacityReservation")
    after = copy.deepcopy(before)
    prop = after["properties"]["PlacementGroupArn"]
    prop["pattern"] = prop["pattern"].replace("placement-group/^", "placement-group/")
    assert _looser(before, after) == ["/properties/PlacementGroupArn/pattern"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda schema: schema["properties"].pop("Tenancy"), "/properties/Tenancy"),
        (lambda schema: schema["required"].pop(), "/required: "),
        (lambda schema: schema["properties"].update(New={}), "/properties/New"),
        (lambda schema: schema.update(additionalProperties=True), "/additionalProperties"),
        (lambda schema: schema.update(patternProperties={".*": {}}), "/patternProperties"),
        (lambda schema: schema["properties"]["InstanceCount"].update(type=["integer", "string"]), "/properties/"),
        (lambda schema: schema["createOnlyProperties"].pop(), "/createOnlyProperties: "),
    ],
)
def test_each_way_to_loosen_a_schema_is_found(change: Any, place: str) -> None:
    before = _published("AWS::EC2::CapacityReservation")
    after = copy.deepcopy(before)
    change(after)
    (found,) = _looser(before, after)
    assert found.startswith(place)
