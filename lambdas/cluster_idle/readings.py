"""What CloudWatch has of the nodes, read in as few requests as it allows."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures
from cluster_contract.idle import PERIOD, IdleFunctionSettings, Policy, Signal, SignalKind
from cluster_contract.metrics import NODE_METRICS, job_namespace
from cluster_idle.accelerators import gpu_count, has_neuron_cores, is_measured
from cluster_idle.evidence import Evidence, NodeReadings, Samples, Series, floor, unreadable, weigh
from cluster_idle.instances import Instance

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MAX_QUERIES = 500
_MAX_POINTS = 100_800

# An agent reports its CPU use once a minute, so that the average of a period is a sixth of its maximum at least. What
# has the nodes' role, such as a job on HyperPod, may add samples, below zero too, which lower the average,
# and not the maximum. Both are billed as one metric.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_billing.html
_MOST_CPU_SAMPLES = 6

HEARTBEAT = "JobHeartbeat"
_EC2 = "AWS/EC2"
_SAMPLES = "SampleCount"

_NOTHING = "no result"
"""The status of what CloudWatch did not answer."""


@dataclass(frozen=True)
class _Metric:
    namespace: str
    name: str
    statistic: str


class MetricReader:
    """Reads what was measured of nodes, and weighs it at once, so that no more than one batch is kept."""

    def __init__(
        self, client: "CloudWatchClient", settings: IdleFunctionSettings, failures: Failures, now: datetime
    ) -> None:
        self._client = client
        self._settings = settings
        self._failures = failures
        self._now = now

    def read(self, instances: Sequence[Instance], sessions: Collection[str] | None) -> dict[str, Evidence]:
        """Return what is known of each instance, by its id.

        Args:
            instances: The instances to look at.
            sessions: The ids of those with an open session. None: that could not be read.
        """
        found: dict[str, Evidence] = {}
        for batch in self._batches(instances):
            try:
                found |= self._read_batch(batch, sessions)
            except AWS_ERRORS as error:
                self._failures.add(f"{len(batch)} instances", "their metrics could not be read", error)
                why = f"CloudWatch could not be read ({error_code(error)})"
                found |= {instance.id: unreadable(why) for instance in batch}
        return found

    def _batches(self, instances: Sequence[Instance]) -> Iterator[list[Instance]]:
        """Split the instances, so that each request has as many queries and points as CloudWatch takes."""
        spans: dict[object, list[Instance]] = {}
        for instance in instances:
            spans.setdefault(self._policy(instance).span, []).append(instance)
        for alike in spans.values():
            points = self._policy(alike[0]).span // PERIOD + 1
            most = min(_MAX_QUERIES, _MAX_POINTS // points)
            batch: list[Instance] = []
            queries = 0
            for instance in alike:
                own = sum(1 for _ in self._metrics(instance))
                if queries + own > most:
                    yield batch
                    batch, queries = [], 0
                batch.append(instance)
                queries += own
            yield batch

    def _read_batch(self, batch: Sequence[Instance], sessions: Collection[str] | None) -> dict[str, Evidence]:
        queries: list[MetricDataQueryTypeDef] = []
        for instance in batch:
            for _, metric in self._metrics(instance):
                queries.append(_query(f"q{len(queries)}", metric, instance.id))
        series = self._fetch(queries, self._policy(batch[0]))
        found: dict[str, Evidence] = {}
        number = 0
        for instance in batch:
            utilization, samples = Series(status=_NOTHING), None
            signals: dict[Signal, tuple[Series, ...]] = {}
            for signal, metric in self._metrics(instance):
                one = series.get(f"q{number}", Series(status=_NOTHING))
                if signal is None and metric.statistic == _SAMPLES:
                    samples = Samples(counts=one, gpus=gpu_count(instance.instance_type, self._settings.gpus))
                elif signal is None:
                    utilization = one
                elif signal.kind is not SignalKind.CPU:
                    signals[signal] = (*signals.get(signal, ()), one)
                elif instance.vcpus:
                    vcpus = instance.vcpus / (_MOST_CPU_SAMPLES if metric.statistic == "Maximum" else 1)
                    signals[signal] = (*signals.get(signal, ()), _in_vcpus(one, vcpus))
                number += 1
            readings = NodeReadings(
                utilization=utilization,
                samples=samples,
                signals=signals,
                has_session=None if sessions is None else instance.id in sessions,
            )
            found[instance.id] = weigh(
                readings, self._policy(instance), self._now, self._settings.tick, instance.launched
            )
        return found

    def _fetch(self, queries: "list[MetricDataQueryTypeDef]", policy: Policy) -> dict[str, Series]:
        """Read the series of all queries, page by page; the last page that has one says whether it is complete."""
        request: dict[str, Any] = {
            "MetricDataQueries": queries,
            "StartTime": floor(self._now) - policy.span,
            "EndTime": self._now,
            "ScanBy": "TimestampDescending",
        }
        points: dict[str, list[tuple[datetime, float]]] = {}
        statuses: dict[str, str] = {}
        while True:
            answer = self._client.get_metric_data(**request)
            for result in answer["MetricDataResults"]:
                query = result.get("Id", "")
                new = zip(result.get("Timestamps", []), result.get("Values", []), strict=True)
                points.setdefault(query, []).extend(new)
                statuses[query] = result.get("StatusCode", _NOTHING)
            if not answer.get("NextToken"):
                return {query: Series(points=points[query], status=statuses[query]) for query in points}
            request["NextToken"] = answer["NextToken"]

    def _metrics(self, instance: Instance) -> Iterator[tuple[Signal | None, _Metric]]:
        """Yield the metrics to read of an instance: of its utilization, and of the signals that have any."""
        namespace = self._settings.node_namespace
        if has_neuron_cores(instance.instance_type):
            # A node reports all of its cores or none, which it sees to itself.
            yield None, _Metric(namespace, NODE_METRICS.neuron_core_utilization, "Maximum")
        elif not (is_measured(instance.instance_type) or instance.instance_type in self._settings.gpus):
            # Likewise, as the node group's command says it.
            yield None, _Metric(namespace, NODE_METRICS.accelerator_utilization, "Maximum")
        else:
            yield None, _Metric(namespace, NODE_METRICS.gpu_utilization, "Maximum")
            yield None, _Metric(namespace, NODE_METRICS.gpu_utilization, _SAMPLES)
        for signal in self._policy(instance).signals:
            if signal.kind is SignalKind.CPU:
                # EC2 publishes whole percents where the hypervisor is Nitro; the agent of our nodes does not.
                if instance.node_group in self._settings.groups:
                    yield signal, _Metric(namespace, NODE_METRICS.cpu_usage, "Average")
                    yield signal, _Metric(namespace, NODE_METRICS.cpu_usage, "Maximum")
                else:
                    yield signal, _Metric(_EC2, "CPUUtilization", "Average")
            elif signal.kind is SignalKind.NETWORK:
                yield signal, _Metric(_EC2, "NetworkIn", "Sum")
                yield signal, _Metric(_EC2, "NetworkOut", "Sum")
            elif signal.kind is SignalKind.GPU_MEMORY:
                yield signal, _Metric(namespace, NODE_METRICS.gpu_memory_used, "Maximum")
            elif signal.kind is SignalKind.HEARTBEAT:
                yield signal, _Metric(job_namespace(self._settings.cluster), HEARTBEAT, _SAMPLES)
            elif signal.kind is SignalKind.METRIC:
                yield signal, _Metric(signal.namespace or namespace, signal.metric, signal.statistic)

    def _policy(self, instance: Instance) -> Policy:
        return self._settings.policy_of(instance.node_group)


def _in_vcpus(percent: Series, vcpus: float) -> Series:
    return replace(percent, points=[(when, value * vcpus / 100) for when, value in percent.points])


def _query(id: str, metric: _Metric, instance: str) -> "MetricDataQueryTypeDef":
    return {
        "Id": id,
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": "InstanceId", "Value": instance}],
            },
            "Period": int(PERIOD.total_seconds()),
            "Stat": metric.statistic,
        },
    }
