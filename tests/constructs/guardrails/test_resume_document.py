"""The runbook by which people bring stopped node groups back."""

import json
import re
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from cdk_training_cluster import ClusterPower, ResumeDocument
from cdk_training_cluster.guardrails.power import PowerGroup
from cluster_contract.power import PowerFunctionSettings
from cluster_power.callers import Action, Caller
from cluster_power.commands import parse_command
from synthesis import new_stack, only, resources

_NAMES = ("workers", "extras")


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    power = ClusterPower(
        stack,
        "Power",
        cluster_name="pod",
        groups={name: PowerGroup(count=8) for name in _NAMES},
        alert_topic=sns.Topic(stack, "Alerts"),
    )
    resume = ResumeDocument(stack, "Resume", cluster_name="pod", node_groups=_NAMES, power=power)
    resume.grant_start(iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal()))
    return stack


def content(stack: Stack) -> dict[str, Any]:
    document = only(stack, "AWS::SSM::Document", {"DocumentType": "Automation", "DocumentFormat": "JSON"})
    return dict(document["Properties"]["Content"])


def test_a_change_makes_a_version_of_the_same_document(stack: Stack) -> None:
    properties = only(stack, "AWS::SSM::Document")["Properties"]
    assert properties["UpdateMethod"] == "NewVersion"
    assert "Name" not in properties


def test_it_runs_under_a_role_that_only_it_can_take_and_that_only_starts(stack: Stack) -> None:
    runbook = content(stack)
    assert runbook["schemaVersion"] == "0.3"
    ((role, made),) = ((name, one) for name, one in resources(stack, "AWS::IAM::Role").items() if "Resume" in name)
    assert runbook["assumeRole"] == {"Fn::GetAtt": [role, "Arn"]}
    (trust,) = made["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "ssm.amazonaws.com"}
    assert sorted(trust["Condition"]) == ["ArnLike", "StringEquals"]
    (statement,) = only(stack, "AWS::IAM::Policy", {"Roles": [{"Ref": role}]})["Properties"]["PolicyDocument"][
        "Statement"
    ]
    (alias,) = resources(stack, "AWS::Lambda::Alias", {"Name": "start"})
    assert (statement["Action"], statement["Resource"]) == ("lambda:InvokeFunction", {"Ref": alias})


def test_without_parameters_it_starts_everything_and_with_them_what_there_is(stack: Stack) -> None:
    groups = content(stack)["parameters"]["NodeGroups"]
    assert (groups["type"], groups["default"], groups["allowedValues"]) == ("StringList", [*_NAMES], [*_NAMES])


def test_the_power_function_understands_what_it_is_asked(stack: Stack) -> None:
    runbook = content(stack)
    (step,) = runbook["mainSteps"]
    assert step["action"] == "aws:invokeLambdaFunction"
    (power,) = resources(stack, "AWS::Lambda::Function")
    assert (step["inputs"]["FunctionName"], step["inputs"]["Qualifier"]) == ({"Ref": power}, "start")
    values = {
        "{{ NodeGroups }}": runbook["parameters"]["NodeGroups"]["default"],
        "{{ Reason }}": runbook["parameters"]["Reason"]["default"],
        "{{ automation:EXECUTION_ID }}": "0" * 36,
    }
    event = {key: values.get(value, value) for key, value in step["inputs"]["InputPayload"].items()}
    settings = {"cluster": "pod", "groups": {name: {"count": 8} for name in _NAMES}}
    known = PowerFunctionSettings.from_environment({"CLUSTER_POWER_SETTINGS": json.dumps(settings)})
    order = parse_command(event, known, Caller.of("arn:aws:lambda:us-east-1:111122223333:function:power:start", "1"))
    assert (order.action, order.node_groups, order.reason) == (
        Action.START,
        tuple(sorted(_NAMES)),
        "no reason given",
    )
    assert order.automation_execution_id == "0" * 36


@pytest.mark.parametrize(
    "reason", ["next run, at 8:00", "ticket ML-12 (urgent)", 'a "quote"', "it's", "{{x}}", "", "a\\n"]
)
def test_no_reason_ends_the_text_that_it_is_put_into(stack: Stack, reason: str) -> None:
    pattern = content(stack)["parameters"]["Reason"]["allowedPattern"]
    assert bool(re.search(pattern, reason)) is (reason == "next run, at 8:00")


def test_who_may_start_it_may_do_nothing_else(stack: Stack) -> None:
    (document,) = resources(stack, "AWS::SSM::Document")
    (role,) = (name for name in resources(stack, "AWS::IAM::Role") if name.startswith("Operators"))
    (passed,) = (name for name in resources(stack, "AWS::IAM::Role") if name.startswith("Resume"))
    policy = only(stack, "AWS::IAM::Policy", {"Roles": [{"Ref": role}]})
    ours = ["arn:", {"Ref": "AWS::Partition"}, ":ssm:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}]
    assert [
        (statement["Action"], statement["Resource"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ] == [
        (
            "ssm:StartAutomationExecution",
            [
                {"Fn::Join": ["", [*ours, ":document/", {"Ref": document}]]},
                {"Fn::Join": ["", [*ours, ":automation-execution/*"]]},
            ],
        ),
        ("ssm:GetAutomationExecution", {"Fn::Join": ["", [*ours, ":automation-execution/*"]]}),
        ("iam:PassRole", {"Fn::GetAtt": [passed, "Arn"]}),
    ]
