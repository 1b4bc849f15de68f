import json
from typing import Any

import pytest

from cdk_training_cluster_cli.observe.status.part import Moment
from cdk_training_cluster_cli.observe.status.runs import Runs
from cluster_contract.runs import REPORTS
from stubbed_cluster import NOW, stubbed

_QUERY = {
    "TableName": "runs",
    "KeyConditionExpression": "#run = :reports",
    "ExpressionAttributeNames": {"#run": "run"},
    "ExpressionAttributeValues": {":reports": {"S": REPORTS}},
}
_TOTALS = {"kept_seconds": 9000.0, "lost_seconds": 1000.0, "finished": False}


def _item(run: str, ago: float, totals: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    value = {"at": NOW.timestamp() - ago, "totals": {**_TOTALS, **(totals or {})}, "step": 12345, **more}
    return {"run": {"S": REPORTS}, "key": {"S": run}, "value": {"B": json.dumps(value).encode()}}


_ITEMS = [
    _item("llama-1", 40, StepSeconds=1.25, CostUsd=1234.5, cost_cap_usd=20000, slowest_ranks=[[17, 1.31]],
          CheckpointFailures=2.0, NonFiniteLoss=1.0,
          low_utilization="GPUs run kernels for 41 % of the time",
          likely_cause={"kind": "one rank", "sentence": "rank 17 on i-1 takes 1.31 times as long\x1b[2J"}),
    _item("ended", 7200, {"finished": True}),
    _item("hung", 50, hang={"at": NOW.timestamp() - 7500, "sentence": "rank 1 on i-2 hangs: it\x1b[2J"}),
    _item("hung before", 60, hang={"at": NOW.timestamp() - 90_000, "sentence": "rank 1 on i-2 hangs"}),
    _item("lost", 3600, {"kept_seconds": 0.0, "lost_seconds": 0.0}),
    _item("last-week", 7 * 86400),
    {**_item("torn", 10), "value": {"B": b"{"}},
    {**_item("of another kind", 10), "value": {"B": b"[]"}},
]  # fmt: skip


def test_runs_say_how_far_they_are_what_they_lost_and_what_slows_them_down() -> None:
    with stubbed({"dynamodb": [("Query", _QUERY, {"Items": _ITEMS})]}) as cluster:
        answer = Runs().ask(cluster)

    assert answer is not None
    assert list(Runs().lines(answer, Moment(now=NOW, notes={}))) == [
        "llama-1: reported 40 s ago, step 12,345 at 1.25 s each, 90.0 % of its time was training, 16 min lost, "
        "1,234.50 USD of 20,000 USD, 2 checkpoints in a row could not be written, "
        "the loss is no finite number, and no checkpoint is written, slow ranks: 17.",
        "llama-1: low utilization: GPUs run kernels for 41 % of the time.",
        "llama-1: likely slowed down (one rank): rank 17 on i-1 takes 1.31 times as long\\x1b[2J.",
        "hung: reported 50 s ago, step 12,345, 90.0 % of its time was training, 16 min lost.",
        "hung: 2 h 5 min ago rank 1 on i-2 hangs: it\\x1b[2J.",
        "hung before: reported 1 min ago, step 12,345, 90.0 % of its time was training, 16 min lost.",
        "lost: silent for 1 h 0 min, step 12,345.",
        "ended: finished 2 h 0 min ago, step 12,345, 90.0 % of its time was training, 16 min lost.",
    ]


def _asked(*items: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the names of the runs that are shown, with what is said of each."""
    with stubbed({"dynamodb": [("Query", _QUERY, {"Items": list(items)})]}) as cluster:
        answer = Runs().ask(cluster)
    if answer is None:
        return []
    # What a program reads is JSON.
    assert json.dumps(Runs().values(answer), allow_nan=False)
    said = [str(line) for line in Runs().lines(answer, Moment(now=NOW, notes={}, all=True))]
    return [(line.partition(":")[0], line) for line in said]


@pytest.mark.parametrize(
    "broken",
    [
        {"slowest_ranks": [1]},
        {"slowest_ranks": [[]]},
        {"slowest_ranks": [["\x1b[2J", 1.0]]},
        {"slowest_ranks": [[17, 1.31]] * 101},
        {"likely_cause": {"kind": "one rank"}},
        {"likely_cause": "one rank"},
        {"hang": {"at": "yesterday", "sentence": "a"}},
        {"low_utilization": "x" * 1001},
        {"step": 10**400},
        {"step": "12" * 40},
        {"CostUsd": float("inf")},
        {"cost_cap_usd": float("nan")},
        {"StepSeconds": {"a": 1}},
        {"Loss": [1]},
        {"x" * 65: 1.0},
        {"\x1b[2J": 1.0},
        {"totals": {**_TOTALS, "kept_seconds": -1}},
        {"totals": {**_TOTALS, "lost_seconds": 1e300}},
        {"at": NOW.timestamp() + 10**9},
        {"at": NOW.timestamp() + 301},
        {"at": 1e300},
        {"at": -1},
        {"at": None},
    ],
    ids=str,
)
def test_what_is_no_report_is_left_out_and_hides_no_other(broken: dict[str, Any]) -> None:
    item = _item("broken", 10)
    value = {**json.loads(item["value"]["B"]), **broken}
    shown = _asked({**item, "value": {"B": json.dumps(value).encode()}}, _item("true", 40))
    assert [run for run, _ in shown] == ["true"]


@pytest.mark.parametrize("escaped", ["\x1b]0;x\x07", "\x9b2J", "\u202e", "\u2028", "\x7f"])
def test_no_text_of_a_job_controls_the_terminal(escaped: str) -> None:
    cause = {"kind": f"a{escaped}b", "sentence": f"a{escaped}\nb"}
    shown = _asked(_item(f"run{escaped}", 10, low_utilization=f"a{escaped}b", likely_cause=cause))
    assert len(shown) == 3
    for _, line in shown:
        assert line.isprintable()


def test_many_reports_delay_the_status_no_longer_than_a_hundred_pages() -> None:
    keys = [{"run": {"S": REPORTS}, "key": {"S": f"{page}"}} for page in range(100)]
    starts = [{}, *({"ExclusiveStartKey": key} for key in keys)]
    asked = [
        ("Query", {**_QUERY, **start}, {"Items": [] if start else [_item("true", 40)], "LastEvaluatedKey": key})
        for start, key in zip(starts, keys, strict=False)
    ]
    with stubbed({"dynamodb": asked}) as cluster:
        answer = Runs().ask(cluster)
    assert answer is not None
    assert list(Runs().lines(answer, Moment(now=NOW, notes={}))) == [
        "true: reported 40 s ago, step 12,345, 90.0 % of its time was training, 16 min lost.",
        "Other runs may be left out: jobs have written more than 100 MB of reports.",
    ]


def test_a_cluster_without_runs_has_no_part_of_them() -> None:
    with stubbed({}) as cluster:
        assert Runs().ask(cluster) is None
