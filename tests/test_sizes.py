"""The code of each package stays within its limit; a commit that raises a limit states the reason."""

from collections import Counter
from pathlib import Path

from code_lines import code_lines

PROJECT = Path(__file__).parents[1]
SOURCES = ("constructs", "cluster_file", "stacks", "manifests", "cli", "lambdas", "job")
# A folder of these is a package with a limit of its own.
DIVIDED = ("constructs/cdk_training_cluster", "cli/cdk_training_cluster_cli", "lambdas")

# Code lines: no blank lines, comments, docstrings or imports.
LIMITS = {
    "cli/cdk_training_cluster_cli": 60,
    "cli/cdk_training_cluster_cli/core": 460,
    "cli/cdk_training_cluster_cli/data": 1145,
    "cli/cdk_training_cluster_cli/deploy": 40,
    "cli/cdk_training_cluster_cli/files": 340,
    "cli/cdk_training_cluster_cli/money": 2140,
    "cli/cdk_training_cluster_cli/observe": 1255,
    "cli/cdk_training_cluster_cli/operate": 695,
    "cli/cdk_training_cluster_cli/pictures": 420,
    "cli/cdk_training_cluster_cli/prepare": 2290,
    "cluster_file/cdk_training_cluster_file": 2185,
    "constructs/cdk_training_cluster": 90,
    "constructs/cdk_training_cluster/capacity": 335,
    "constructs/cdk_training_cluster/cluster": 670,
    "constructs/cdk_training_cluster/core": 480,
    "constructs/cdk_training_cluster/functions": 870,
    "constructs/cdk_training_cluster/guardrails": 2060,
    "constructs/cdk_training_cluster/instance_types": 265,
    "constructs/cdk_training_cluster/network": 335,
    "constructs/cdk_training_cluster/nodes": 6805,
    "constructs/cdk_training_cluster/observability": 630,
    "constructs/cdk_training_cluster/orchestrators": 3155,
    "constructs/cdk_training_cluster/prices": 300,
    "constructs/cdk_training_cluster/storage": 1575,
    "constructs/cdk_training_cluster/validation": 1025,
    "job/cluster_job": 4720,
    "lambdas/billing_alarms": 540,
    "lambdas/cluster_checkpoints": 120,
    "lambdas/cluster_common": 1880,
    "lambdas/cluster_contract": 1620,
    "lambdas/cluster_costs": 95,
    "lambdas/cluster_health": 1655,
    "lambdas/cluster_hydration": 955,
    "lambdas/cluster_idle": 2160,
    "lambdas/cluster_power": 2770,
    "lambdas/cluster_reservations": 445,
    "lambdas/cluster_spend": 1180,
    "manifests/cdk_training_cluster_manifests": 2280,
    "stacks/cdk_training_cluster_stacks": 315,
}


def packages() -> Counter[str]:
    """Count the code lines of each package."""
    found: Counter[str] = Counter()
    for source in SOURCES:
        for path in (PROJECT / source).rglob("*.py"):
            parts = path.relative_to(PROJECT).as_posix()
            divided = next((folder for folder in DIVIDED if parts.startswith(f"{folder}/")), None)
            inside = parts.removeprefix(f"{divided}/").split("/")[:-1] if divided else []
            package = f"{divided}/{inside[0]}" if inside else "/".join(parts.split("/")[:2])
            found[package] += code_lines(path.read_text(encoding="utf-8"))
    return found


def test_each_package_stays_within_its_limit() -> None:
    found = packages()
    assert set(found) == set(LIMITS)
    assert {name: lines for name, lines in found.items() if lines > LIMITS[name]} == {}
