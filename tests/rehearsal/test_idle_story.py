"""The idle stop's story: a right one has no differences, and each wrong thing is one."""

from collections.abc import Mapping
from typing import Any

import pytest

from idle_stories import node, settings, story

_REPORTED = {node("i-1"): "busy", node("i-2"): "silent", node("i-3"): "idle"}
_RIGHT = {
    0: "busy unknown busy",
    70: "warn warn warn",
    95: "warn warn warn",
    100: "stopped stopped stopped",
}


def _differences(
    runs: Mapping[int, str],
    group: Mapping[str, Any] | None = None,
    *,
    nodes: Mapping[Any, str] = _REPORTED,
    breaker: Mapping[int, str] | None = None,
    **policy: Any,
) -> list[str]:
    return story(settings({"workers": group or {}}, **policy), nodes, runs, breaker).differences()


def test_what_is_right_is_nothing_to_say() -> None:
    assert _differences(_RIGHT) == []


@pytest.mark.parametrize(
    ("wrong", "differences"),
    [
        ({0: "grace unknown busy"}, ["i-1 was busy and was called grace: i-1 of workers is grace"]),
        ({0: "busy busy busy"}, ["i-2 was silent and was called busy: i-2 of workers is busy"]),
        ({0: "busy unknown -"}, ["i-3 was idle and was called nothing"]),
        ({0: "busy unknown warn"}, ["i-3 was idle and was called warn: i-3 of workers is warn"]),
        (
            {95: "warn warn busy"},
            ["i-3 was called stop 100 minutes after the first run, and no warning had been sent"],
        ),
        (
            {95: "warn warn stop"},
            ["i-3 was called stop 25 minutes after the warning, which has to come 30 minutes before"],
        ),
        (
            {100: "stopped stopped unstoppable"},
            [
                "i-3 was idle to the end and was called unstoppable and left running, not stopped: "
                "i-3 of workers is unstoppable"
            ],
        ),
        (
            {110: "- - warn"},
            ["110 minutes after the first run there was i-3, which was stopped or is no node of the cluster"],
        ),
    ],
)
def test_one_wrong_thing_is_told(wrong: Mapping[int, str], differences: list[str]) -> None:
    assert _differences({**_RIGHT, **wrong}) == [f"idle stop: {one}" for one in differences]


def test_a_node_that_is_stopped_while_its_peer_works_is_told() -> None:
    assert _differences({**_RIGHT, 0: "busy unknown stopped", 100: "stopped stopped -", 70: "warn warn -"}) == [
        "idle stop: 95 minutes after the first run there was i-3, which was stopped or is no node of the cluster",
        "idle stop: i-3 was idle and was called stop: i-3 of workers is stopped",
        "idle stop: i-3 was called stop in the first run, and no warning had been sent",
    ]


def test_a_node_that_is_stopped_under_another_name_is_told() -> None:
    told = story(settings({"workers": {}}), _REPORTED, _RIGHT)
    told.ticks[-1]["nodes"][2]["verdict"] = "keep"
    assert told.differences() == [
        "idle stop: i-3 was stopped 100 minutes after the first run, though it was called keep"
    ]


def test_a_breaker_that_trips_for_nothing_is_told() -> None:
    assert _differences({**_RIGHT, 75: "warn warn warn"}, breaker={75: "3 of 3 nodes can no longer be seen"}) == [
        "idle stop: 75 minutes after the first run nothing was done, though no node had gone dark: "
        "3 of 3 nodes can no longer be seen"
    ]


def test_what_has_to_wait_for_a_later_run_is_no_difference() -> None:
    each = {0: "busy unknown warn", 30: "busy unknown deferred", 70: "warn warn stopped", 100: "stopped deferred -"}
    assert _differences({**each, 105: "- stopped -"}, {"policy": {"scope": "node"}}, max_stops=1) == []


_RESERVED = {node(one.id, reserved=True): what for one, what in _REPORTED.items()}


@pytest.mark.parametrize(
    ("group", "policy", "nodes", "runs"),
    [
        ({}, {}, _RESERVED, {0: "busy unknown busy", 70: "reserved reserved reserved"}),
        ({"release": True}, {}, _RESERVED, _RIGHT),
        ({}, {"off": True}, _REPORTED, {0: "keep keep keep"}),
        ({"policy": {"off": True}}, {}, _REPORTED, {0: "keep keep keep"}),
        ({"policy": {"dry_run": True}}, {}, _REPORTED, {**_RIGHT, 100: "stop stop stop", 105: "warn warn warn"}),
        (
            {"policy": {"window": 1800, "warning": 900}},
            {},
            _REPORTED,
            {0: "busy unknown busy", 40: "warn warn warn", 55: "stopped stopped stopped"},
        ),
        ({}, {}, dict.fromkeys(_REPORTED, "idle"), {0: "warn warn warn", 30: "stopped stopped stopped"}),
        ({}, {}, dict.fromkeys(_RESERVED, "idle"), {0: "reserved reserved reserved"}),
    ],
    ids=["reserved", "released", "off", "group off", "dry run", "own policy", "all idle", "all idle, reserved"],
)
def test_what_is_right_goes_by_the_settings_and_by_what_the_nodes_run_in(
    group: dict[str, Any], policy: dict[str, Any], nodes: Mapping[Any, str], runs: Mapping[int, str]
) -> None:
    assert _differences(runs, group, nodes=nodes, **policy) == []


def test_a_reserved_node_that_is_stopped_is_told() -> None:
    assert _differences({**_RIGHT, 100: "stopped stopped stopped"}, nodes=_RESERVED) == [
        f"idle stop: {one} was idle to the end and was stopped, not called reserved and left running: {one} of "
        "workers is stopped"
        for one in ("i-1", "i-2", "i-3")
    ]


def test_a_node_whose_policy_is_off_is_kept_from_the_first_run_on() -> None:
    assert _differences({0: "busy keep keep", 70: "keep keep keep"}, {"policy": {"off": True}}) == [
        "idle stop: i-1 was busy and was called busy: i-1 of workers is busy"
    ]


def test_what_is_written_down_says_what_was_wanted_and_what_was_said_last() -> None:
    told = story(settings({"workers": {}}), _REPORTED, _RIGHT)
    results = told.results()
    assert results["reported"] == {"i-1": "busy", "i-2": "silent", "i-3": "idle"}
    assert results["wanted"] == dict.fromkeys(("i-1", "i-2", "i-3"), "stopped")
    assert results["verdicts"] == dict.fromkeys(("i-1", "i-2", "i-3"), "stop")
    assert results["stopped"] == ["i-1", "i-2", "i-3"]
    assert [tick["minutes_later"] for tick in results["ticks"]] == [0, 70, 95, 100]
