"""`make bench-recovery`: what a lost node costs a job that restarts, one under torchrun, and one with replicas.

All ways run in turns, in one go, on this machine: compare ratios, not seconds. Results go to build/recovery.json.
"""

import argparse
import itertools
import json
import logging
import os
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from benchmarks.recovery.checkpointing import measure_digests, measure_drain, measure_stall
from benchmarks.recovery.scenarios import METHODS, TABLE, Case, Outcome, reference, run

FAULTS = ("killed", "rank 0 killed", "silenced")
FOLDER = Path("build/recovery/runs").resolve()
RESULTS = Path("build/recovery.json")
MOST_STALL = 0.25
"""Of what `torch.save` takes."""

MOST_DIGESTS = 0.05
"""Of what writing a checkpoint takes without them."""

MOST_DRAIN_SECONDS = 20
SAME = 0.01
"""Of what a step changes in the parameters."""


def main() -> None:
    """Run what was asked for, and say which goals are met."""
    options = _options()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    found: dict[str, Any] = {"load": os.getloadavg()[0], "repetitions": options.repetitions}
    if "checkpoint" in options.only:
        found["checkpoint"] = [
            {
                **measure_stall(FOLDER / f"stall-{number}"),
                **measure_digests(FOLDER / f"digests-{number}"),
                "drain": measure_drain(FOLDER / f"drain-{number}"),
            }
            for number in range(options.repetitions)
        ]
    if "recovery" in options.only:
        failures: list[Case] = []
        found["recovery"] = _recovery(options, failures)
        found["failures"] = [asdict(case) for case in failures]
    goals = judge(found)
    RESULTS.write_text(json.dumps({**found, "goals": goals}, indent=1) + "\n")
    for goal in goals:
        print(f"{'met' if goal['met'] else 'MISSED':7} {goal['goal']}: {goal['found']}")
    print(RESULTS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-recovery ARGS=…", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1, help="of each case, of which medians are taken")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--only", nargs="+", choices=("checkpoint", "recovery"), default=["checkpoint", "recovery"])
    return parser.parse_args()


def _recovery(options: argparse.Namespace, failures: list[Case]) -> list[dict[str, Any]]:
    outcomes: list[tuple[Case, Outcome]] = []
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    _make_table(endpoint)
    try:
        turns = itertools.product(range(options.repetitions), options.nodes, options.faults, options.methods)
        for repetition, nodes, fault, method in turns:
            case = Case(method=method, fault=fault, nodes=nodes)
            try:
                outcome = run(case, FOLDER / f"{method}-{fault.replace(' ', '-')}-{nodes}-{repetition}", endpoint)
            except TimeoutError as error:
                print(f"{nodes} nodes, {fault}, {method}: did not go on: {error}", flush=True)
                failures.append(case)
                continue
            print(
                f"{nodes} nodes, {fault}, {method}: stall {outcome.stall:.1f} s, charged {outcome.charged:.1f} s",
                flush=True,
            )
            outcomes.append((case, outcome))
    finally:
        server.stop()
    right = reference(FOLDER / "reference", max(outcome.step for _, outcome in outcomes))
    return [{**asdict(case), **asdict(outcome), "off": _off(outcome, right)} for case, outcome in outcomes]


def _off(outcome: Outcome, right: dict[int, float]) -> float:
    """Return how far the parameters are from those of an undisturbed run, in parts of what a step changes."""
    step = outcome.step
    return abs(outcome.fingerprint - right[step]) / abs(right[step] - right[step - 1])


def judge(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the goals with what was found, of what was measured.

    Args:
        found: What was measured.
    """
    goals = []
    saved = found.get("checkpoint", [])
    if saved:
        ratio = statistics.median(one["Run.checkpoint"] / one["torch.save"] for one in saved)
        drain = statistics.median(one["drain"] for one in saved)
        words = f"a checkpoint stalls for at most {MOST_STALL} of torch.save"
        goals.append(_goal(words, f"{ratio:.2f}", ratio <= MOST_STALL))
        digests = statistics.median(one["digests"] for one in saved)
        words = f"digests add at most {MOST_DIGESTS:.0%} to the writing of a checkpoint"
        goals.append(_goal(words, f"{digests:.1%}", digests <= MOST_DIGESTS))
        words = f"a drained node's 500 MB are durable within {MOST_DRAIN_SECONDS} s"
        goals.append(_goal(words, f"{drain:.1f} s", drain <= MOST_DRAIN_SECONDS))
    if "failures" in found:
        goals.append(_goal("every job goes on", f"{len(found['failures'])} did not", not found["failures"]))
    outcomes = found.get("recovery", [])
    for nodes, fault in sorted({(one["nodes"], one["fault"]) for one in outcomes}):
        here = [one for one in outcomes if (one["nodes"], one["fault"]) == (nodes, fault)]
        for method, measure, least in (
            ("peers", "stall", 0.95),
            ("peers", "charged", 0.8),
            ("spare", "charged", 0.8),
        ):
            before, after = _median(here, "restart", measure), _median(here, method, measure)
            promised = measure == "stall" or (method, nodes) in {("peers", 4), ("spare", 2)}
            if before is None or after is None or not promised:
                continue
            less = 1 - after / before
            words = f"{nodes} nodes, {fault}: {method} {measure} at least {least:.0%} less than restart"
            goals.append(_goal(words, f"{less:.1%} ({after:.2f} s of {before:.1f} s)", less >= least))
    if outcomes:
        worst = max(one["off"] for one in outcomes)
        goals.append(_goal("parameters are equal at the end", f"at most {worst:.1e} of a step off", worst <= SAME))
    return goals


def _median(outcomes: Sequence[dict[str, Any]], method: str, measure: str) -> float | None:
    values = [one[measure] for one in outcomes if one["method"] == method]
    return statistics.median(values) if values else None


def _goal(goal: str, found: str, met: bool) -> dict[str, Any]:
    return {"goal": goal, "found": found, "met": bool(met)}


def _make_table(endpoint: str) -> None:
    dynamodb = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - the local AWS takes any
    )
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "run", "AttributeType": "S"},
            {"AttributeName": "key", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )


if __name__ == "__main__":
    main()
