"""Who may order what: Lambda tells the function no more than the alias that it is invoked through."""

import contextlib
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError

from cluster_common.actions import parse_action
from cluster_common.errors import InvalidEventError
from cluster_power.callers import Action, Caller, name_starter
from cluster_power.commands import parse_command
from fake_service import refusal
from power_scene import Scene

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from mypy_boto3_ssm.client import SSMClient

ARN = "arn:aws:lambda:us-east-1:111122223333:function:power"
EXECUTION = "4105a4fc-f944-11e6-9d32-0123456789ab"
MORE: dict[str, dict[str, Any]] = {
    "terminate": {"node_groups": ["workers"], "instance_ids": ["i-1"]},
    ":start": {"automation_execution_id": EXECUTION},
}


@pytest.mark.parametrize(
    ("alias", "allowed"),
    [
        ("", {"tick", "status"}),
        (":$LATEST", {"tick", "status"}),
        (":operate", {"start", "stop", "limit", "terminate", "status"}),
        (":start", {"start"}),
        (":idle", {"stop", "terminate"}),
        (":budget", {"stop", "limit", "status"}),
    ],
)
def test_each_alias_takes_its_own_orders(alias: str, allowed: set[str]) -> None:
    caller, taken = Caller.of(f"{ARN}{alias}", "1111"), set[str]()
    for action in Action:
        event = {"action": action.value, **MORE.get(action, {}), **MORE.get(alias, {})}
        with contextlib.suppress(InvalidEventError):
            taken.add(parse_command(event, Scene().settings, caller).action.value)
    assert taken == allowed


@pytest.mark.parametrize(
    ("alias", "event", "message"),
    [
        (
            ":start",
            {"action": "stop"},
            "through the alias start it takes start, got stop; invoke the alias operate, idle, budget for that",
        ),
        (
            "",
            {"action": "start"},
            "through no alias it takes tick, status, got start; invoke the alias operate, start for that",
        ),
        (":operate", {"action": "stop", "by": "ana"}, "the event takes action, automation_execution_id, "),
        (
            ":operate",
            {"action": "start", "automation_execution_id": "x"},
            "automation_execution_id goes with the alias start",
        ),
        (
            ":start",
            {"action": "start"},
            "automation_execution_id must be the id of the runbook's execution, got None",
        ),
    ],
)
def test_no_caller_orders_in_anothers_name(alias: str, event: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidEventError, match=f"^{message}"):
        parse_command(event, Scene().settings, Caller.of(f"{ARN}{alias}", "1111"))


def test_an_alias_that_is_not_the_cluster_s_is_refused() -> None:
    with pytest.raises(InvalidEventError, match="its aliases operate, start, idle, budget, got 'live'"):
        Caller.of(f"{ARN}:live", "1111")


class FakeAutomation:
    """What Systems Manager says of an execution."""

    def __init__(self, told: dict[str, str] | ClientError) -> None:
        self._told = told

    def get_automation_execution(self, **parameters: str) -> dict[str, dict[str, str]]:
        assert parameters == {"AutomationExecutionId": EXECUTION}
        if isinstance(self._told, ClientError):
            raise self._told
        return {"AutomationExecution": self._told}


ANA = "arn:aws:sts::111122223333:assumed-role/Operators/ana"


@pytest.mark.parametrize(
    ("told", "by"),
    [
        ({"ExecutedBy": ANA, "AutomationExecutionStatus": "InProgress"}, f"{ANA} through automation {EXECUTION}"),
        (
            {"ExecutedBy": ANA, "DocumentName": "AWS-RestartEC2Instance"},
            f"{ANA} through automation {EXECUTION} of the runbook AWS-RestartEC2Instance",
        ),
        ({"ExecutedBy": ANA, "AutomationExecutionStatus": "Success"}, f"automation {EXECUTION}, which has ended"),
        ({}, f"automation {EXECUTION}"),
        (refusal("GetAutomationExecution", "ThrottlingException", "no"), f"automation {EXECUTION}"),
    ],
)
def test_systems_manager_says_who_started_the_runbook(told: dict[str, str] | ClientError, by: str) -> None:
    ssm = cast("SSMClient", FakeAutomation(told))
    assert name_starter(ssm, EXECUTION, cast("Logger", logging.getLogger("test"))) == by


@pytest.mark.parametrize(
    "event", [{"x\n[INFO] forged\x1b[2J" * 100_000: 1}, {"action": "a" * 1_000_000}, ["b"] * 100_000]
)
def test_what_is_refused_fills_no_log(event: object) -> None:
    """A principal that may look sends up to 6 MB, and Lambda logs the error."""
    for parse in (parse_action, lambda sent: parse_command(sent, Scene().settings, Caller.of(ARN, "1111"))):
        with pytest.raises(InvalidEventError) as refused:
            parse(event)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) <= 1000
