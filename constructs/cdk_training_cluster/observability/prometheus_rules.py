"""What Prometheus records and alerts on: one table, from which the rules file of a cluster's workspace is made.

The limits of a rules file and of its expressions:
https://docs.aws.amazon.com/prometheus/latest/userguide/AMP_quotas.html
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cdk_training_cluster.nodes.bootstrap.collector import EFA_PREFIX, NEURON_UTILIZATION


class Severity(Enum):
    """How soon an alert asks for a person."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class RecordingRule:
    """A series that Prometheus computes once a minute, so that dashboards of large clusters stay fast.

    Attributes:
        name: The series' name: the level of its labels, what it is, how it was made.
        expression: How it is computed.
    """

    name: str
    expression: str


@dataclass(frozen=True, kw_only=True)
class AlertRule:
    """A condition that the alert topic is notified of.

    Attributes:
        name: Its name.
        expression: When it holds.
        minutes: For how long it must have held.
        severity: How soon it asks for a person.
        summary: What happened, in one sentence; it may name labels and the value.
        runbook: What to do, in one sentence or two.
    """

    name: str
    expression: str
    minutes: int
    severity: Severity
    summary: str
    runbook: str


_BY_NODE = "cluster, node_group, instance"
_NODE = "Node {{ $labels.instance }} of {{ $labels.node_group }}"
_REPLACE = (
    "Let the job save a checkpoint, and terminate the node with `training-cluster terminate`: its group launches "
    "another"
)

RECORDING_RULES: Final[Sequence[RecordingRule]] = (
    RecordingRule(
        name="node:accelerator_utilization:avg",
        expression=f"avg by ({_BY_NODE}) (DCGM_FI_DEV_GPU_UTIL or {NEURON_UTILIZATION} * 100)",
    ),
    RecordingRule(
        name="node:efa_received_bytes:rate5m", expression=f"sum by ({_BY_NODE}) (rate({EFA_PREFIX}rx_bytes[5m]))"
    ),
    RecordingRule(
        name="node:efa_sent_bytes:rate5m", expression=f"sum by ({_BY_NODE}) (rate({EFA_PREFIX}tx_bytes[5m]))"
    ),
    RecordingRule(
        name="node:efa_retransmitted_bytes:ratio5m",
        expression=(
            f"sum by ({_BY_NODE}) (rate({EFA_PREFIX}retrans_bytes[5m])) "
            f"/ (sum by ({_BY_NODE}) (rate({EFA_PREFIX}tx_bytes[5m])) > 0)"
        ),
    ),
)

# After these a GPU must be reset, or its host replaced, before it computes again; others are a job's own errors.
# https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
FATAL_XIDS: Final = (46, 48, 62, 64, 79, 95, 119, 120, 140)

