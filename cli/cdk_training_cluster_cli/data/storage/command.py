"""`training-cluster storage`: reads what a user needs, and shows the file systems that meet it."""

import json
import os
from collections.abc import Iterator, Sequence

from cdk_training_cluster.nodes.bootstrap import MAX_LUSTRE_INTERFACES
from cdk_training_cluster.prices import UNITS, PriceBook, committed_prices
from cdk_training_cluster.storage.choosing import (
    DEFAULT_QUOTA_GIB,
    StorageChoice,
    StorageOption,
    choose_storage,
)
from cdk_training_cluster.validation.bounds import written
from cdk_training_cluster_cli.core.output import Document, Table, check_format, show, usd
from cdk_training_cluster_cli.core.sizes import gib_of
from cdk_training_cluster_cli.money.plan.assumptions import number
from cdk_training_cluster_cli.money.prices.cache import cache_file, kept_prices

_OVER_QUOTA, _TOO_SLOW, _ELSEWHERE = "*", "!", "~"
_NONE = "-"


def run(
    *, dataset: str, gbps: str, nodes: str, instance_type: str, region: str, prices: Sequence[str], output: str
) -> None:
    """Show the file systems that meet a need on standard output.

    Args:
        dataset: How much data, such as `40TiB`.
        gbps: GB/s that all nodes read together.
        nodes: How many nodes.
        instance_type: Their type.
        region: The region whose prices count.
        prices: `NAME=USD` for each stated price.
        output: How to show it.

    Raises:
        ValueError: A setting is not allowed.
    """
    check_format(output, option="--output")
    count = number("--nodes", nodes)
    if count != count.to_integral_value():
        raise ValueError(f"--nodes must be a whole number, got {nodes!r}")
    book = _stated(committed_prices().updated(kept_prices(cache_file(os.environ))), prices, region)
    choice = choose_storage(
        dataset_gib=gib_of("--dataset", dataset),
        gbps=float(number("--gbps", gbps)),
        nodes=int(count),
        instance_type=instance_type,
        region=region,
        prices=book,
    )
    show(output, document(choice), values(choice))


def _stated(book: PriceBook, texts: Sequence[str], region: str) -> PriceBook:
    prices = {}
    for text in texts:
        name, _, amount = text.partition("=")
        if name not in UNITS or not name.startswith("fsx-"):
            known = ", ".join(each for each in UNITS if each.startswith("fsx-"))
            raise ValueError(f"--price must be NAME=USD, with a NAME of {known}, got {text!r}")
        prices[name] = number(f"--price {name}", amount)
        if prices[name] < 0:
            raise ValueError(f"--price {name} must be at least 0, got {amount}")
    return book.with_stated(prices, region)


def document(choice: StorageChoice) -> Document:
    """Return what a person reads.

    Args:
        choice: What can be had.
    """
    need, best = choice.need, choice.recommended
    table = Table(
        title=f"FSx for Lustre for {need.dataset_gib:,} GiB and {written(float(need.gbps))} GB/s on {need.readers} "
        f"in {need.region}",
        headings=("File system", "Size", "USD a month", "GB/s", "a GPU", "Takes"),
        rows=tuple(map(_row, choice.options)),
        numbers=(1, 2, 3, 4),
        bold=frozenset() if best is None else frozenset({best.name}),
    )
    notes = (
        ("Take care", tuple(_cautions(choice))),
        ("What is counted", tuple(_counted(choice))),
        ("In a cluster file", () if best is None else (f"file_system: {_flow(best)}",)),
    )
    conclusion = choice.reason if best is None else f"Recommended: {best.name}, {_size(best)}: {choice.reason}."
    return Document(tables=(table,), notes=notes, conclusion=conclusion)


def values(choice: StorageChoice) -> dict[str, object]:
    """Return what a program reads.

    Args:
        choice: What can be had.
    """
    need = choice.need
    return {
        "need": {
            "dataset_gib": need.dataset_gib,
            "gbps": need.gbps,
            "nodes": need.nodes,
            "instance_type": need.info.name,
            "region": need.region,
        },
        "options": [_values(each) for each in choice.options],
        "recommended": None if choice.recommended is None else choice.recommended.name,
        "reason": choice.reason,
    }


