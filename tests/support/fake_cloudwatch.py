"""CloudWatch in memory: it answers with what nodes have reported."""

from datetime import datetime
from typing import Any

from fake_instances import FakeInstances
from fake_service import FakeService

UTILIZATION = "nvidia_smi_utilization_gpu"


class FakeCloudWatch(FakeService):
    """The client of CloudWatch.

    Attributes:
        statuses: What it says of the series of some instances in place of `Complete`.
        page: How many results one answer has.
    """

    def __init__(self, ec2: FakeInstances) -> None:
        super().__init__("cloudwatch")
        self._ec2 = ec2
        self.statuses: dict[str, str] = {}
        self.page = 4

    def get_metric_data(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetMetricData page by page, the newest points first."""
        self.record("GetMetricData", parameters)
        queries = parameters["MetricDataQueries"]
        assert 1 <= len(queries) <= 500
        start = int(parameters.get("NextToken") or 0)
        end = start + self.page
        results = [self._result(query, parameters) for query in queries[start:end]]
        return {"MetricDataResults": results, **({"NextToken": str(end)} if end < len(queries) else {})}

    def _result(self, query: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        stat = query["MetricStat"]
        assert stat["Period"] == 300
        metric, (dimension,) = stat["Metric"], stat["Metric"]["Dimensions"]
        assert dimension["Name"] == "InstanceId"
        points = self._points(dimension["Value"], metric["MetricName"], stat["Stat"])
        within = sorted(
            (
                (when, value)
                for when, value in points.items()
                if parameters["StartTime"] <= when < parameters["EndTime"]
            ),
            reverse=True,
        )
        return {
            "Id": query["Id"],
            "Label": metric["MetricName"],
            "Timestamps": [when for when, _ in within],
            "Values": [value for _, value in within],
            "StatusCode": self.statuses.get(dimension["Value"], "Complete"),
        }

    def _points(self, instance: str, metric: str, statistic: str) -> dict[datetime, float]:
        node = self._ec2.nodes[instance]
        if metric not in (UTILIZATION, "neuroncore_utilization"):
            return node.others.get(metric, {})
        # All of a p5.48xlarge's GPUs, five times in each period.
        return dict.fromkeys(node.points, 8 * 5.0) if statistic == "SampleCount" else node.points
