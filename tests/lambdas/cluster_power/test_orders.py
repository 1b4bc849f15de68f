from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import InvalidEventError
from cluster_power.orders import OrderAction, parse_order
from cluster_power.settings import Settings
from power_scene import plain

SETTINGS = Settings(cluster="base-pod", groups=plain(eval=2, workers=8), launch_grace=timedelta(minutes=10))


@pytest.mark.parametrize("event", [{}, {"action": "tick"}])
def test_an_empty_event_is_a_tick_of_everything(event: dict[str, Any]) -> None:
    order = parse_order(event, SETTINGS)

    assert order.action is OrderAction.TICK
    assert order.node_groups == ("eval", "workers")


def test_an_order_says_what_which_who_and_why() -> None:
    order = parse_order(
        {"action": "stop", "node_groups": ["workers", "workers"], "by": "ana", "reason": "cost (500 $)"},
        SETTINGS,
    )

    assert (order.action, order.node_groups, order.by, order.reason) == (
        OrderAction.STOP,
        ("workers",),
        "ana",
        "cost 500",
    )


def test_an_order_of_nobody_for_no_reason_says_so() -> None:
    order = parse_order({"action": "start", "by": "", "reason": "$$$"}, SETTINGS)

    assert (order.by, order.reason) == ("an operator", "no reason given")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([], "the event must be a JSON object, got []"),
        ({"action": "halt"}, "action must be one of tick, start, stop, status, got 'halt'"),
        ({"action": ["stop"]}, "action must be one of tick, start, stop, status, got ['stop']"),
        (
            {"action": "stop", "node_group": ["workers"]},
            "the event takes action, by, node_groups, reason, got node_group",
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
        ({"action": "stop", "by": 7}, "by must be text, got 7"),
    ],
)
def test_a_wrong_event_is_refused_in_one_sentence(event: Any, message: str) -> None:
    with pytest.raises(InvalidEventError) as caught:
        parse_order(event, SETTINGS)

    assert str(caught.value) == message
