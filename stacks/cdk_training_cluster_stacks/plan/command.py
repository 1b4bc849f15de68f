"""`training-cluster plan`: reads what a user wrote, and shows the plan."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console

from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.plan.assumptions import Assumptions, number
from cdk_training_cluster_stacks.plan.render import markdown, show
from cdk_training_cluster_stacks.plan.report import make_plan
from cdk_training_cluster_stacks.plan.shape import shape_of

FORMATS = ("table", "json", "markdown")
_PLOTS = (".png", ".svg")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a user wants to see.

    Attributes:
        format: One of `FORMATS`.
        plot: The picture to write. None: none.
    """

    format: str = "table"
    plot: Path | None = None

    def __post_init__(self) -> None:
        """Check what is wanted before anything is read.

        Raises:
            ValueError: The format or the picture's kind is unknown.
        """
        if self.format not in FORMATS:
            raise ValueError(f"--format must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {self.format!r}")
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
        prices=_pairs("--price", prices), costs=_pairs("--cost", costs), checkpoints=int(whole), **given
    )


def _pairs(option: str, texts: Sequence[str]) -> dict[str, Decimal]:
    pairs = {}
    for text in texts:
        name, equals, amount = text.rpartition("=")
        if not equals or not name:
            raise ValueError(f"{option} must be NAME=USD, got {text!r}")
        pairs[name] = number(f"{option} {name}", amount)
    return pairs


def run(file: Path, wanted: Wanted, assumptions: Assumptions) -> None:
    """Show the plan of a cluster file on standard output.

    Args:
        file: The cluster file.
        wanted: What to show.
        assumptions: What the plan assumes.

    Raises:
        ValueError: The cluster cannot be built, or a stated cost names no line.
        ClusterFileError: The file is wrong.
    """
    plan = make_plan(
        shape_of(read_cluster_file(file)), committed_prices(), assumptions, today=datetime.now(UTC).date()
    )
    if wanted.format == "json":
        sys.stdout.write(f"{plan.to_json()}\n")
    elif wanted.format == "markdown":
        sys.stdout.write(markdown(plan))
    else:
        show(plan, Console(highlight=False))
