"""What comes of the order in which CloudFormation makes resources, where the template leaves it open."""

from typing import Any

import pytest

from local_aws_scene import Stacks, Template
from pcs_scene import pcs_cluster
from warm_scene import warm_nodes


def _created(stacks: Stacks, name: str) -> list[str]:
    events = stacks.api.describe_stack_events(StackName=name)["StackEvents"]
    return [each["LogicalResourceId"] for each in reversed(events) if each["ResourceStatus"] == "CREATE_COMPLETE"]


def test_a_lifecycle_hook_comes_after_all_that_does_not_depend_on_it(stacks: Stacks) -> None:
    template = warm_nodes()
    template["Resources"]["Topic"] = {"Type": "AWS::SNS::Topic"}
    order = _created(stacks, stacks.create(template))
    assert order.index("Topic") < order.index("Hook") < order.index("Warm")
    template["Resources"]["Topic"]["DependsOn"] = "Hook"
    order = _created(stacks, stacks.create(template))
    assert order.index("Hook") < order.index("Topic")


def _deliveries(**changes: Any) -> Template:
    """Two kinds of logs of one cluster to one log group; `changes` are of the second delivery's properties."""
    template = pcs_cluster()
    resources = template["Resources"]
    for name in ("Queue", "Nodes", "Launch", "NodeRole", "NodeProfile"):
        del resources[name]
    more = {"Fn::Sub": "${AWS::StackName}-2"}
    for name, properties in (
        ("Source", {"Name": more, "LogType": "PCS_SCHEDULER_LOGS"}),
        ("Destination", {"Name": more}),
        ("Delivery", {"DeliverySourceName": more, "DeliveryDestinationArn": {"Fn::GetAtt": ["Destination2", "Arn"]}}),
    ):
        original = resources[name]
        resources[f"{name}2"] = {**original, "Properties": {**original["Properties"], **properties}}
    resources["Delivery2"]["DependsOn"] = ["Source", "Source2"]
    resources["Delivery2"]["Properties"] |= changes
    return template


_CONFLICT = "Requested resource is currently being updated. Please try again later."


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"DeliverySourceName": {"Ref": "AWS::StackName"}},
        {"DeliveryDestinationArn": {"Fn::GetAtt": ["Destination", "Arn"]}},
    ],
    ids=["one log group", "one source", "one destination"],
)
def test_deliveries_that_share_an_end_are_refused_when_made_at_the_same_time(
    stacks: Stacks, changes: dict[str, Any]
) -> None:
    refused = stacks.create(_deliveries(**changes))
    assert any(_CONFLICT in reason for reason in stacks.reasons(refused).values()), stacks.reasons(refused)


def test_deliveries_are_made_one_after_the_other_or_to_different_ends(stacks: Stacks) -> None:
    template = _deliveries()
    template["Resources"]["Delivery2"]["DependsOn"] = ["Source2", "Delivery"]
    assert stacks.reasons(stacks.create(template)) == {}
    apart = _deliveries()
    apart["Resources"]["Logs2"] = {"Type": "AWS::Logs::LogGroup"}
    apart["Resources"]["Destination2"]["Properties"]["DestinationResourceArn"] = {"Fn::GetAtt": ["Logs2", "Arn"]}
    assert stacks.reasons(stacks.create(apart)) == {}
