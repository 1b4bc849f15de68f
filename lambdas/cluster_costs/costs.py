"""One run: is a report due, what was billed, send it, remember that."""

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_common.messages import publish, subject
from cluster_common.metrics import CLUSTER_DIMENSION, emit_counts
from cluster_common.state_table import StateTable
from cluster_contract.bill import NoBillError, fetch_bill
from cluster_contract.costs import CostFunctionSettings, CostMetric
from cluster_contract.state import StatePart
from cluster_costs.report import DAYS, report_text

if TYPE_CHECKING:
    pass

# The newest report: the Monday after its week, and its text until it is sent.
_ITEM, _WEEK, _TEXT = "report", "week", "text"
# Cost Explorer has a day at the end of the next: on Tuesday it has Sunday.
# https://docs.aws.amazon.com/cost-management/latest/userguide/ce-what-is.html
_SETTLES = timedelta(days=1)


class CostRun:
    """Sends each week's report once; a run that fails leaves it to the next.

    The text is kept before it is sent, since Cost Explorer bills each request. That it is sent is remembered
    afterwards: a crash between the two sends it twice, and never loses it.
    """

    def __init__(self, settings: CostFunctionSettings, aws: Clients, logger: Logger, *, now: datetime) -> None:
        """Know what to do.

        Args:
            settings: The settings.
            aws: The clients.
            logger: Where the week is logged.
            now: The time, in UTC.
        """
        self._settings = settings
        self._aws = aws
        self._logger = logger
        self._now = now

    def run(self) -> dict[str, object]:
        """Send the report that is due, if any, and return what was done.

        Raises:
            ClientError: AWS refuses; the report is sent by a later run.
        """
        settings, end = self._settings, last_monday(self._now - _SETTLES)
        table = StateTable(self._aws.dynamodb(), settings.state_table, StatePart.COSTS.key(settings.cluster))
        seen = table.read(_ITEM)
        if str(seen.values.get(_WEEK, "")) < end.isoformat():
            seen = table.write(_ITEM, {_WEEK: end.isoformat(), _TEXT: self._text(end)}, seen=seen)
        due = _TEXT in seen.values
        if due:
            title = subject(f"{settings.cluster}: costs of the week to {end - timedelta(days=1)}")
            publish(self._aws.sns(), settings.topic_arn, title, seen.values[_TEXT])
            table.write(_ITEM, {_WEEK: end.isoformat()}, seen=seen)
            self._logger.info("sent the report of the week before %s", end)
        emit_counts({CostMetric.SUCCESSFUL_TICKS: 1}, **{CLUSTER_DIMENSION: settings.cluster})
        return {"cluster": settings.cluster, "week_before": end.isoformat(), "sent": due}

    def _text(self, end: date) -> str:
        settings = self._settings
        try:
            bill = fetch_bill(
                self._aws.cost_explorer(), settings.cluster, settings.region, end - timedelta(days=DAYS), end
            )
        except NoBillError as error:
            return f"{error}\n"
        return report_text(settings.cluster, bill)


def last_monday(moment: datetime) -> date:
    """Return the Monday of a moment's week.

    Args:
        moment: The moment, in UTC.
    """
    return moment.date() - timedelta(days=moment.weekday())
