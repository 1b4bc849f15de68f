from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import InvalidEventError
from cluster_contract.owners import OwnerSettings
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_power.callers import Action
from cluster_power.commands import Command, Expected, parse_command
from power_scene import caller_of, plain

SETTINGS = PowerFunctionSettings(
    cluster="base-pod", groups=plain(eval=2, workers=8), launch_grace=timedelta(minutes=10)
)
EXTRAS = PowerGroupSettings(count=4, owner=OwnerSettings.spot_fleet("sfr-1"))
WITH_A_FLEET = replace(
    SETTINGS,
    groups=dict(SETTINGS.groups) | {"extras": EXTRAS},
)
IDS = ["i-0123456789abcdef0", "i-0123456789abcdef1"]
STOP = {"action": "stop", "node_groups": ["eval"], "all_or_nothing": True}
WITH_EXPECTED = {"expected_size": 2, "expected_instance_ids": IDS}


def read(event: Any, settings: PowerFunctionSettings) -> Command:
    """Read an event of a caller who may order that."""
    return parse_command(event, settings, caller_of(event))


@pytest.mark.parametrize("event", [{}, {"action": "tick"}])
def test_an_empty_event_is_a_tick_of_everything(event: dict[str, Any]) -> None:
    command = read(event, SETTINGS)

    assert command.action is Action.TICK
    assert command.node_groups == ("eval", "workers")


def test_an_order_says_what_which_who_and_why() -> None:
    command = read(
        {"action": "stop", "node_groups": ["workers", "workers"], "reason": "cost (500 $)"},
        SETTINGS,
    )

    assert (command.action, command.node_groups, command.by, command.reason) == (
        Action.STOP,
        ("workers",),
        "an operator in request 1111",
        "cost (500 $)",
    )


@pytest.mark.parametrize(
    ("event", "all_or_nothing"), [({}, False), ({"all_or_nothing": False}, False), ({"all_or_nothing": True}, True)]
)
def test_only_a_stop_that_says_so_is_carried_out_at_once_or_not_at_all(
    event: dict[str, Any], all_or_nothing: bool
) -> None:
    assert read({"action": "stop"} | event, SETTINGS).all_or_nothing is all_or_nothing


def test_a_stop_may_say_what_was_judged() -> None:
    command = read(STOP | WITH_EXPECTED, SETTINGS)

    assert command.expected == Expected(size=2, instance_ids=frozenset(IDS))
    assert read(STOP, SETTINGS).expected is None


@pytest.mark.parametrize(
    "changes",
    [
        {"expected_size": None},
        {"expected_size": -1},
        {"expected_size": True},
        {"expected_instance_ids": None},
        {"expected_instance_ids": "i-1"},
        {"expected_instance_ids": ["workers"]},
        {"all_or_nothing": False},
        {"node_groups": None},
        {"node_groups": ["eval", "workers"]},
    ],
)
def test_half_of_what_was_judged_is_refused_in_one_sentence(changes: dict[str, Any]) -> None:
    event = {key: value for key, value in (STOP | WITH_EXPECTED | changes).items() if value is not None}

    with pytest.raises(InvalidEventError) as caught:
        read(event, SETTINGS)

    assert str(caught.value) == (
        "expected_size (0 or more) and expected_instance_ids (a list of ids such as i-0123456789abcdef0) go "
        f"together, with all_or_nothing and exactly one name in node_groups, got {event!r}"
    )


