"""Which worlds a failure ended, which node failed first, and when a run or a node stops."""

from dataclasses import replace

import pytest

from cluster_job.failures import (
    Decision,
    Membership,
    RestartPolicy,
    Standing,
    decide,
    first_to_fail,
    is_broken,
    standing,
)

HOUR = 3600.0


def member(
    node: str,
    *,
    failed: float | None = None,
    ended: float | None = None,
    world: str = "w",
    by_script: bool = False,
    hung: bool = False,
) -> Membership:
    return Membership(world=world, node=node, joined=0.0, failed=failed, ended=ended, by_script=by_script, hung=hung)


@pytest.mark.parametrize(
    ("members", "broken", "first"),
    [
        # Processes of one node fail; the others notice through their collectives, or through the rendezvous.
        ([member("a", failed=10.0), member("b", failed=12.0)], True, "a"),
        ([member("a", failed=10.0), member("b", ended=11.0)], True, "a"),
        # Within what agents can see, all failed together: no node is blamed.
        ([member("a", failed=10.0), member("b", failed=10.1)], True, None),
        # Rank 0's own code fails, as its logger does: that says nothing about its node.
        ([member("a", failed=10.0, by_script=True), member("b", failed=12.0, by_script=True)], True, None),
        ([member("a", failed=10.0), member("b", failed=12.0, by_script=True)], True, "a"),
        ([member("a", failed=10.0, by_script=True), member("b", failed=12.0), member("c")], True, "c"),
        # The others waited for a rank of a node: it is to blame, however fast they fail when it ends.
        ([member("a", failed=10.1, hung=True), member("b", failed=10.0, by_script=True)], True, "a"),
        ([member("a", failed=10.0, hung=True), member("b", failed=10.0, hung=True)], True, None),
        # Alone, a node is not worse than another.
        ([member("a", failed=10.0)], True, None),
        # A node was lost without a word; its neighbours failed.
        ([member("a", failed=10.0), member("b", failed=12.0), member("c")], True, "c"),
        ([member("a", failed=10.0), member("b"), member("c")], True, None),
        # A drained node, or one that saw a newcomer, ended its processes: those of the rest fail for that reason.
        ([member("a", ended=9.0), member("b", failed=10.0)], False, None),
        ([member("a", ended=9.2), member("b", failed=9.0)], False, None),
        ([member("a", ended=9.0), member("b", ended=9.5)], False, None),
        ([member("a"), member("b")], False, None),
    ],
)
def test_a_world_is_broken_by_the_node_that_failed_clearly_before_the_others(
    members: list[Membership], broken: bool, first: str | None
) -> None:
    assert is_broken(members) is broken
    if broken:
        assert first_to_fail(members) == first


def worlds(count: int, *, first: str = "a", hours: float = 0.0) -> list[Membership]:
    """Worlds of two nodes that break one after the other."""
    second = "b" if first == "a" else "a"
    return [
        found
        for number in range(count)
        for found in (
            member(first, failed=hours * HOUR + number * 10, world=f"{first}{number}-{hours}"),
            member(second, failed=hours * HOUR + number * 10 + 5, world=f"{first}{number}-{hours}"),
        )
    ]


@pytest.mark.parametrize(
    ("history", "a", "b"),
    [
        ([], Decision.JOIN, Decision.JOIN),
        (worlds(2), Decision.JOIN, Decision.JOIN),
        (worlds(3), Decision.LEAVE, Decision.JOIN),
        (worlds(2) + worlds(2, first="b"), Decision.JOIN, Decision.JOIN),
        (worlds(2) + worlds(3, first="b"), Decision.JOIN, Decision.LEAVE),
        (worlds(3) + worlds(3, first="b"), Decision.END, Decision.END),
        (worlds(6), Decision.END, Decision.END),
        # What lies before the window is over.
        (worlds(6, hours=-2), Decision.JOIN, Decision.JOIN),
        (worlds(2, hours=-2) + worlds(1), Decision.JOIN, Decision.JOIN),
    ],
)
def test_limits_hold_within_their_window(history: list[Membership], a: Decision, b: Decision) -> None:
    assert [decide(history, node, 60.0, RestartPolicy()) for node in "ab"] == [a, b]


