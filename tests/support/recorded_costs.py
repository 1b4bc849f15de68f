"""A month of a cluster's charges and metrics in real clients: botocore checks requests and answers."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.request import Request, urlopen

import boto3
from botocore.stub import ANY, Stubber

TODAY = date(2026, 11, 22)
START = TODAY - timedelta(days=30)
_HOURS = {
    # Eight nodes run on 22 days, four on the others; one day has a second run beside the first.
    "BoxUsage:p4de.24xlarge": [96 if day % 4 == 3 else 384 if day == 20 else 192 for day in range(30)],
    "UnusedBox:p4de.24xlarge": [24 if day in (5, 6) else 0 for day in range(30)],
}
_USD = {"BoxUsage:p4de.24xlarge": Decimal("27.44705"), "UnusedBox:p4de.24xlarge": Decimal("27.44705")}
_DAILY = {("Amazon FSx", "Storage-SSD"): "33.1397", ("EC2 - Other", "NatGateway-Hours"): "1.08"}


def group(service: str, usage_type: str, amount: object, quantity: object = 1, unit: str = "USD") -> dict[str, Any]:
    """Return a group as Cost Explorer writes it."""
    return {
        "Keys": [service, usage_type],
        "Metrics": {
            "AmortizedCost": {"Amount": str(amount), "Unit": unit},
            "UsageQuantity": {"Amount": str(quantity), "Unit": "N/A"},
        },
    }


def result(day: date, *groups: dict[str, Any]) -> dict[str, Any]:
    """Return a day as Cost Explorer writes it."""
    end = day + timedelta(days=1)
    return {
        "TimePeriod": {"Start": day.isoformat(), "End": end.isoformat()},
        "Total": {},
        "Groups": list(groups),
        "Estimated": True,
    }


def month() -> list[dict[str, Any]]:
    """Return the days of the recorded month."""
    return [
        result(
            START + timedelta(days=day),
            *(
                group("Amazon Elastic Compute Cloud - Compute", name, _USD[name] * hours[day], hours[day])
                for name, hours in _HOURS.items()
                if hours[day]
            ),
            *(group(*keys, amount) for keys, amount in _DAILY.items()),
        )
        for day in range(30)
    ]


def bill_yesterday(endpoint: str) -> None:
    """Let Cost Explorer of the local AWS answer with a day of one node.

    Args:
        endpoint: The address of the local AWS.
    """
    node = group("Amazon Elastic Compute Cloud - Compute", "BoxUsage:g5.xlarge", "24.14", 24)
    day = result(datetime.now(UTC).date() - timedelta(days=1), node)
    body = json.dumps({"results": [{"ResultsByTime": [day], "DimensionValueAttributes": []}]}).encode()
    address = f"{endpoint}/moto-api/static/ce/cost-and-usage-results"
    urlopen(Request(address, data=body, method="POST")).close()  # noqa: S310 - the local AWS


def hourly(number: int, value: float, *, hours: int = 720) -> dict[str, Any]:
    """Return a series that is the same in each hour."""
    start = datetime.combine(START, datetime.min.time(), UTC)
    return {
        "Id": f"m{number}",
        "Label": "",
        "Timestamps": [start + timedelta(hours=hour) for hour in range(hours)],
        "Values": [value] * hours,
        "StatusCode": "Complete",
    }


class RecordedSession:
    """A session of boto3 whose clients answer with what is recorded.

    Attributes:
        explorer: What Cost Explorer answers.
        watch: What CloudWatch answers.
    """

    def __init__(self) -> None:
        self._clients = {name: self._client(name) for name in ("ce", "cloudwatch")}
        self.explorer, self.watch = (Stubber(client) for client in self._clients.values())
        self.explorer.activate()
        self.watch.activate()

    @staticmethod
    def _client(name: Any) -> Any:
        return boto3.client(name, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106

    def client(self, name: str, *, region_name: str) -> Any:
        assert region_name == "us-east-1"
        return self._clients[name]

    def answers(self, *, start: date = START, denied: bool = False) -> "RecordedSession":
        """Return it with the recorded month in two pages, from a day on, and what the nodes did unless denied."""
        days = [day for day in month() if day["TimePeriod"]["Start"] >= start.isoformat()]
        page = {"TimePeriod": ANY, "Granularity": "DAILY", "Metrics": ANY, "GroupBy": ANY, "Filter": ANY}
        first, second = {"ResultsByTime": days[:16], "NextPageToken": "more"}, {"ResultsByTime": days[16:]}
        self.explorer.add_response("get_cost_and_usage", first, page)
        self.explorer.add_response("get_cost_and_usage", second, {**page, "NextPageToken": "more"})
        if denied:
            self.watch.add_client_error("get_metric_data", "AccessDenied")
            return self
        # Idle and running nodes, dollars in reservations, then utilization and memory of the one group.
        values = (1.5, 6, 0, 31, 92, 21_000)
        self.watch.add_response(
            "get_metric_data", {"MetricDataResults": [hourly(number, value) for number, value in enumerate(values)]}
        )
        return self
