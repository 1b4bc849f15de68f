import json
from typing import Any

from cdk_training_cluster_stacks.status.part import Moment
from cdk_training_cluster_stacks.status.runs import Runs
from cluster_contract.runs import REPORTS
from stubbed_cluster import NOW, stubbed

_TOTALS = {"kept_seconds": 9000.0, "lost_seconds": 1000.0, "finished": False}


def _item(run: str, ago: float, totals: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    value = {"at": NOW.timestamp() - ago, "totals": {**_TOTALS, **(totals or {})}, "step": 12345, **more}
    return {"run": {"S": REPORTS}, "key": {"S": run}, "value": {"B": json.dumps(value).encode()}}


_ITEMS = [
    _item("llama-1", 40, StepSeconds=1.25, CostUsd=1234.5, cost_cap_usd=20000, slowest_ranks=[[17, 1.31]],
          CheckpointFailures=2.0,
          low_utilization="GPUs run kernels for 41 % of the time",
          likely_cause={"kind": "one rank", "sentence": "rank 17 on i-1 takes 1.31 times as long\x1b[2J"}),
    _item("ended", 7200, {"finished": True}),
    _item("lost", 3600, {"kept_seconds": 0.0, "lost_seconds": 0.0}),
    _item("last-week", 7 * 86400),
    {**_item("torn", 10), "value": {"B": b"{"}},
    {**_item("of another kind", 10), "value": {"B": b"[]"}},
]  # fmt: skip


def test_runs_say_how_far_they_are_what_they_lost_and_what_slows_them_down() -> None:
    query = {
        "TableName": "runs",
        "KeyConditionExpression": "#run = :reports",
        "ExpressionAttributeNames": {"#run": "run"},
        "ExpressionAttributeValues": {":reports": {"S": REPORTS}},
    }
    with stubbed({"dynamodb": [("Query", query, {"Items": _ITEMS})]}) as cluster:
        answer = Runs().ask(cluster)

    assert answer is not None
    assert list(Runs().lines(answer, Moment(now=NOW, notes={}))) == [
        "llama-1: reported 40 s ago, step 12,345 at 1.25 s each, 90.0 % of its time was training, 16 min lost, "
        "1,234.50 USD of 20,000 USD, 2 checkpoints in a row could not be written, slow ranks: 17.",
        "llama-1: low utilization: GPUs run kernels for 41 % of the time.",
        "llama-1: likely slowed down (one rank): rank 17 on i-1 takes 1.31 times as long[2J.",
        "lost: silent for 1 h 0 min, step 12,345.",
        "ended: finished 2 h 0 min ago, step 12,345, 90.0 % of its time was training, 16 min lost.",
    ]


def test_a_cluster_without_runs_has_no_part_of_them() -> None:
    with stubbed({}) as cluster:
        assert Runs().ask(cluster) is None
