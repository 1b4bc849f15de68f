"""What changes of a template mean for a resource, told by its schema's create-only paths."""

from typing import Any

import pytest

from local_aws.cloudformation import schemas
from local_aws_scene import Stacks, Template
from spot_scene import fleet_config, spot_fleet

PATHS: list[tuple[tuple[str, ...], Any]] = [
    (("Name",), "a"),
    (("Config", "Kind"), "b"),
    (("Config", "Nothing"), None),
    (("Name", "Nothing"), None),
    (("Items", "*", "Id"), [1, 2]),
    (("Items", "*", "Nothing"), [None, None]),
    (("Config", "*", "Id"), None),
]


@pytest.mark.parametrize(("path", "value"), PATHS)
def test_a_value_is_found_below_objects_and_lists(path: tuple[str, ...], value: Any) -> None:
    properties = {"Name": "a", "Config": {"Kind": "b"}, "Items": [{"Id": 1}, {"Id": 2}]}
    assert schemas.value_at(properties, path) == value


def _config_by_condition(template: Template) -> None:
    fleet = template["Resources"]["Fleet"]["Properties"]
    template["Conditions"] = {"Always": {"Fn::Equals": ["a", "a"]}}
    fleet["SpotFleetRequestConfigData"] = {"Fn::If": ["Always", fleet_config(template), {"Ref": "AWS::NoValue"}]}


CHANGES: list[tuple[str, Any, str]] = [
    ("the target", lambda template: fleet_config(template).update(TargetCapacity=1), "False"),
    (
        "the policy",
        lambda template: fleet_config(template).update(ExcessCapacityTerminationPolicy="default"),
        "False",
    ),
    (
        "a nested create-only property",
        lambda template: fleet_config(template).update(AllocationStrategy="lowestPrice"),
        "True",
    ),
    (
        "one that a function gives",
        lambda template: fleet_config(template).update(SpotPrice={"Fn::Sub": "1.5"}),
        "Conditional",
    ),
    ("one below what a function gives", _config_by_condition, "Conditional"),
]


@pytest.mark.parametrize(("change", "replacement"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_set_tells_nested_create_only_properties_apart(
    stacks: Stacks, change: Any, replacement: str
) -> None:
    name = stacks.create(spot_fleet())
    template = spot_fleet()
    change(template)
    assert stacks.replacements(name, template) == {"Fleet": replacement}


def test_a_condition_above_that_changes_nothing_replaces_nothing(stacks: Stacks) -> None:
    name = stacks.create(spot_fleet())
    before = stacks.physical_ids(name)
    template = spot_fleet()
    _config_by_condition(template)
    stacks.update(name, template)
    assert stacks.reasons(name) == {}
    assert stacks.physical_ids(name) == before
