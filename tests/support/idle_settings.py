"""The settings of the idle function as a stack deploys them."""

from aws_cdk import Stack
from aws_cdk.assertions import Template

from cluster_contract.idle import IdleFunctionSettings
from policy_evaluator import resolve

FLEET = "sfr-73fbd2ce-aa30-494c-8788-1cee4EXAMPLE"


def written(stack: Stack) -> str:
    """Return the idle function's settings as they are deployed, with the ids of fleets put in."""
    found = Template.from_stack(stack).to_json()["Resources"]
    (function,) = (
        each
        for each in found.values()
        if each["Type"] == "AWS::Lambda::Function" and each["Properties"]["Handler"].startswith("cluster_idle.")
    )
    ids = {name: FLEET for name, each in found.items() if each["Type"] == "AWS::EC2::SpotFleet"}
    return str(resolve(function["Properties"]["Environment"]["Variables"]["CLUSTER_IDLE_SETTINGS"], ids))


def read(stack: Stack) -> IdleFunctionSettings:
    """Return the idle function's settings as the function reads them."""
    return IdleFunctionSettings.from_environment({"CLUSTER_IDLE_SETTINGS": written(stack), "AWS_REGION": "us-east-1"})
