"""What the training runs of a cluster reported last."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.observe.ages import span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cdk_training_cluster_cli.observe.status.run_report import RunReport, report_of
from cluster_contract.runs import REPORTS, RunMetric
from cluster_contract.spend import usd_text

_SILENT_AFTER = timedelta(minutes=5)  # rank 0 reports once a minute
_HANG_SECONDS = 86_400
_SHOWN, _SLOWEST = 20, 3

_MOST_PAGES = 100  # of 1 MB each, which hold the reports of 100,000 runs


@dataclass(frozen=True, kw_only=True)
class Reports:
    """What was read.

    Attributes:
        runs: The names of runs with their reports, the newest first.
        is_whole: Whether the table holds no other.
    """

    runs: Sequence[tuple[str, RunReport]]
    is_whole: bool = True


class Runs(Part[Reports]):
    """What the runs' table holds of runs that reported within a day. Jobs write it: what is no report is left out."""

    key = "runs"
    title = "Training runs"

    def ask(self, cluster: Deployed) -> Reports | None:
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
            read = list(itertools.islice(pages, _MOST_PAGES))
        found = [report_of(item, cluster.now) for page in read for item in page["Items"]]
        runs = sorted((one for one in found if one is not None), key=lambda one: -one[1].at)
        is_whole = not read or "LastEvaluatedKey" not in read[-1]
        return Reports(runs=runs, is_whole=is_whole) if runs or not is_whole else None

    def lines(self, answer: Reports, moment: Moment) -> Iterator[Item]:
        """Yield a sentence or two on each."""
        shown = answer.runs if moment.all else answer.runs[:_SHOWN]
        for run, one in shown:
            yield f"{run}: {', '.join(_facts(one, moment.now))}."
            if one.totals.finished:
                continue
            since_hang = moment.now.timestamp() - one.hang.at if one.hang else _HANG_SECONDS
            if one.hang and since_hang < _HANG_SECONDS:
                yield f"{run}: {span(timedelta(seconds=since_hang))} ago {one.hang.sentence}."
            if one.low_utilization:
                yield f"{run}: low utilization: {one.low_utilization}."
            if one.likely_cause:
                yield f"{run}: likely slowed down ({one.likely_cause.kind}): {one.likely_cause.sentence}."
        if len(shown) < len(answer.runs):
            yield f"{len(answer.runs) - len(shown)} more: --all shows them."
        if not answer.is_whole:
            yield f"Other runs may be left out: jobs have written more than {_MOST_PAGES} MB of reports."

    def values(self, answer: Reports) -> Sequence[Mapping[str, object]]:
        """Return each report."""
        return [one.values(run) for run, one in answer.runs]


def _facts(one: RunReport, now: datetime) -> Iterator[str]:
    ago = max(now - one.time, timedelta())
    if one.totals.finished:
        yield f"finished {span(ago)} ago"
    else:
        yield f"silent for {span(ago)}" if ago > _SILENT_AFTER else f"reported {span(ago)} ago"
    seconds = one.metric(RunMetric.STEP_SECONDS)
    if one.step is not None:
        yield f"step {one.step:,}" + (f" at {seconds:.3g} s each" if seconds is not None else "")
    if one.goodput_percent is not None:
        lost = span(timedelta(seconds=one.totals.lost_seconds))
        yield f"{one.goodput_percent:.1f} % of its time was training, {lost} lost"
    cost, cap = one.metric(RunMetric.COST), one.cost_cap_usd
    if cost is not None:
        yield usd_text(cost) + (f" of {usd_text(cap)}" if cap is not None else "")
    failed = one.metric(RunMetric.CHECKPOINT_FAILURES)
    if failed:
        yield f"{failed:.0f} checkpoint{'s' if failed > 1 else ''} in a row could not be written"
    if one.metric(RunMetric.NON_FINITE_LOSS):
        yield "the loss is no finite number, and no checkpoint is written"
    if one.slowest_ranks:
        yield f"slow ranks: {', '.join(str(rank) for rank, _ in one.slowest_ranks[:_SLOWEST])}"
