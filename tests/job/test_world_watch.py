"""When the agent of a node takes another node of its world for lost, and when it does not."""

from collections.abc import Iterator

import pytest

from cluster_job.failures import RestartPolicy
from cluster_job.membership import Members
from cluster_job.table import RunTable
from cluster_job.world_watch import WorldWatch
from fake_runs_table import TABLE, FakeRunsTable


@pytest.mark.parametrize(
    ("rounds", "is_over"),
    [
        ("." * 9, False),  # its sign moves
        (".ss", False),
        (".sss", True),
        (".ss.ss", False),
        ("ssssss", False),  # it has not joined yet: nothing was read
        (".ssxsss", False),  # the table did not answer: the count begins again
        (".ssxssss", True),
        (".sslsss", False),  # the table was slow
        (".xxxxxx", False),
        (".ddssss", False),  # it has ended well
        (".f", True),  # its processes have failed
    ],
)
def test_only_a_sign_that_was_read_and_does_not_move_ends_the_processes(rounds: str, is_over: bool) -> None:
    client, now = FakeRunsTable(), [0.0]
    table = RunTable(client, TABLE, "llama")  # type: ignore[arg-type]
    slow: Iterator[float] = iter(())

    def clock() -> float:
        now[0] += next(slow, 0.0)
        return now[0]

    first, other = (
        WorldWatch(table, node=node, world="w", rank=rank, nodes=2, clock=clock) for rank, node in enumerate("ab")
    )
    members = Members(table, node="b", policy=RestartPolicy(), drained=lambda: None)
    members.joined("w")
    for round_ in rounds:
        assert not first.over
        client.down = round_ == "x"
        if round_ == ".":
            other.look()
        elif round_ == "d":
            other.leave()
        elif round_ == "f":
            members.before_join()
        slow = iter((0.0, 6.0)) if round_ == "l" else iter(())
        first.look()
    assert bool(first.over) is is_over


def test_each_node_is_read_by_one_and_reads_one() -> None:
    client = FakeRunsTable()
    table = RunTable(client, TABLE, "llama")  # type: ignore[arg-type]
    watches = [WorldWatch(table, node=f"n{rank}", world="w", rank=rank, nodes=4) for rank in range(4)]
    for watch in watches:
        watch.look()
    for _ in range(4):
        for watch in watches[:3]:
            watch.look()
    assert [watch.over for watch in watches] == ["n3 has given no sign of life for 45 s", "", "", ""]
    rounds = 4 + 4 * 3
    assert len(client.calls) == rounds * 3
