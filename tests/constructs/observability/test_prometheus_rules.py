"""The rules of a workspace and its alert manager, as promtool and amtool see them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterPrometheus, Observability
from cdk_training_cluster.observability.prometheus_rules import ALERT_RULES, AlertRule, rules_file
from real_prometheus import run

# Of each alert a series that makes it fire, and a neighbour that does not: what is sent in the minutes 0 to 40. `{}`
# stands for the labels of a node; `others` are more of both.
FIRING: dict[str, tuple[str, str, list[str]]] = {
    "GpuFatalXid": ("DCGM_FI_DEV_XID_ERRORS{} 0x38 79x1", "DCGM_FI_DEV_XID_ERRORS{} 31x40", []),
    "GpuUncorrectableMemoryError": (
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{} 0x35 1x4",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{} 5x40",
        [],
    ),
    "GpuRowRemapFailed": ("DCGM_FI_DEV_ROW_REMAP_FAILURE{} 1x40", "DCGM_FI_DEV_ROW_REMAP_FAILURE{} 0x40", []),
    # Nine minutes are not ten.
    "GpuThermalThrottling": (
        "DCGM_FI_DEV_THERMAL_VIOLATION{} 0+7x40",
        "DCGM_FI_DEV_THERMAL_VIOLATION{} 0x31 0+7x8",
        [],
    ),
    "EfaRetransmissions": (
        "node_amazonefa_retrans_bytes{} 0+2x40",
        "node_amazonefa_retrans_bytes{} 0+1x40",
        ["node_amazonefa_tx_bytes{} 0+101x40"],
    ),
    "EfaRemoteUnresponsive": (
        "node_amazonefa_unresponsive_remote_events{} 0x35 1x4",
        "node_amazonefa_unresponsive_remote_events{} 9x40",
        [],
    ),
    "FileSystemNotAnswering": (
        'node_filesystem_device_error{fstype="lustre"} 1x40',
        'node_filesystem_device_error{fstype="xfs"} 1x40',
        [],
    ),
    "DiskAlmostFull": (
        'node_filesystem_avail_bytes{fstype="xfs"} 4x40',
        'node_filesystem_avail_bytes{fstype="xfs"} 6x40',
        ['node_filesystem_size_bytes{fstype="xfs"} 100x40'],
    ),
    "NodeMemoryAlmostFull": (
        "node_memory_MemAvailable_bytes{} 2x40",
        "node_memory_MemAvailable_bytes{} 4x40",
        ["node_memory_MemTotal_bytes{} 100x40"],
    ),
    "ExporterDown": ('up{job="dcgm"} 0x40', 'up{job="dcgm"} 0x30 1x9', []),
    # The neighbour goes on; of a group that is stopped none does.
    "NodeSilent": ('up{job="node"} 1x25', 'up{job="node"} 1x40', []),
}


def _series(text: str, **labels: str) -> dict[str, str]:
    series, _, values = text.partition("} ")
    own = series.rstrip("}").partition("{")
    given = [own[2], *(f'{name}="{value}"' for name, value in labels.items())]
    return {"series": f"{own[0]}{{{','.join(filter(None, given))}}}", "values": values}


def _case(alert: str) -> dict[str, Any]:
    fires, does_not, others = FIRING[alert]
    nodes = {"i-fires": [fires, *others], "i-not": [does_not, *others]}
    return {
        "name": alert,
        "interval": "1m",
        "input_series": [
            _series(text, cluster="llama", node_group="workers", instance=node)
            for node, series in nodes.items()
            for text in series
        ],
        "promql_expr_test": [
            {
                "expr": f'count by (instance) (ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "40m",
                "exp_samples": [{"labels": '{instance="i-fires"}', "value": 1}],
            }
        ],
    }


def test_promtool_takes_the_rules_and_each_alert_fires_for_its_reason_alone(tmp_path: Path) -> None:
    assert set(FIRING) == {rule.name for rule in ALERT_RULES}
    (tmp_path / "rules.yml").write_text(rules_file())
    checked = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", "rules.yml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    stopped = {
        "name": "a group that is stopped",
        "interval": "1m",
        "input_series": [_series('up{job="node"} 1x25', cluster="llama", node_group="workers", instance="i-1")],
        "promql_expr_test": [{"expr": "ALERTS", "eval_time": "40m", "exp_samples": []}],
    }
    written = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [*map(_case, FIRING), stopped, _described()],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(written))
    tested = run("promtool", "test", "rules", "tests.yml", cwd=tmp_path)
    assert tested.returncode == 0, tested.stderr + tested.stdout


def _described() -> dict[str, Any]:
    labels = {"cluster": "llama", "node_group": "workers", "instance": "i-1", "gpu": "3"}
    [rule] = [rule for rule in ALERT_RULES if rule.name == "GpuFatalXid"]
    return {
        "name": "what an alert says",
        "interval": "1m",
        "input_series": [_series("DCGM_FI_DEV_XID_ERRORS{} 79x5", **labels)],
        "alert_rule_test": [
            {
                "eval_time": "5m",
                "alertname": "GpuFatalXid",
                "exp_alerts": [
                    {
                        "exp_labels": {**labels, "severity": "critical"},
                        "exp_annotations": {
                            "summary": "Node i-1 of workers: GPU 3 reported Xid 79 and computes no more.",
                            "runbook": rule.runbook,
                        },
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize("rule", ALERT_RULES, ids=lambda rule: rule.name)
def test_each_alert_says_which_node_and_what_to_do(rule: AlertRule) -> None:
    assert "$labels.instance" in rule.summary
    assert rule.summary.endswith(".")
    assert rule.runbook.endswith(".")


def test_amtool_takes_the_alert_manager_s_definition(tmp_path: Path) -> None:
    stack = Stack(App(outdir=str(tmp_path / "out")), "Test", env=Environment(account="1" * 12, region="us-east-1"))
    ClusterPrometheus(
        stack,
        "Prometheus",
        cluster_name="llama",
        observability=Observability.prometheus(),
        alert_topic=sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:us-east-1:111111111111:alerts"),
    )
    [workspace] = Template.from_stack(stack).find_resources("AWS::APS::Workspace").values()
    joined = workspace["Properties"]["AlertManagerDefinition"]["Fn::Join"][1]
    definition = yaml.safe_load("".join(part if isinstance(part, str) else "us-east-1" for part in joined))
    for name, text in definition["template_files"].items():
        (tmp_path / name).write_text(text)
    (tmp_path / "alertmanager.yml").write_text(definition["alertmanager_config"])
    checked = run("amtool", "check-config", "alertmanager.yml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    for alert, receiver in {"NodeSilent": "alert-topic-without-ends", "ExporterDown": "alert-topic"}.items():
        routed = run(
            "amtool", "config", "routes", "test", "--config.file=alertmanager.yml", f"alertname={alert}", cwd=tmp_path
        )
        assert routed.stdout.strip() == receiver
    receivers = yaml.safe_load(definition["alertmanager_config"])["receivers"]
    ends = {each["name"]: sns_config["send_resolved"] for each in receivers for sns_config in each["sns_configs"]}
    assert ends == {"alert-topic": True, "alert-topic-without-ends": False}
    told = '{{ template "cluster.subject" . }}|{{ template "cluster.message" . }}'
    data = tmp_path / "data.json"
    data.write_text(json.dumps(_NOTIFICATION))
    rendered = run(
        "amtool", "template", "render", "--template.glob=cluster", f"--template.data={data}",
        f"--template.text={told}", cwd=tmp_path,
    )  # fmt: skip
    assert rendered.stdout.split("|")[0] == "llama: GpuRowRemapFailed"
    # A job may write samples, and a label's text is part of the sentence.
    assert rendered.stdout.split("|")[1].strip() == "firing: No spare rows. NOTICE: run this. Replace it."


_FORGED = "No spare rows.\n\n\x1b\u202eNOTICE: run this."
_NOTIFICATION = {
    "receiver": "alert-topic",
    "status": "firing",
    "commonLabels": {"cluster": "llama", "alertname": "GpuRowRemapFailed"},
    "alerts": [{"status": "firing", "labels": {}, "annotations": {"summary": _FORGED, "runbook": "Replace it."}}],
}