def test_the_table_holds_what_was_written() -> None:
    one = replace(member("a", failed=1.5), start=3, steps=9, before=Standing(best=7, saved=3, fruitless=1))
    assert Membership.from_json(one.to_json()) == one


def run_of(*ends: tuple[int, int] | None, nodes: str = "ab", by_script: bool = True) -> list[Membership]:
    """Worlds that break one after the other, each with the steps at its start and at its end; None: it says none."""
    found: list[Membership] = []
    for number, end in enumerate(ends):
        start, steps = end or (None, None)
        found += [
            Membership(
                world=f"{number}", node=node, joined=100.0 * number, failed=100.0 * number + 50 + 5 * place,
                by_script=by_script, start=start, steps=steps, before=standing(found),
            )
            for place, node in enumerate(nodes)
        ]  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("ends", "decision"),
    [
        # Each failure comes after more steps: they spend a quarter of a restart each.
        ([(100 * world, 100 * world + 90) for world in range(20)], Decision.JOIN),
        ([(100 * world, 100 * world + 90) for world in range(21)], Decision.END),
        # Again and again at the same step, give or take one, with no checkpoint since, or with one just before it.
        ([(0, 500)] * 3, Decision.JOIN),
        ([(0, 500)] * 4, Decision.REPEAT),
        ([(0, 500), (0, 501), (0, 500), (0, 502)], Decision.REPEAT),
        ([(0, 500), (490, 500), (490, 501), (490, 500), (490, 500)], Decision.REPEAT),
        # What was lost is done again, and the run goes on.
        ([(0, 500), (0, 500), (0, 300), (0, 510)], Decision.JOIN),
        ([(0, 500), (0, 500), (0, 300), (0, 509)], Decision.REPEAT),
        # Steps of many minutes, each with a checkpoint.
        ([(world, world + 1) for world in range(6)], Decision.JOIN),
        # A run that is started again from an old checkpoint has not done its steps.
        ([(5000, 5003)] * 3, Decision.REPEAT),
        # The processes end before their first step: nothing is known, or no step is new.
        ([None] * 5, Decision.JOIN),
        ([None] * 6, Decision.END),
        ([(0, 500), None, None, None], Decision.REPEAT),
    ],
)
def test_failures_with_progress_spend_less_and_those_without_end_the_run(
    ends: list[tuple[int, int] | None], decision: Decision
) -> None:
    history = run_of(*ends)
    assert {decide(history, node, 2200.0, RestartPolicy()) for node in "ab"} == {decision}


def test_what_is_written_goes_on_where_older_worlds_are_not_read() -> None:
    history = run_of((0, 500), (0, 500), (0, 500), (0, 500))
    assert decide(history[-2:], "a", 400.0, RestartPolicy()) is Decision.REPEAT
    assert decide(history[-4:-2], "a", 400.0, RestartPolicy()) is Decision.JOIN
    assert decide(history, "a", 400.0, RestartPolicy(no_progress_restarts=0)) is Decision.JOIN


def test_a_node_that_is_to_blame_is_left_out_and_the_run_does_not_end_for_it() -> None:
    history = run_of((0, 500), (0, 500), (0, 500), by_script=False)
    assert [decide(history, node, 400.0, RestartPolicy()) for node in "ab"] == [Decision.LEAVE, Decision.JOIN]
    # Nor while a node has not said how the world ended for it.
    unknown = [*run_of(*[(0, 500)] * 3), member("a", failed=400.0, by_script=True, world="3"), member("b", world="3")]
    assert decide(unknown, "a", 401.0, RestartPolicy()) is Decision.JOIN
