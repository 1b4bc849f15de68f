"""Measures a run of the idle function over fleets and its cold start, beside the minimal script and plain boto3."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measuring import FailedError, Program, Run, in_turn
from benchmarks.sweep.account import Account, SweepServer
from benchmarks.sweep.fleet import CLUSTER, Fleet, Part
from benchmarks.sweep.goals import GOALS, meets, most_requests
from local_aws.defaults import without_aws_settings

# How many of the turns that were asked for count, by the size of the fleet: the largest one's take a minute each.
SHARES = {50: 1.0, 500: 0.5, 2_000: 0.3, 10_000: 0.2}

_BENCHMARKS = Path(__file__).resolve().parents[1]
_LAMBDAS = _BENCHMARKS.parent / "lambdas"
_SIDES = {"function": "idle_function.py", "minimal": "minimal_idle.py"}

_IDLE = {
    "signals": [{"kind": "cpu", "below": 0.5}, {"kind": "network", "below": 131_072}],
    "policies": [{"signals": [0, 1]}],
}

# Each function with the clients that it makes in a run (the idle function: over instances that nothing owns), and
# boto3 with as many of the same.
_IMPORTS = {
    "import": {
        "function": (
            "import cluster_idle.handler; from cluster_common import clients; "
            "clients.ec2(), clients.cloudwatch(), clients.dynamodb(), clients.sns()"
        ),
        "boto3": "import boto3; [boto3.client(name) for name in ('ec2', 'cloudwatch', 'dynamodb', 'sns')]",
    },
    "import of the billing alarms": {
        "function": (
            "import billing_alarms.handler; from cluster_common import clients; "
            "clients.cloudwatch('us-east-1'), clients.sns('us-east-1'), clients.sns()"
        ),
        "boto3": "import boto3; [boto3.client(name) for name in ('cloudwatch', 'sns', 'sns')]",
    },
    "import of the spend function": {
        "function": (
            "import cluster_spend.handler; from cluster_common import clients; clients.ec2(), clients.dynamodb()"
        ),
        "boto3": "import boto3; [boto3.client(name) for name in ('ec2', 'dynamodb')]",
    },
}


@dataclass(kw_only=True)
class Sweep:
    """One side's run over a new fleet.

    Attributes:
        server: Where the fleet is.
        program: What runs.
        size: How many instances the fleet has.
        warns: Whether it warns of those that are newly idle.
        accounts: What each run did.
    """

    server: SweepServer
    program: Program
    size: int
    warns: bool
    accounts: list[Account] = field(default_factory=list)

    def run(self) -> Run:
        """Run it once.

        Raises:
            FailedError: It failed, or it did not do what there was to do.
        """
        self.server.put_fleet(self.size)
        run = self.program.run()
        account = self.server.account()
        stops, warnings = due(self.size)
        expected = (stops, warnings if self.warns else 0)
        if (account.stopped, account.warned) != expected:
            raise FailedError(f"of {self.size} instances (stopped, warned) should be {expected}: {account}")
        self.accounts.append(account)
        return run


def due(size: int) -> tuple[int, int]:
    """Return how many instances of a fleet are to be stopped, and of how many a warning is to be sent.

    Args:
        size: How many instances it has.
    """
    fleet = Fleet(size=size, now=datetime.now(UTC))
    return len(fleet.ids(Part.DUE)), len(fleet.ids(Part.IDLE))


def measure(sizes: Iterable[int], runs: int, tell: Callable[[str], object]) -> dict[str, Any]:
    """Measure everything, the smallest fleet first.

    Args:
        sizes: How many instances the fleets have.
        runs: How many turns count for a cold start and for the smallest fleet.
        tell: Called with what is measured now.

    Raises:
        FailedError: A program fails.
    """
    machine = {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "boto3": version("boto3"),
    }
    with SweepServer() as server:
        starts = {name: _cold_start(codes, _environment(server.url), runs, tell) for name, codes in _IMPORTS.items()}
        fleets = {str(size): _over(server, size, runs, tell) for size in sorted(sizes)}
    tell("the decision about one gang and about ten")
    return {"runs": runs, "machine": machine, "goals": GOALS, **starts, "fleets": fleets, "gangs": _gangs(runs)}


def sides(server: SweepServer, size: int) -> dict[str, Sweep]:
    """Return what takes turns over fleets of a size: the function, and the minimal script.

    Args:
        server: Where the fleets are.
        size: How many instances they have.
    """
    variables = _environment(server.url)
    return {
        side: Sweep(
            server=server,
            program=Program(arguments=(str(_BENCHMARKS / script),), environment=variables),
            size=size,
            warns=side == "function",
        )
        for side, script in _SIDES.items()
    }


def _cold_start(
    codes: Mapping[str, str], variables: dict[str, str], runs: int, tell: Callable[[str], object]
) -> dict[str, Any]:
    programs = {name: Program(arguments=("-c", code), environment=variables) for name, code in codes.items()}
    measured = in_turn(programs, runs, lambda turn: tell(f"cold start, turn {turn} of {runs}"))
    beside = measured["function"].beside(measured["boto3"])
    return {
        **beside,
        **{name: measured[name].figures() for name in codes},
        "meets": beside["ratio_of_turns"] <= GOALS["import_ratio"],
    }


def _over(server: SweepServer, size: int, runs: int, tell: Callable[[str], object]) -> dict[str, Any]:
    turns = max(1, round(runs * SHARES.get(size, 1.0)))
    both = sides(server, size)
    # All caches were filled by the cold starts.
    measured = in_turn(both, turns, lambda turn: tell(f"{size:,} instances, turn {turn} of {turns}"), first=1)
    stops, warnings = due(size)
    requests = {side: sweep.accounts[-1].requests for side, sweep in both.items()}
    figures = {side: measured[side].figures() for side in both}
    entry = {
        "turns": turns,
        "instances": size,
        "stops": stops,
        "owners": stops + warnings,
        "requests": sum(requests["function"].values()),
        "most_requests": most_requests(size, stops, stops + warnings),
        **measured["function"].beside(measured["minimal"]),
        "peak_mib": figures["function"]["peak_mib"],
    }
    return {
        **entry,
        "meets": meets(entry),
        "slow": max(account.slow for sweep in both.values() for account in sweep.accounts),
        **{side: {**figures[side], "requests": requests[side]} for side in both},
    }


def _gangs(turns: int) -> dict[str, Any]:
    """Return what the decision about one gang of 10,000 nodes takes, beside ten gangs of 1,000."""
    command = [sys.executable, str(_BENCHMARKS / "gang_decision.py"), str(max(SHARES)), str(turns)]
    variables = {**os.environ, "PYTHONPATH": str(_LAMBDAS)}
    process = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if process.returncode:
        raise FailedError(process.stderr)
    found: dict[str, Any] = json.loads(process.stdout)
    return {**found, "meets": found["cpu_ratio_of_turns"] <= GOALS["gang_ratio"]}


def _environment(url: str) -> dict[str, str]:
    """Return the variables of the function, as the construct sets them, and those that lead to the server."""
    variables = without_aws_settings(os.environ) | {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(_LAMBDAS),
        "CLUSTER": CLUSTER,
        "CLUSTER_IDLE_SETTINGS": json.dumps({"cluster": CLUSTER, **_IDLE, "max_stops": max(SHARES)}),
        "ALERT_TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:alerts",
        "STATE_TABLE": "state",
        "POWERTOOLS_METRICS_NAMESPACE": "CdkTrainingCluster/Functions",
        "POWERTOOLS_SERVICE_NAME": "idle",
    }
    # Both sides are compiled once, as everybody's modules are.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables
