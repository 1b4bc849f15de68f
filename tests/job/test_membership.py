"""What nodes write of their part in a run, and what they are told before they join again."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cluster_job.drain import DrainRequest
from cluster_job.exits import Exit
from cluster_job.failures import RestartPolicy
from cluster_job.membership import Left, Members, policy_of
from cluster_job.progress import StepFile
from cluster_job.table import RunTable, TableError, keep_asking
from fake_runs_table import TABLE, FakeRunsTable

SPOT = DrainRequest(code="spot", sentence="EC2 takes it back", deadline=datetime(2026, 11, 23, 7, 30, tzinfo=UTC))


class Run:
    """Nodes of one run, with one clock."""

    def __init__(self, policy: RestartPolicy = RestartPolicy()) -> None:  # noqa: B008
        self.time = 1000.0
        self.drained: dict[str, DrainRequest] = {}
        self.table = RunTable(FakeRunsTable(), TABLE, "llama")  # type: ignore[arg-type]
        self.policy = policy
        self.nodes = {name: self.node(name) for name in ("a", "b")}

    def node(self, name: str) -> Members:
        return Members(
            self.table,
            node=name,
            policy=self.policy,
            drained=lambda: self.drained.get(name),
            now=lambda: self.time,
        )

    def join(self, world: str) -> None:
        for node in self.nodes.values():
            node.before_join()
            node.joined(world)

    def run(self, seconds: float, *nodes: str, waiting: int = 0) -> None:
        self.time += seconds
        for name in nodes:
            self.nodes[name].healthy(waiting)


def test_the_node_that_fails_first_again_and_again_is_left_out_and_the_others_go_on() -> None:
    run = Run(RestartPolicy(first_failures=2))
    for world in ("1", "2"):
        run.join(world)
        run.run(10, "a", "b")
        run.run(2, "b")  # those of a have failed
    run.nodes["b"].before_join()
    with pytest.raises(Left, match="its processes were the first to fail 2 times within 60 minutes") as left:
        run.nodes["a"].before_join()
    assert (left.value.exit_code, left.value.for_all) == (Exit.UNFIT, False)
    keeps_nodes = Members(run.table, node="a", policy=run.policy, fixed_size=True, now=lambda: run.time)
    with pytest.raises(Left) as left:
        keeps_nodes.before_join()
    assert left.value.for_all
    # The others end as it does, or JobSet would start the job again on the same nodes, and count none of it.
    assert run.nodes["b"].closed().exit_code is Exit.AGAIN
    keeps_nodes.close(left.value)
    other = run.nodes["b"].closed()
    assert (other.exit_code, str(other)) == (Exit.UNFIT, str(left.value))
    run.nodes["b"].close(other)
    assert str(run.node("c").closed()) == str(left.value)


def test_a_run_that_fails_more_often_than_its_budget_ends_on_all_nodes() -> None:
    run = Run(RestartPolicy(restarts=1))
    for world in ("1", "2"):
        run.join(world)
        run.run(10, "a", "b")
    with pytest.raises(Left, match="the run failed more than 1 times within 60 minutes: it ends") as left:
        run.nodes["a"].before_join()
    assert (left.value.exit_code, left.value.for_all) == (Exit.BUDGET, True)
    run.nodes["a"].close(left.value)
    assert run.nodes["b"].closed().exit_code is Exit.BUDGET


def test_a_run_that_fails_again_and_again_at_the_same_step_ends(tmp_path: Path) -> None:
    run = Run()
    node = Members(run.table, node="c", policy=run.policy, steps=StepFile(tmp_path), now=lambda: run.time)
    for world in ("1", "2", "3", "4"):
        node.before_join()
        node.joined(world)
        assert StepFile(tmp_path).read() is None, "those of the world before are forgotten"
        process = StepFile(tmp_path)
        process.begin(400)
        process.done(500)
        run.time += 3000  # the window holds the last failure alone
        node.healthy(0)
    with pytest.raises(
        Left, match="the run failed 3 times in a row without progress, after step 500: it ends"
    ) as left:
        node.before_join()
    assert (left.value.exit_code, left.value.for_all) == (Exit.BUDGET, True)


def test_a_node_whose_rank_the_others_waited_for_is_left_out() -> None:
    run = Run(RestartPolicy(first_failures=1))
    run.nodes["a"] = Members(run.table, node="a", policy=run.policy, hung=lambda: True, now=lambda: run.time)
    run.join("1")
    run.run(10, "a", "b")
    with pytest.raises(Left, match="its processes were the first to fail 1 times"):
        run.nodes["a"].before_join()
    run.nodes["b"].before_join()


def test_newcomers_and_drains_cost_no_restart() -> None:
    run = Run(RestartPolicy(restarts=0))
    run.join("1")
    run.run(10, "b")
    run.run(0, "a", waiting=1)  # a stops its processes for the newcomer, and those of b fail
    run.join("2")
    run.drained["a"] = SPOT
    run.run(10, "a", "b")
    run.run(3, "b")
    with pytest.raises(Left, match=r"^a is drained by 07:30 UTC: EC2 takes it back; the others go on$") as left:
        run.nodes["a"].before_join()
    assert (left.value.exit_code, left.value.for_all) == (Exit.AGAIN, False)
    run.nodes["b"].before_join()


def test_a_failure_stays_one_when_a_drain_comes_while_the_node_asks_to_join() -> None:
    run = Run(RestartPolicy(restarts=0))
    run.join("1")
    run.run(10, "a", "b")
    with pytest.raises(Left, match="the run failed more than 0 times"):
        run.nodes["a"].before_join()
    run.drained["a"] = SPOT
    with pytest.raises(Left, match="a is drained"):
        run.nodes["a"].before_join()
    with pytest.raises(Left, match="the run failed more than 0 times"):
        run.nodes["b"].before_join()


def test_a_node_that_could_not_write_that_it_joined_does_so_while_it_trains() -> None:
    run = Run(RestartPolicy(restarts=0))
    client: Any = run.table._client
    client.down = True
    with pytest.raises(TableError):
        run.nodes["a"].joined("1")
    client.down = False
    run.run(10, "a")
    assert [key for _, key in client.items if key.endswith("/1/a")]


def test_a_drain_ends_a_run_that_needs_all_of_its_nodes() -> None:
    run = Run()
    table = run.table
    drained = Members(table, node="a", policy=run.policy, fixed_size=True, drained=lambda: SPOT, now=lambda: run.time)
    with pytest.raises(Left, match="EC2 takes it back; the run needs it, and ends on all nodes") as left:
        drained.before_join()
    assert left.value.for_all


def test_a_closed_run_is_started_again_under_its_name_after_a_minute() -> None:
    run = Run()
    first, second = run.nodes.values()
    assert [first.open(""), second.open("")] == ["0", "0"]
    first.close()
    run.time += 59
    with pytest.raises(Left, match="the run ended 59 s ago: start it again in 1 s, or under another --run"):
        second.open("")
    run.time += 1
    assert [second.open(""), first.open("")] == ["1", "1"]
    assert first.open("42-0") == "42-0"
    assert str(first.closed()) == "the run has ended on its other nodes"


@pytest.mark.parametrize(
    ("first", "again", "is_refused"), [("", "", False), ("42-0-0", "42-0-1", True), ("42-0-0", "43-0-0", False)]
)
def test_a_budget_is_that_of_a_start_with_its_automatic_restarts(first: str, again: str, is_refused: bool) -> None:
    run = Run(RestartPolicy(restarts=0))
    for node in run.nodes.values():
        node.open(first)
    run.join("1")
    run.run(10, "a", "b")
    with pytest.raises(Left, match="the run failed more than 0 times"):
        run.nodes["a"].before_join()
    run.nodes["a"].close()
    run.time += 60
    mended = run.node("a")
    mended.open(again)
    if is_refused:
        with pytest.raises(Left):
            mended.before_join()
    else:
        mended.before_join()


def test_cluster_run_tells_the_policy_by_variables() -> None:
    told = {"TRAINING_CLUSTER_RESTARTS": "2", "TRAINING_CLUSTER_RESTART_WINDOW": "60"}
    assert policy_of(told) == RestartPolicy(restarts=2, window_seconds=60)


def test_the_attempt_of_a_run_of_many_weeks_does_not_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    run, now = Run(), time.time()
    monkeypatch.setattr(time, "time", lambda: now + run.time)
    assert run.nodes["a"].open("") == "0"
    run.nodes["a"].close()
    run.time += 100
    assert [run.nodes[node].open("") for node in "ab"] == ["1", "1"]
    client: Any = run.table._client
    first = int(client.items["llama", "attempt"]["expires"]["N"])
    run.join("w")
    for _ in range(20):
        run.run(86_400, "a", "b")
    found = run.table.read("attempt")
    assert found is not None
    assert found.value == b"1"
    assert int(client.items["llama", "attempt"]["expires"]["N"]) >= first + 19 * 86_400


def test_a_node_reads_the_last_hours_of_its_run_and_no_weeks() -> None:
    run = Run(RestartPolicy(restarts=1))
    client: Any = run.table._client
    client.page_size = 1000
    for world in range(200):
        run.time += 6000
        run.join(f"{world}")
        run.run(1, "a", "b", waiting=1)
    run.time += 4 * 3600
    client.returned = 0
    run.nodes["a"].before_join()
    assert client.returned <= 1


def test_a_world_that_lived_for_hours_is_known_whole_when_it_breaks() -> None:
    run = Run(RestartPolicy(restarts=0, first_failures=1))
    run.join("1")
    for _ in range(100):
        run.run(360, "a", "b")
    run.run(20, "b")  # a was lost without a word
    with pytest.raises(Left, match="the run failed more than 0 times"):
        run.nodes["b"].before_join()
    run.policy = RestartPolicy(first_failures=1)
    run.node("b").before_join()
    with pytest.raises(Left, match="a is left out"):
        run.node("a").before_join()


@pytest.mark.parametrize(("refusals", "raises"), [(0, False), (3, False), (1000, True)])
def test_a_table_that_does_not_answer_is_asked_again_for_ten_minutes(refusals: int, raises: bool) -> None:
    slept: list[float] = []
    left = iter(range(refusals))

    def ask() -> str:
        if next(left, None) is not None:
            raise TableError("DynamoDB's table runs did not answer query")
        return "joined"

    def sleep(seconds: float) -> None:
        slept.append(seconds)

    if raises:
        with pytest.raises(TableError):
            keep_asking(ask, (TableError,), clock=lambda: sum(slept), sleep=sleep)
        assert 600 <= sum(slept) < 630
    else:
        assert keep_asking(ask, (TableError,), clock=lambda: sum(slept), sleep=sleep) == "joined"
        assert len(slept) == refusals
    assert all(0 < seconds <= 30 for seconds in slept)
