"""What the training runs of a cluster reported last."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cdk_training_cluster_stacks.checkpoints.refusals import plain_refusals
from cdk_training_cluster_stacks.looking.deployed import Deployed
from cdk_training_cluster_stacks.looking.times import span
from cdk_training_cluster_stacks.status.part import Item, Moment, Part
from cluster_contract.runs import REPORTS, RunMetric
from cluster_contract.spend import usd_text

_LOOK_BACK = timedelta(days=1)
_SILENT_AFTER = timedelta(minutes=5)  # rank 0 reports once a minute
_SHOWN, _SLOWEST = 20, 3


class Runs(Part[Sequence[Mapping[str, Any]]]):
    """What the runs' table holds of runs that reported within a day. Jobs write it: what is no report is left out."""

    key = "runs"
    title = "Training runs"

    def ask(self, cluster: Deployed) -> Sequence[Mapping[str, Any]] | None:
        """Query the runs' table."""
        table = cluster.description.runs_table
        if not table:
            return None
        with plain_refusals("the table of the runs"):
            # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html
            pages = (
                cluster.client("dynamodb")
                .get_paginator("query")
                .paginate(
                    TableName=table,
                    KeyConditionExpression="#run = :reports",
                    ExpressionAttributeNames={"#run": "run"},
                    ExpressionAttributeValues={":reports": {"S": REPORTS}},
                )
            )
            found = [_report(item, cluster.now) for page in pages for item in page["Items"]]
        return sorted((one for one in found if one is not None), key=lambda one: -one["at"]) or None

    def lines(self, answer: Sequence[Mapping[str, Any]], moment: Moment) -> Iterator[Item]:
        """Yield a sentence or two on each."""
        shown = answer if moment.all else answer[:_SHOWN]
        for one in shown:
            yield f"{one['run']}: {', '.join(_facts(one, moment.now))}."
            if one["finished"]:
                continue
            low, cause = one.get("low_utilization"), one.get("likely_cause")
            if isinstance(low, str):
                yield f"{one['run']}: low utilization: {_plain(low)}."
            if isinstance(cause, dict):
                yield f"{one['run']}: likely slowed down ({cause.get('kind')}): {_plain(cause.get('sentence'))}."
        if len(shown) < len(answer):
            yield f"{len(answer) - len(shown)} more: --all shows them."


def _report(item: Mapping[str, Any], now: datetime) -> Mapping[str, Any] | None:
    """Return what a run reported. None: it is old, or no report."""
    try:
        found = json.loads(item["value"]["B"])
        totals = found.pop("totals")
        kept, lost = float(totals["kept_seconds"]), float(totals["lost_seconds"])
        at = float(found["at"])
        if now - datetime.fromtimestamp(at, UTC) > _LOOK_BACK:
            return None
        return {
            **found,
            "run": _plain(item["key"]["S"]),
            "at": at,
            "finished": bool(totals["finished"]),
            "goodput_of_run_percent": 100 * kept / (kept + lost) if kept + lost else None,
            "lost_seconds_of_run": lost,
        }
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _facts(one: Mapping[str, Any], now: datetime) -> Iterator[str]:
    ago = now - datetime.fromtimestamp(one["at"], UTC)
    if one["finished"]:
        yield f"finished {span(ago)} ago"
    else:
        yield f"silent for {span(ago)}" if ago > _SILENT_AFTER else f"reported {span(ago)} ago"
    step, seconds = one.get("step"), one.get(RunMetric.STEP_SECONDS)
    if isinstance(step, int):
        yield f"step {step:,}" + (f" at {seconds:.3g} s each" if isinstance(seconds, float) else "")
    if one["goodput_of_run_percent"] is not None:
        lost = span(timedelta(seconds=one["lost_seconds_of_run"]))
        yield f"{one['goodput_of_run_percent']:.1f} % of its time was training, {lost} lost"
    cost, cap = one.get(RunMetric.COST), one.get("cost_cap_usd")
    if isinstance(cost, float):
        yield usd_text(cost) + (f" of {usd_text(cap)}" if isinstance(cap, int | float) else "")
    failed = one.get(RunMetric.CHECKPOINT_FAILURES)
    if isinstance(failed, float) and failed:
        yield f"{failed:.0f} checkpoint{'s' if failed > 1 else ''} in a row could not be written"
    slow = one.get("slowest_ranks")
    if isinstance(slow, list) and slow:
        yield f"slow ranks: {', '.join(_plain(rank) for rank, *_ in slow[:_SLOWEST])}"


def _plain(text: object) -> str:
    """Return a text without what a terminal would act on."""
    return "".join(one for one in str(text) if one.isprintable())
