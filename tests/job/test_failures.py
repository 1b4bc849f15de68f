"""Which worlds a failure ended, which node failed first, and when a run or a node stops."""

import pytest

from cluster_job.failures import Decision, Membership, RestartPolicy, decide, first_to_fail, is_broken

HOUR = 3600.0


def member(
    node: str,
    *,
    failed: float | None = None,
    ended: float | None = None,
    world: str = "w",
    by_script: bool = False,
) -> Membership:
    return Membership(world=world, node=node, joined=0.0, failed=failed, ended=ended, by_script=by_script)


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
    one = member("a", failed=1.5)
    assert Membership.from_json(one.to_json()) == one