def test_an_order_for_no_reason_says_so() -> None:
    assert read({"action": "start", "reason": " "}, SETTINGS).reason == "no reason given"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([], "the event must be a JSON object, got []"),
        ({"action": "halt"}, "action must be one of tick, start, stop, limit, terminate, status, got 'halt'"),
        ({"action": ["stop"]}, "action must be one of tick, start, stop, limit, terminate, status, got ['stop']"),
        (
            {"action": "stop", "node_group": ["workers"]},
            "the event takes action, automation_execution_id, expected_instance_ids, expected_size, "
            "instance_ids, node_groups, all_or_nothing, reason, got node_group",
        ),
        (
            {"action": "stop", "node_groups": ["worker"]},
            "base-pod has no node group worker; its node groups are eval, workers",
        ),
        (
            {"action": "stop", "node_groups": [["workers"]]},
            "base-pod has no node group ['workers']; its node groups are eval, workers",
        ),
        (
            {"action": "stop", "node_groups": "workers"},
            "node_groups must be a list of names from eval, workers, got 'workers'",
        ),
        ({"action": "stop", "node_groups": []}, "node_groups must be a list of names from eval, workers, got []"),
        ({"action": "stop", "reason": 7}, "reason must be text, got 7"),
        ({"action": "stop", "all_or_nothing": "true"}, "all_or_nothing must be true or false, got 'true'"),
        ({"action": "stop", "all_or_nothing": 1}, "all_or_nothing must be true or false, got 1"),
        ({"action": "stop", "all_or_nothing": None}, "all_or_nothing must be true or false, got None"),
        (
            {"action": "start", "all_or_nothing": True},
            "all_or_nothing goes with the action stop only, got True with start",
        ),
        ({"all_or_nothing": False}, "all_or_nothing goes with the action stop only, got False with tick"),
    ],
)
def test_a_wrong_event_is_refused_in_one_sentence(event: Any, message: str) -> None:
    with pytest.raises(InvalidEventError) as caught:
        read(event, SETTINGS)

    assert str(caught.value) == message


def test_an_order_to_terminate_names_one_group_and_each_node_once() -> None:
    command = read(
        {"action": "terminate", "node_groups": ["workers"], "instance_ids": [*reversed(IDS), IDS[0]]}, SETTINGS
    )

    assert (command.action, command.node_groups, command.instance_ids) == (
        Action.TERMINATE,
        ("workers",),
        tuple(reversed(IDS)),
    )


def test_as_many_nodes_as_fit_into_one_run_can_be_named() -> None:
    ids = [f"i-{number:017x}" for number in range(101)]

    command = read({"action": "terminate", "node_groups": ["eval"], "instance_ids": ids[:100]}, SETTINGS)
    with pytest.raises(InvalidEventError, match="terminate takes 1 to 100 ids such as i-0123456789abcdef0"):
        read({"action": "terminate", "node_groups": ["eval"], "instance_ids": ids}, SETTINGS)

    assert len(command.instance_ids) == 100


IDS_ALLOWED = "terminate takes 1 to 100 ids such as i-0123456789abcdef0 in instance_ids, got "


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instance_ids": None}, f"{IDS_ALLOWED}None"),
        ({"instance_ids": []}, f"{IDS_ALLOWED}[]"),
        ({"instance_ids": "i-1"}, f"{IDS_ALLOWED}'i-1'"),
        ({"instance_ids": ["i-1", 7]}, f"{IDS_ALLOWED}['i-1', 7]"),
        ({"instance_ids": ["workers"]}, f"{IDS_ALLOWED}['workers']"),
        ({"instance_ids": ["i-0123456789abcdef01"]}, f"{IDS_ALLOWED}['i-0123456789abcdef01']"),
        ({"node_groups": None}, "terminate takes exactly one name in node_groups, got None"),
        (
            {"node_groups": ["eval", "workers"]},
            "terminate takes exactly one name in node_groups, got ['eval', 'workers']",
        ),
        (
            {"node_groups": ["extras"]},
            "terminate takes no node group whose owner chooses itself which of its nodes it terminates: extras "
            "belongs to a Spot Fleet request",
        ),
        ({"action": "stop"}, f"instance_ids goes with the action terminate only, got {IDS} with stop"),
        (
            {"action": "tick", "instance_ids": []},
            "instance_ids goes with the action terminate only, got [] with tick",
        ),
    ],
)
def test_a_wrong_order_to_terminate_is_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    event = {"action": "terminate", "node_groups": ["workers"], "instance_ids": IDS}

    with pytest.raises(InvalidEventError) as caught:
        read(event | changes, WITH_A_FLEET)

    assert str(caught.value) == message