def _values(option: StorageOption) -> dict[str, object]:
    return {
        "name": option.name,
        "settings": option.settings,
        "usd_a_month": option.usd_a_month,
        "price_regions": option.price_regions,
        "unknown_prices": option.unknown_prices,
        "gbps": option.gbps,
        "delivered_gbps": option.delivered_gbps,
        "gbps_per_accelerator": option.gbps_per_accelerator,
        "fast_enough": option.fast_enough,
        "links": option.kind.links,
        "backups": option.kind.persistent,
        "efa": option.efa,
        "gpudirect": option.gpudirect,
        "exceeds_quota": option.exceeds_quota,
    }


def _row(option: StorageOption) -> tuple[str, ...]:
    each = option.gbps_per_accelerator
    takes = {"S3 links": option.kind.links, "backups": option.kind.persistent, "GPUDirect": option.gpudirect}
    return (
        option.name,
        f"{_size(option)}{_OVER_QUOTA if option.exceeds_quota else ''}",
        f"{_ELSEWHERE if _is_elsewhere(option) else ''}{usd(option.usd_a_month)}",
        f"{option.delivered_gbps:,.1f}{'' if option.fast_enough else _TOO_SLOW}",
        _NONE if each is None else f"{each:.2f}",
        ", ".join(name for name, taken in takes.items() if taken) or _NONE,
    )


def _is_elsewhere(option: StorageOption) -> bool:
    return not set(option.price_regions) <= {option.need.region}


def _size(option: StorageOption) -> str:
    if option.capacity_gib is None:
        return f"{option.made.throughput_capacity:,} MB/s"
    return f"{option.capacity_gib:,} GiB"


def _cautions(choice: StorageChoice) -> Iterator[str]:
    need = choice.need
    if any(each.exceeds_quota for each in choice.options):
        yield (
            f"{_OVER_QUOTA} more than the default quota of {DEFAULT_QUOTA_GIB:,} GiB of a deployment type and storage"
            " class in an account and region: ask Service Quotas for more of Amazon FSx first"
        )
    if not all(each.fast_enough for each in choice.options):
        yield (
            f"{_TOO_SLOW} too slow: {need.readers} read at most "
            f"{need.reachable_gbps(efa=False):,.1f} GB/s without EFA, however fast the file system is"
        )
    elsewhere = sorted({region for each in choice.options for region in each.price_regions} - {need.region})
    if elsewhere:
        yield f"{_ELSEWHERE} the price in {' or '.join(elsewhere)}: that in {need.region} is unknown"
    unknown = list(dict.fromkeys(name for each in choice.options for name in each.unknown_prices))
    if unknown:
        yield f"unknown prices: {', '.join(unknown)}; state one of a month with --price NAME=USD"
    if any(each.capacity_gib is None for each in choice.options):
        yield "Intelligent-Tiering bills what is stored and requests too, whose prices are not in the list"


def _counted(choice: StorageChoice) -> Iterator[str]:
    yield "data as they are, without compression; checkpoints and other files need room beside them"
    yield "the throughput of the disks; what is in the servers' memory is read faster"
    yield "backups are for file systems without S3 links"
    # https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
    yield "500 and 1000 MB/s/TiB, EFA and Intelligent-Tiering are not in every region: FSx's documents say in which"
    if choice.need.efa_connections > MAX_LUSTRE_INTERFACES:
        yield (
            f"{choice.need.readers} without EFA: they would make {choice.need.efa_connections:,} EFA connections, "
            f"and a file system takes {MAX_LUSTRE_INTERFACES:,}"
        )
    elif not choice.need.efa_clients:
        yield f"{choice.need.info.name} without EFA: it reaches a file system over TCP alone"


def _flow(option: StorageOption) -> str:
    """Return the settings as a YAML flow mapping."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in option.settings.values())
    return f"{{{', '.join(f'{name}: {text}' for name, text in zip(option.settings, texts, strict=True))}}}"
