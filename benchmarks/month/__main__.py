"""Print the tables of docs/resilience/month.md."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from benchmarks.month.published import DAY, LLAMA3, RESEARCH, Rate
from benchmarks.month.repairs import RepairShop
from benchmarks.month.strategies import (
    CHECKPOINT_STALL,
    RESTART_SECONDS,
    ByHand,
    FromCheckpoint,
    Month,
    Operators,
    Strategy,
    ThisCluster,
    simulate,
)
from cluster_contract.health_settings import HealthPolicySettings
from cluster_contract.prices import on_demand_price
from cluster_job.intervals import best_interval

GPUS, GPUS_OF_A_NODE, MONTH = 1024, 8, 30 * DAY
NODES = GPUS // GPUS_OF_A_NODE
MONTHS = 20
"""How many months are averaged; month n has the seed n."""

PUBLISHED_PEER_SECONDS = 120.0
"""AWS says of checkpointless recovery at 2,304 GPUs: less than 2 minutes."""

MEASURED_PEER_SECONDS = 0.88
"""What 4 nodes stalled in this project's own measurement, on CPUs."""

Maker = Callable[[float, Random], Strategy]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a strategy comes to.

    Attributes:
        name: The strategy.
        months: The months.
    """

    name: str
    months: Sequence[Month]

    @property
    def goodput(self) -> float:
        """The mean share of GPU time that was training."""
        return fmean(month.goodput for month in self.months)

    @property
    def lost_usd(self) -> float:
        """The mean price of the rest, of p5.48xlarge On-Demand in us-east-1."""
        price = on_demand_price("p5.48xlarge", "us-east-1") or 0.0
        return price * fmean(month.lost_node_hours for month in self.months)


def this_cluster(name: str, recovery: float, *, peers: bool = True, act: bool = True, gpus: int = GPUS) -> Maker:
    """Return what makes a cluster of this library.

    Args:
        name: What it is called.
        recovery: For how long all stall when a node goes or comes.
        peers: Whether peers hold the state.
        act: Whether its health function acts.
        gpus: How many GPUs it has.
    """

    def make(between: float, random: Random) -> Strategy:
        policy = HealthPolicySettings(act=act)
        shop = RepairShop(policy=policy, nodes=gpus // GPUS_OF_A_NODE, by_hand=Operators().seconds, random=random)
        return ThisCluster(name=name, recovery=recovery, peers=peers, between=between, shop=shop)

    return make


STRATEGIES: Sequence[Maker] = (
    lambda _between, _random: ByHand(),
    lambda between, _random: FromCheckpoint(interval=best_interval(CHECKPOINT_STALL, between)),
    this_cluster("this cluster, `cluster-run` alone", RESTART_SECONDS, peers=False),
    this_cluster("this cluster, `run.replicas`, 2 minutes a recovery", PUBLISHED_PEER_SECONDS),
    this_cluster("the same, 0.88 seconds a recovery", MEASURED_PEER_SECONDS),
    this_cluster("the same, and the health function only reports", MEASURED_PEER_SECONDS, act=False),
)


def rows(rate: Rate, months: int = MONTHS) -> Iterator[Row]:
    """Yield what each strategy comes to at a rate.

    Args:
        rate: How often a job is interrupted.
        months: How many months are averaged.
    """
    between = rate.seconds_between(GPUS)
    for make in STRATEGIES:
        found, name = [], ""
        for seed in range(months):
            random = Random(seed)  # noqa: S311 - a simulation
            strategy = make(between, random)
            name = strategy.name
            found.append(simulate(strategy, between=between, nodes=NODES, seconds=MONTH, random=random))
        yield Row(name=name, months=found)


def table(rate: Rate, months: int = MONTHS) -> str:
    """Return the table of a rate, as the page has it.

    Args:
        rate: How often a job is interrupted.
        months: How many months are averaged.
    """
    lines = ["| | goodput | lost a month |", "|---|---|---|"]
    lines += [f"| {row.name} | {row.goodput:.1%} | ${row.lost_usd:,.0f} |" for row in rows(rate, months)]
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    for rate in (RESEARCH, LLAMA3):
        print(f"{rate.name}: one in {rate.seconds_between(GPUS) / 3600:.1f} hours ({rate.source})\n\n{table(rate)}\n")


if __name__ == "__main__":
    main()
