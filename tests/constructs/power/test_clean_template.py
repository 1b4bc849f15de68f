"""What the construct makes is clean for the linters, with every kind of node group in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

# The linters look at an app of its own, so that CDK's validation is on for it alone.
_APP = """
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks
from cdk_training_cluster.power import ClusterPower, PowerGroup
app = App(outdir="cdk.out")
stack = Stack(app, "Power", env=Environment(region="us-east-1"))
ClusterPower(
    stack,
    "Power",
    cluster_name="base-pod",
    alert_topic=sns.Topic(stack, "Alerts", enforce_ssl=True),
    groups={
        "workers": PowerGroup(count=8),
        "extras": PowerGroup(count=4, spot_fleet_id="sfr-73fbd2ce-aa30-494c-8788-1cee4EXAMPLE"),
        "pod": PowerGroup(count=8, capacity_block="cr-0123456789abcdef0"),
        "held": PowerGroup(count=8, capacity_reservation_id="cr-0123456789abcdef1", released=True),
    },
)
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
"""


def test_neither_cdk_nag_nor_cfn_lint_finds_anything(tmp_path: Path) -> None:
    nagged = subprocess.run(
        [sys.executable, "-c", _APP],
        cwd=tmp_path,
        env={**os.environ, "CDK_VALIDATION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "cdk.out/Power.template.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (re.findall(r"AwsSolutions-[^']+", nagged.stderr), nagged.returncode) == ([], 0), nagged.stderr
    assert (linted.stdout, linted.returncode) == ("", 0)


def test_a_finding_would_be_heard(tmp_path: Path) -> None:
    broken = _APP.replace(", enforce_ssl=True", "")

    nagged = subprocess.run(
        [sys.executable, "-c", broken],
        cwd=tmp_path,
        env={**os.environ, "CDK_VALIDATION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "AwsSolutions-SNS3" in nagged.stderr
