"""`training-cluster plan`: reads what a user wrote, and shows the plan."""

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster_cli.core.output import check_format, show
from cdk_training_cluster_cli.core.session import aws_session
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions, number, of_a_plan, pairs
from cdk_training_cluster_cli.money.plan.report import make_plan
from cdk_training_cluster_cli.money.plan.sentences import document
from cdk_training_cluster_cli.money.plan.shape import ClusterShape, shape_of
from cdk_training_cluster_cli.money.prices.asking import LiveAnswer, Nodes, ask
from cdk_training_cluster_cli.money.prices.cache import cache_file, keep_prices, kept_prices
from cdk_training_cluster_file import read_cluster_file, warn_of_past_ends

_PLOTS = (".png", ".svg")
# What is priced beside the lines: a warm pool's volumes, and what goes to another zone.
_ELSEWHERE = {"ebs-gp3", "zone-to-zone"}


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options of the `plan` command.

    Attributes:
        format: One of `FORMATS`.
        all: Whether a table is to hold all that is known, not a first look.
        live: Whether to ask AWS for prices.
        plot: The picture to write. None: none.
        profile: The profile of the AWS configuration. None: the default one.
    """

    format: str = "table"
    all: bool = False
    live: bool = False
    plot: Path | None = None
    profile: str | None = None

    def __post_init__(self) -> None:
        """Check what is wanted before anything is read.

        Raises:
            ValueError: The format or the picture's kind is unknown.
        """
        check_format(self.format)
        if self.plot is not None and self.plot.suffix.lower() not in _PLOTS:
            raise ValueError(f"--plot must be a file that ends with .png or .svg, got {str(self.plot)!r}")


def assumptions_of(
    *, prices: Sequence[str], costs: Sequence[str], checkpoints: str, **numbers: str | None
) -> Assumptions:
    """Read the assumptions that a user wrote.

    Args:
        prices: `NAME=USD` for each stated price.
        costs: `LINE=USD` for each stated cost.
        checkpoints: How many checkpoints there are.
        numbers: The other figures, by their names in `Assumptions`. None: not given.

    Raises:
        ValueError: A figure is no number, or not allowed.
    """
    given: dict[str, Any] = {
        name: number(f"--{name.removesuffix('_percent').replace('_', '-')}", text)
        for name, text in numbers.items()
        if text is not None
    }
    whole = number("--checkpoints", checkpoints)
    if whole != whole.to_integral_value():
        raise ValueError(f"--checkpoints must be a whole number, got {checkpoints!r}")
    return Assumptions(
        prices=pairs("--price", prices, number), costs=pairs("--cost", costs, number), checkpoints=int(whole), **given
    )


def run(file: Path, wanted: PlanOptions, assumptions: Assumptions) -> None:
    """Show the plan of a cluster file on standard output.

    Args:
        file: The cluster file.
        wanted: What to show.
        assumptions: What the plan assumes.

    Raises:
        ValueError: The cluster cannot be built, or a stated cost names no line.
        ClusterFileError: The file is wrong.
    """
    cluster, now, cache = read_cluster_file(file), datetime.now(UTC), cache_file(os.environ)
    warn_of_past_ends(file, cluster, now)
    shape = shape_of(cluster)
    if cluster.budget is not None:
        assumptions = replace(assumptions, prices={**of_a_plan(cluster.budget.prices), **assumptions.prices})
    kept = kept_prices(cache)
    book, answer = committed_prices().updated(kept), None
    if wanted.live:
        # Without AWS first: it says what is priced, and refuses what is wrong before anything is asked.
        units = {item for line in make_plan(shape, book, assumptions, today=now.date()).lines for item in line.units}
        answer = _ask(shape, book, units | _ELSEWHERE, now, wanted.profile)
        _keep(cache, kept.updated(answer.book))
    plan = make_plan(shape, book, assumptions, today=now.date(), live=answer)
    if wanted.plot is not None:
        from cdk_training_cluster_cli.money.plan.plot import draw  # noqa: PLC0415 - slow to import, and seldom wanted

        draw(plan, wanted.plot)
    show(wanted.format, document(plan, brief=wanted.format == "table" and not wanted.all), plan.values())


def _keep(cache: Path | None, book: PriceBook) -> None:
    """Keep prices for later plans; where that fails, say so and go on."""
    reason: str | None = "the home directory is unknown; set XDG_CACHE_HOME"
    if cache is not None:
        try:
            keep_prices(cache, book)
        except OSError as error:
            reason = error.strerror
        else:
            return
    sys.stderr.write(f"warning: the prices are not kept for the next plan: {reason}\n")


def _ask(
    shape: ClusterShape, book: PriceBook, units: Collection[str], now: datetime, profile: str | None
) -> LiveAnswer:
    """Ask AWS, and show on standard error how far it is."""
    nodes = [
        Nodes(group=group.name, instance_types=tuple(info.name for info in group.instance_types), count=group.count)
        for group in shape.groups
    ]
    session = aws_session("--live", profile)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def advance(action: str, done: int, total: int) -> None:
            if action not in bars:
                bars[action] = progress.add_task(action, total=total)
            progress.update(bars[action], completed=done)

        return ask(session, shape.region, nodes, book, units=units, now=now, advance=advance)
