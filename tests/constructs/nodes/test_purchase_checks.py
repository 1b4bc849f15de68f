"""Every way to buy passes the linters: CDK's own validation, and cdk-nag with what is acknowledged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SUPPORT = Path(__file__).parents[2] / "support"

# An app of its own, so that CDK's validation is on for it alone: a stack for each way to buy. With an argument,
# nothing is acknowledged, and what would have been is told.
_APP = """
import json, sys
from aws_cdk import App, Environment, Stack, Validations
from cdk_nag import AwsSolutionsChecks
from cdk_training_cluster import UNTIL_CANCELLED, Capacity, WarmPool
from fleet_scene import bought

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
block, reservation = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"
several = {"instance_types": ["g5.48xlarge", "g6e.48xlarge"]}
ways = {
    "OnDemand": {"warm_pool": WarmPool(size=2)},
    "Reservation": {"capacity": Capacity.reservation(end=UNTIL_CANCELLED)},
    "FromReservation": {"capacity": Capacity.from_reservation(reservation, placement_group="rack")},
    "CapacityBlock": {"capacity": Capacity.capacity_block(block)},
    "Spot": {"capacity": Capacity.spot(max_price=12.5), **several},
    "SpotFleet": {"capacity": Capacity.spot_fleet(max_price=12.5), **several},
    "Prioritized": {
        "capacity": Capacity.prioritized(reservations=[reservation], capacity_blocks=[block]),
        "instance_types": ["p5.48xlarge", "p5en.48xlarge"],
    },
}
app = App(outdir="cdk.out")
for account, (name, settings) in enumerate(ways.items(), start=111122223333):
    bought(Stack(app, name, env=Environment(account=str(account), region="us-east-1")), **settings)
find(app).add_plugins(AwsSolutionsChecks(app))
print(json.dumps(told))
app.synth()
"""


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(_SUPPORT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", _APP, *arguments],
        cwd=directory,
        env={**os.environ, "CDK_VALIDATION": "true", "PYTHONPATH": path},
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
    }


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ways")
    ended = _run(directory)
    assert ended.returncode == 0, ended.stderr
    return directory


def test_nothing_is_found_that_is_not_acknowledged(app: Path) -> None:
    assert {rule for _, rule in _findings(app) if not rule.startswith("cdk-training-cluster:")} == set()


@pytest.mark.sweep
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
