"""What the constructs make is clean for the linters, with every kind of node group in it."""

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
from cdk_training_cluster import BillingAlarms, Budget, ClusterPower, IdleGroup, IdlePolicy, IdleScope
from cdk_training_cluster import IdleSignal, IdleStop, ResumeDocument
from cdk_training_cluster.power import PowerGroup
app = App(outdir="cdk.out")
stack = Stack(app, "Idle", env=Environment(region="us-east-1"))
topic = sns.Topic(stack, "Alerts", enforce_ssl=True)
fleet = "sfr-73fbd2ce-aa30-494c-8788-1cee4EXAMPLE"
power = ClusterPower(
    stack,
    "Power",
    cluster_name="pod",
    alert_topic=topic,
    groups={
        "workers": PowerGroup(count=8),
        "extras": PowerGroup(count=4, spot_fleet_id=fleet),
        "pod": PowerGroup(count=8, capacity_block="cr-0123456789abcdef0"),
        "held": PowerGroup(count=8, capacity_reservation_id="cr-0123456789abcdef1", released=True),
    },
)
IdleStop(
    stack,
    "IdleStop",
    cluster_name="pod",
    alert_topic=topic,
    policy=IdlePolicy(signals=[IdleSignal.session()]),
    node_groups={
        "workers": IdleGroup(policy=IdlePolicy(scope=IdleScope.NODE)),
        "extras": IdleGroup(spot_fleet_id=fleet),
    },
    power=power,
)
IdleStop(stack, "Alone", cluster_name="research", alert_topic=topic, tag_key="Team")
BillingAlarms(stack, "Billing", budget=Budget(monthly_usd=100), name="pod", alert_topic=topic)
ResumeDocument(stack, "Resume", cluster_name="pod", node_groups=["workers", "extras"], power=power)
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
"""


def test_neither_cdk_nag_nor_cfn_lint_finds_anything(tmp_path: Path) -> None:
    nagged = _nagged(_APP, tmp_path)
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "cdk.out/Idle.template.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (re.findall(r"AwsSolutions-[^']+", nagged.stderr), nagged.returncode) == ([], 0), nagged.stderr
    assert (linted.stdout, linted.returncode) == ("", 0)


def _nagged(app: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", app],
        cwd=directory,
        env={**os.environ, "CDK_VALIDATION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