ALERT_RULES: Final[Sequence[AlertRule]] = (
    AlertRule(
        name="GpuFatalXid",
        expression=" or ".join(f"DCGM_FI_DEV_XID_ERRORS == {xid}" for xid in FATAL_XIDS),
        minutes=0,
        severity=Severity.CRITICAL,
        summary=f"{_NODE}: GPU {{{{ $labels.gpu }}}} reported Xid {{{{ $value }}}} and computes no more.",
        runbook=f"Look up the Xid in NVIDIA's catalog. {_REPLACE}.",
    ),
    AlertRule(
        name="GpuUncorrectableMemoryError",
        expression=(
            "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[15m]) > 0 "
            "or increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS[15m]) > 0"
        ),
        minutes=0,
        severity=Severity.CRITICAL,
        summary=f"{_NODE}: memory of GPU {{{{ $labels.gpu }}}} had an error that ECC could not correct.",
        runbook="The job on it has failed, or its results are not to be trusted: restore it from its last "
        "checkpoint. Reboot the node, which puts a spare row into place; replace it if the error comes again.",
    ),
    AlertRule(
        name="GpuRowRemapFailed",
        expression="DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        minutes=0,
        severity=Severity.CRITICAL,
        summary=f"{_NODE}: GPU {{{{ $labels.gpu }}}} has no spare memory rows left.",
        runbook=f"{_REPLACE}. Report the old one to AWS Support.",
    ),
    AlertRule(
        name="GpuThermalThrottling",
        expression="rate(DCGM_FI_DEV_THERMAL_VIOLATION[5m]) > 0",
        minutes=10,
        severity=Severity.WARNING,
        summary=f"{_NODE}: GPU {{{{ $labels.gpu }}}} has been slowed down by its temperature for 10 minutes.",
        runbook="One slow GPU slows the whole job. If other nodes at the same work stay cool, replace this one.",
    ),
    AlertRule(
        name="EfaRetransmissions",
        expression="node:efa_retransmitted_bytes:ratio5m > 0.01",
        minutes=10,
        severity=Severity.WARNING,
        summary=f"{_NODE}: EFA sends {{{{ $value | humanizePercentage }}}} of its bytes again.",
        runbook="If many nodes do, the network is congested: see that all of them are in the placement group. If one "
        "does, replace it.",
    ),
    AlertRule(
        name="EfaRemoteUnresponsive",
        expression=f"sum by ({_BY_NODE}) (increase({EFA_PREFIX}unresponsive_remote_events[10m])) > 0",
        minutes=0,
        severity=Severity.WARNING,
        summary=f"{_NODE}: another node does not answer it over EFA.",
        runbook="Look for a node of the same job that has ended or hangs; the job's ranks on it are lost.",
    ),
    AlertRule(
        name="FileSystemNotAnswering",
        expression='node_filesystem_device_error{fstype="lustre"} > 0',
        minutes=5,
        severity=Severity.CRITICAL,
        summary=f"{_NODE}: {{{{ $labels.mountpoint }}}} has not answered for 5 minutes.",
        runbook="Look at the file system in the FSx console. If other nodes read it, look at the node's kernel log "
        "with `dmesg` for messages of Lustre, and reboot it.",
    ),
    AlertRule(
        name="DiskAlmostFull",
        expression='node_filesystem_avail_bytes{fstype!="tmpfs"} / node_filesystem_size_bytes < 0.05',
        minutes=10,
        severity=Severity.WARNING,
        summary=f"{_NODE}: {{{{ $labels.mountpoint }}}} has {{{{ $value | humanizePercentage }}}} of its space left.",
        runbook="Delete what is not needed, or make the volume or file system larger, before writes fail.",
    ),
    AlertRule(
        name="NodeMemoryAlmostFull",
        expression="node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.03",
        minutes=5,
        severity=Severity.WARNING,
        summary=f"{_NODE} has {{{{ $value | humanizePercentage }}}} of its memory left.",
        runbook="The kernel will end processes: give data loaders fewer workers, or smaller buffers.",
    ),
    AlertRule(
        name="ExporterDown",
        expression="up == 0",
        minutes=10,
        severity=Severity.WARNING,
        summary=f"{_NODE} sends no metrics of its {{{{ $labels.job }}}} exporter.",
        runbook="Nothing is known of what it measures. Read `journalctl -u 'cdk-training-cluster-*'` on the node, "
        "and restart the service.",
    ),
    # A group that is stopped as a whole falls silent as a whole, and is no reason for an alert.
    AlertRule(
        name="NodeSilent",
        expression=(
            'max_over_time(up{job="node"}[20m]) unless on (instance) up{job="node"} '
            'and on (cluster, node_group) count by (cluster, node_group) (up{job="node"})'
        ),
        minutes=5,
        severity=Severity.WARNING,
        summary=f"{_NODE} has sent no metrics for 10 minutes, while others of its group do.",
        runbook="If it was stopped or replaced on purpose, there is nothing to do. Else look at its status checks "
        "and its console output: a node that hangs is billed.",
    ),
)


def rules_file(interval: str = "1m") -> str:
    """Return the rules file of a workspace, as YAML.

    Args:
        interval: How often the rules are evaluated. Default: - once a minute.
    """
    lines = ["groups:", "- name: recording", f"  interval: {interval}", "  rules:"]
    for rule in RECORDING_RULES:
        lines += [f"  - record: {json.dumps(rule.name)}", f"    expr: {json.dumps(rule.expression)}"]
    lines += ["- name: alerts", f"  interval: {interval}", "  rules:"]
    for alert in ALERT_RULES:
        lines += [
            f"  - alert: {alert.name}",
            f"    expr: {json.dumps(alert.expression)}",
            f"    for: {alert.minutes}m",
            "    labels:",
            f"      severity: {alert.severity.value}",
            "    annotations:",
            f"      summary: {json.dumps(alert.summary)}",
            f"      runbook: {json.dumps(alert.runbook)}",
        ]
    return "\n".join(lines) + "\n"
