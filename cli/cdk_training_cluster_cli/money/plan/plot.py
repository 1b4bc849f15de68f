"""Draws a plan: what the run costs while it goes on, and from how many hours of use a year a commitment pays."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_training_cluster_cli.money.plan.options import HOURS_OF_A_YEAR, SPOT, Option
from cdk_training_cluster_cli.money.plan.report import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PERCENT = Decimal(100)
_INCHES = (12, 5)
_ON_DEMAND, _SPOT, _RESERVED, _SAVED, _ALL = "#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#222222"


def draw(plan: Plan, file: Path) -> None:
    """Write a picture; the same plan gives the same bytes.

    Args:
        plan: The plan.
        file: A `.png` or `.svg` file.

    Raises:
        ValueError: matplotlib is missing, EC2 does not sell the nodes, or the file cannot be written.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - slow to import, and seldom wanted
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ValueError("--plot needs matplotlib: pip install 'cdk-training-cluster[cli]'") from error
    ways = {option.name: option for option in plan.options}
    if not ways:
        raise ValueError(
            f"--plot compares ways to buy nodes from EC2, and {plan.name} has them from another service; leave it out"
        )
    on_demand = ways["On-Demand"].low
    with rc_context({"svg.hashsalt": "plan", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=_INCHES, layout="constrained")
        run, year = figure.subplots(1, 2)
        figure.suptitle(f"{plan.name} in {plan.availability_zone}")
        _run(run, plan, ways)
        if on_demand is None:
            year.set_axis_off()
            year.text(0.5, 0.5, ways["On-Demand"].note, ha="center", va="center", wrap=True)
        else:
            _year(year, plan, on_demand / plan.assumptions.hours)
        try:
            figure.savefig(
                file, dpi=120, metadata={"Date": None} if file.suffix.lower() == ".svg" else {"Software": None}
            )
        except OSError as error:
            raise ValueError(f"{file} cannot be written: {error.strerror}") from error


def _run(axes: "Axes", plan: Plan, ways: dict[str, Option]) -> None:
    """Draw what a run of the plan's length costs as it goes on."""
    hours, total = float(plan.assumptions.hours), float(plan.known)
    for name, what, color in (
        ("On-Demand", "On-Demand", _ON_DEMAND),
        ("Savings Plan", "share of a year's Savings Plan", _SAVED),
    ):
        cost = ways[name].low
        if cost is not None:
            axes.plot([0, hours], [0, float(cost)], color=color, label=f"nodes, {what}: {cost:,.0f} USD")
    spot = ways.get(SPOT)
    if spot is not None and spot.low is not None and spot.high is not None:
        times = [0, float(spot.hours)]
        label = f"nodes, Spot, lowest to highest: {spot.low:,.0f} to {spot.high:,.0f} USD"
        axes.fill_between(times, [0, float(spot.low)], [0, float(spot.high)], color=_SPOT, alpha=0.3, label=label)
    missing = ", ".join(line.key for line in plan.unknown)
    label = f"as planned: {total:,.0f} USD" + (f", without {missing}: unknown" if missing else "")
    axes.plot([0, hours], [0, total], color=_ALL, linestyle="--", label=label)
    axes.set_title("This run", loc="left")
    _finish(axes, "hours since the start")


def _year(axes: "Axes", plan: Plan, rate: Decimal) -> None:
    """Draw what a year costs for each number of hours in which the nodes are used."""
    year = float(HOURS_OF_A_YEAR)
    reserved = float(rate * HOURS_OF_A_YEAR)
    axes.plot([0, year], [0, reserved], color=_ON_DEMAND, label="On-Demand, only while used")
    axes.plot([0, year], [reserved, reserved], color=_RESERVED, label="Capacity Reservation, kept all year")
    percent = plan.assumptions.savings_plan_percent
    if percent is not None:
        saved, pays = (
            float(amount * (1 - percent / _PERCENT)) for amount in (rate * HOURS_OF_A_YEAR, HOURS_OF_A_YEAR)
        )
        axes.plot([0, year], [saved, saved], color=_SAVED, label=f"Savings Plan, {percent:f} % off, for a year")
        axes.plot([pays], [saved], "o", color=_SAVED)
        axes.annotate(
            f"pays from {pays:,.0f} h",
            (pays, saved),
            textcoords="offset points",
            xytext=(-8, 8),
            ha="right",
            color=_SAVED,
        )
    axes.plot([year], [reserved], "o", color=_RESERVED)
    axes.annotate(
        "no cheaper before 8,760 h: it holds capacity",
        (year, reserved),
        textcoords="offset points",
        xytext=(-60, -14),
        ha="right",
        color=_RESERVED,
    )
    axes.axvline(
        float(min(plan.assumptions.hours, HOURS_OF_A_YEAR)), color="#999999", linestyle=":", label="this run"
    )
    axes.set_title("A year, nodes alone", loc="left")
    _finish(axes, "hours of use in a year")


def _finish(axes: "Axes", across: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel("USD")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.15)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="upper left", frameon=False, fontsize=9, bbox_to_anchor=(0, -0.12))
