"""The handler as Lambda calls it: what CloudFormation is answered, and what is not answered."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from answers import Answers, answering
from cluster_common import clients
from cluster_contract.reservations import ReservationFunctionSettings
from cluster_reservations.handler import UnansweredError, handler
from cluster_reservations.keeper import NO_RESERVATION
from reservation_scene import ReservationScene, properties

CONTEXT = cast(
    "LambdaContext",
    SimpleNamespace(
        function_name="reservations",
        memory_limit_in_mb=256,
        invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:reservations",
        aws_request_id="11111111-2222-3333-4444-555555555555",
        get_remaining_time_in_millis=lambda: 0,
    ),
)


@pytest.fixture
def answers() -> Iterator[Answers]:
    with answering() as server:
        yield server


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> ReservationScene:
    made = ReservationScene()
    monkeypatch.setenv(ReservationFunctionSettings.environment_variable, json.dumps({"cluster": "pod"}))
    monkeypatch.setattr(
        clients, "Clients", lambda: SimpleNamespace(ec2=lambda: made.ec2, cloudformation=lambda: made.stack)
    )
    return made


def asked(scene: ReservationScene, answers: Answers, kind: str, physical_id: str = "", **more: Any) -> dict[str, Any]:
    return {**scene.event(kind, physical_id, **more), "ResponseURL": answers.address}


def test_a_reservation_is_answered_by_its_id(scene: ReservationScene, answers: Answers) -> None:
    answers.refusals = 2
    event = asked(scene, answers, "Create")
    handler(event, CONTEXT)
    ((content_type, response),) = answers.taken
    assert content_type == ""
    assert response == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": "cr-00000000000000001",
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }


@pytest.mark.parametrize(
    ("kind", "physical_id", "named"),
    [("Create", "", NO_RESERVATION), ("Update", "cr-00000000000000001", "cr-00000000000000001")],
)
def test_a_refusal_is_the_reason_and_names_what_there_is(
    kind: str, physical_id: str, named: str, scene: ReservationScene, answers: Answers
) -> None:
    if physical_id:
        scene.create()
    scene.stack.status = f"{kind.upper()}_IN_PROGRESS"
    scene.ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity", message="Kein Platz für 8.")
    wanted = properties(InstanceType="p4d.24xlarge")
    handler(
        asked(scene, answers, kind, physical_id, ResourceProperties=wanted, OldResourceProperties=properties()),
        CONTEXT,
    )
    ((_, response),) = answers.taken
    assert (response["Status"], response["PhysicalResourceId"]) == ("FAILED", named)
    assert response["Reason"].endswith("AWS says: InsufficientInstanceCapacity: Kein Platz f?r 8.")


def test_one_that_is_pending_when_the_time_is_over_is_answered_by_its_id_so_that_the_rollback_cancels_it(
    scene: ReservationScene, answers: Answers
) -> None:
    scene.ec2.state, scene.ec2.settles = "pending", "pending"
    handler(asked(scene, answers, "Create"), CONTEXT)
    ((_, response),) = answers.taken
    assert (response["Status"], response["PhysicalResourceId"]) == ("FAILED", "cr-00000000000000001")
    assert response["Reason"] == (
        "node group workers: capacity reservation cr-00000000000000001 is still pending, and is billed when it is "
        "active. The rollback cancels it. If it does not, run: aws ec2 cancel-capacity-reservation "
        "--capacity-reservation-id cr-00000000000000001"
    )


def test_a_reason_is_as_long_as_cloudformation_takes(scene: ReservationScene, answers: Answers) -> None:
    scene.ec2.fail_next("CreateCapacityReservation", "InvalidParameterValue", message="long " * 2000)
    handler(asked(scene, answers, "Create"), CONTEXT)
    ((_, response),) = answers.taken
    assert len(json.dumps(response)) < 4096
    assert response["Status"] == "FAILED"


def test_an_answer_that_does_not_arrive_is_given_when_the_request_is_delivered_again(
    scene: ReservationScene, answers: Answers
) -> None:
    event = asked(scene, answers, "Create")
    answers.refusals = 3
    with pytest.raises(UnansweredError):
        handler(event, CONTEXT)
    handler(event, CONTEXT)
    assert [response["PhysicalResourceId"] for _, response in answers.taken] == ["cr-00000000000000001"]
    assert scene.ec2.billed == ["cr-00000000000000001"]


def test_what_is_not_certain_is_not_answered(scene: ReservationScene, answers: Answers) -> None:
    scene.ec2.fail_next("CreateCapacityReservation", "RequestLimitExceeded")
    event = asked(scene, answers, "Create")
    with pytest.raises(Exception, match="RequestLimitExceeded"):
        handler(event, CONTEXT)
    assert answers.taken == []
    handler(event, CONTEXT)
    assert len(answers.taken) == 1
