"""The idle function's decision about one gang of nodes and about ten with as many nodes together, all of them due.

`PYTHONPATH` says where the function's modules are. Both decide in turn, and the output is JSON: the CPU seconds of
both, and the median of the ratios of the turns.
"""

import json
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_contract.idle import IdleFunctionSettings, IdleGroupSettings, PolicySettings
from cluster_idle.context import IdleContext, OwnerState
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.instances import Instance, Owner
from cluster_idle.sent_warnings import SentWarning

_NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
_SENT = _NOW - timedelta(minutes=30)


def fleet(nodes: int, gangs: int) -> tuple[list[Instance], IdleContext]:
    """Return idle nodes whose warnings are over.

    Args:
        nodes: How many there are.
        gangs: How many gangs they are.
    """
    names = [f"gang-{number}" for number in range(gangs)]
    instances = [
        Instance(
            id=f"i-{number:017x}",
            instance_type="p5.48xlarge",
            launched=_NOW - timedelta(days=1),
            owner=Owner.of(AUTO_SCALING_GROUP, names[number % gangs]),
            node_group=names[number % gangs],
        )
        for number in range(nodes)
    ]
    size = nodes // gangs
    owners = {
        Owner.of(AUTO_SCALING_GROUP, name): OwnerState(
            name=name, node_group=name, desired=size, minimum=0, maximum=size, in_service=size
        )
        for name in names
    }
    warnings = {
        name: SentWarning(
            idle_since=_SENT, stop_at=_NOW, nodes=size, owners=(f"auto_scaling_group/{name}",), idle_until=_SENT
        )
        for name in names
    }
    idle = Evidence(state=EvidenceState.IDLE, reason="its utilization has been 0 %", idle_since=_SENT)
    settings = IdleFunctionSettings(
        cluster="base-pod",
        policies=(PolicySettings(),),
        groups={name: IdleGroupSettings() for name in names},
        max_stops=nodes,
        power_function="base-pod-power",
    )
    evidence = {one.id: idle for one in instances}
    return instances, IdleContext(settings=settings, now=_NOW, evidence=evidence, owners=owners, warnings=warnings)


def measure(nodes: int, turns: int) -> dict[str, float]:
    """Return what the decisions take.

    Args:
        nodes: How many nodes there are.
        turns: How many turns count.
    """
    sides = {gangs: fleet(nodes, gangs) for gangs in (1, 10)}
    seconds: dict[int, list[float]] = {gangs: [] for gangs in sides}
    for turn in range(turns + 1):
        for gangs, (instances, context) in sides.items():
            started = time.process_time()
            decisions = decide(instances, context)
            taken = time.process_time() - started
            if len(decisions.stop) != gangs:
                sys.exit(f"of {gangs} gangs {len(decisions.stop)} are stopped")
            if turn:
                seconds[gangs].append(taken)
    ratio = statistics.median(one / ten for one, ten in zip(seconds[1], seconds[10], strict=True))
    return {
        "one_gang_cpu_seconds": round(statistics.median(seconds[1]), 3),
        "ten_gangs_cpu_seconds": round(statistics.median(seconds[10]), 3),
        "cpu_ratio_of_turns": round(ratio, 3),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
