"""What the constructs make passes the linters: CDK's own validation, cdk-nag with what is acknowledged, cfn-lint."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# An app of its own, so that CDK's validation is on for it alone. With an argument, nothing is acknowledged, and what
# would have been is reported.
_APP = """
import json, sys
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks
from cdk_training_cluster import *
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.bootstrap import NodeBootstrap

told, find = [], Validations.of

class Told:
    def __init__(self, construct):
        self.construct = construct
    def acknowledge(self, *given):
        told.extend([self.construct.node.path, one.id] for one in given)
    def __getattr__(self, name):
        return getattr(find(self.construct), name)

if sys.argv[1:]:
    Validations.of = staticmethod(Told)
app = App(outdir="cdk.out")
place = Environment(account="111122223333", region="us-east-1")

# Every way to buy and every guardrail.
ways = {
    "on-demand": {"warm_pool": WarmPool(size=2), "idle_policy": IdlePolicy(scope=IdleScope.NODE)},
    "reserved": {"capacity": Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)},
    "existing": {"capacity": Capacity.from_reservation("cr-0123456789abcdef0", placement_group="rack")},
    "block": {"capacity": Capacity.capacity_block("cr-0a1b2c3d4e5f67890")},
    "spot": {"capacity": Capacity.spot(), "instance_types": ["g5.48xlarge", "g6e.48xlarge"]},
    "spot-limited": {"capacity": Capacity.spot(max_price=12.5), "instance_types": ["g5.48xlarge"]},
    "fleet": {"capacity": Capacity.spot_fleet(max_price=9), "instance_types": ["g5.48xlarge", "g6e.48xlarge"]},
    "prioritized": {
        "capacity": Capacity.prioritized(
            reservations=["cr-0123456789abcdef1"], capacity_blocks=["cr-0123456789abcdef2"]
        ),
        "instance_types": ["p5.48xlarge", "p5en.48xlarge"],
    },
}
TrainingCluster(
    Stack(app, "Cluster", env=place),
    "Cluster",
    availability_zone="us-east-1b",
    node_groups=[
        NodeGroup(name, **{"instance_types": ["p5.48xlarge"], "count": 8, **settings})
        for name, settings in ways.items()
    ],
    idle_policy=IdlePolicy(signals=[IdleSignal.session()]),
    budget=Budget(monthly_usd=100),
)
alone = Stack(app, "Alone", env=place)
IdleStop(
    alone,
    "Idle",
    cluster_name="research",
    alert_topic=sns.Topic(alone, "Alerts", enforce_ssl=True),
    tag_key="Team",
)
# What knows no resource is a role's owner's to acknowledge: other actions of the role are of that kind too.
roles = Stack(app, "Roles", env=place)
made = iam.Role(roles, "Made", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
imported = iam.Role.from_role_arn(roles, "Imported", "arn:aws:iam::111122223333:role/nodes")
for role in (made, imported):
    for group in ("workers", "extras"):
        NodeBootstrap(roles, f"{role.node.id}{group}", cluster_name="llama", node_group=group, role=role,
                      instance_type=instance_type_info("p5.48xlarge"), launch_hook="ready")
find(app).add_plugins(AwsSolutionsChecks(app))
print(json.dumps(told))
app.synth()
"""


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _APP, *arguments],
        cwd=directory,
        env={**os.environ, "CDK_VALIDATION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


def _findings(directory: Path) -> set[tuple[str, str]]:
    """Return what the validation report holds: the path of a construct, and the rule that it breaks."""
    report: Any = json.loads((directory / "cdk.out/validation-report.json").read_text())
    return {
        (construct["constructPath"], violation["ruleName"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
        if not violation["ruleName"].startswith("cdk-training-cluster:")
    }


def test_no_linter_finds_what_is_not_acknowledged_but_for_a_role_s_owner(tmp_path: Path) -> None:
    ended = _run(tmp_path)
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), *sorted((tmp_path / "cdk.out").glob("*.template.json"))],
        capture_output=True,
        text=True,
        check=False,
    )

    found = _findings(tmp_path)
    assert {path.partition("/")[0] for path, _ in found} == {"Roles"}, ended.stderr
    assert {rule for _, rule in found} == {"AwsSolutions-IAM5[Resource::*]"}
    assert (linted.stdout, linted.returncode) == ("", 0)


@pytest.mark.sweep("test_no_linter_finds_what_is_not_acknowledged_but_for_a_role_s_owner")
def test_nothing_is_acknowledged_that_is_not_found(tmp_path: Path) -> None:
    ended = _run(tmp_path, "bare")
    assert ended.returncode != 0
    acknowledged: list[list[str]] = json.loads(ended.stdout.splitlines()[0])
    assert any(rule == "AwsSolutions-EC26" for _, rule in acknowledged)
    found = _findings(tmp_path)
    needless = [
        (path, rule)
        for path, rule in acknowledged
        if not any(
            f"{where}/".startswith(f"{path}/") and broken == rule.removeprefix("CloudFormation-Validate::")
            for where, broken in found
        )
    ]
    assert needless == []
