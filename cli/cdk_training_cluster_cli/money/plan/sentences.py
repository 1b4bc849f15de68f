"""What a plan says beside its tables."""

from collections.abc import Iterator

from cdk_training_cluster_cli.core.output import Document, usd
from cdk_training_cluster_cli.money.plan.lines import BLOCK_PRICES
from cdk_training_cluster_cli.money.plan.report import Plan
from cdk_training_cluster_cli.money.plan.tables import tables

_MORE = "--all shows each line, all ways to buy and regions, assumptions and sources"


def document(plan: Plan, *, brief: bool) -> Document:
    """Return what is shown of a plan.

    Args:
        plan: The plan.
        brief: Whether it is a first look.
    """
    return Document(
        tables=tuple(tables(plan, brief=brief)), notes=tuple(notes(plan, brief=brief)), conclusion=conclusion(plan)
    )


def notes(plan: Plan, *, brief: bool = False) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is said beside the tables: a heading and its sentences.

    Args:
        plan: The plan.
        brief: Whether assumptions and sources are left out.
    """
    unknown = tuple(f"{line.key}: {line.basis}" for line in plan.unknown)
    if not brief:
        yield "Assumed", (*_assumed(plan), *plan.left_out)
        yield (
            "Prices from",
            tuple(
                f"{source.address}, {age}{f'. {source.note}' if source.note else ''}" for source, age in plan.sources
            ),
        )
    yield "Unknown, and in no sum", unknown
    yield "Know before paying", (*plan.warnings, *((_MORE,) if brief else ()))


def conclusion(plan: Plan) -> str:
    """Return the sum in a sentence.

    Args:
        plan: The plan.
    """
    missing, known = ", ".join(line.key for line in plan.unknown), f"${usd(plan.known)}"
    hours, percent = f"{plan.assumptions.hours:,f} hours", f"{plan.assumptions.contingency_percent:f} %"
    if plan.total is None:
        return f"Total for {hours}: unknown, as is what {missing} cost; known so far: {known}"
    reserve = f"${usd(plan.with_contingency)} with {percent} contingency"
    if missing:
        return f"Known so far for {hours}: {known}; {reserve}; {missing} not included: unknown"
    return f"Total for {hours}: {known}; {reserve}"


def _assumed(plan: Plan) -> Iterator[str]:
    yield (
        "a month has 730 hours; a GB of a volume or file system is billed as a GiB; taxes, support and free tiers "
        "are left out"
    )
    yield (
        f"prices of Capacity Blocks are at {BLOCK_PRICES}, rates of Savings Plans in "
        "savingsplans:DescribeSavingsPlansOfferingRates"
    )
    yield "no sum holds VPC flow logs, CloudWatch Logs, S3 requests and data that leaves the region"
    if plan.works:
        sources = sorted({each.source for each in plan.works if each.source is not None})
        yield (
            "training takes 6 FLOPs for each parameter and token (https://arxiv.org/abs/2001.08361); "
            f"peaks are dense BF16 of {'; '.join(sources)}"
        )
    for name, price in sorted(plan.assumptions.prices.items()):
        yield f"you state ${price:f} for {name}"
