"""What the cluster costs an hour, has cost this month, and will have cost."""

from collections.abc import Iterator, Mapping
from typing import Any

from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cluster_contract.spend import usd_text


class SpendSoFar(Part[Mapping[str, Any]]):
    """What the spend function says."""

    key = "spend"
    title = "Spend"

    def ask(self, cluster: Deployed) -> Mapping[str, Any] | None:
        """Ask the spend function."""
        return cluster.ask("spend")

    def lines(self, answer: Mapping[str, Any], moment: Moment) -> Iterator[Item]:  # noqa: ARG002 - as for Part
        """Yield the dollars, what the budget is about to do, and what is not counted."""
        budget, month = answer["budget_usd"], answer["month_to_date_usd"]
        share = f", {month / budget:.0%} of the budget of {usd_text(budget)}" if budget else ""
        yield (
            f"{usd_text(answer['usd_per_hour'])} an hour now; {usd_text(month)} in {answer['month']} so far{share}; "
            f"{usd_text(answer['forecast_usd'])} at the month's end if it goes on like this."
        )
        acts = answer["acts"]
        if acts["stops_at"]:
            yield f"The budget stops {', '.join(acts['stops'])} at {acts['stops_at']}."
        if answer["unknown_prices"]:
            yield f"Not counted, since their prices are not known: {', '.join(answer['unknown_prices'])}."
        if answer.get("gap"):
            yield answer["gap"]
