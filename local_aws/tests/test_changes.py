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


def test_a_condition_above_that_changes_nothing_replaces_nothing(stacks: Stacks) -> None:
    name = stacks.create(spot_fleet())
    before = stacks.physical_ids(name)
    template = spot_fleet()
    _config_by_condition(template)
    stacks.update(name, template)
    assert stacks.reasons(name) == {}
    assert stacks.physical_ids(name) == before
