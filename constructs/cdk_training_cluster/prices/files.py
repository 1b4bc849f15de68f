"""The price book's files: one line for each name, so that a refresh is a readable difference."""

import json
from collections.abc import Mapping
from typing import Any

from cdk_training_cluster.prices.book import PriceBook, document_of


def snapshot_text(book: PriceBook) -> str:
    """Return the text of `snapshot.json`: the Spot prices, which functions do not carry.

    Args:
        book: The book.
    """
    return text_of({"spot": document_of(book)["spot"]})


def contract_text(book: PriceBook) -> str:
    """Return the text of the contract's `prices.json`: the On-Demand prices, which have one source, and the units.

    Args:
        book: The book.

    Raises:
        ValueError: They have several sources.
    """
    document = document_of(book)
    groups = document["on_demand"]
    if len(groups) != 1:
        raise ValueError(f"On-Demand prices must have one source, got {len(groups)}")
    group = groups[0]
    told = {key: value for key, value in group.items() if key != "prices"} | {"unit": "USD an hour, On-Demand"}
    lines = [
        f"    {json.dumps(name)}: {json.dumps({region: float(usd) for region, usd in regions.items()})}"
        for name, regions in group["prices"].items()
    ]
    head = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in told.items())
    units = text_of({"units": document["units"]}).removeprefix("{\n")
    return "{\n" + head + '  "on_demand": {\n' + ",\n".join(lines) + "\n  },\n" + units


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document of `document_of` as JSON, a line for each name.

    Args:
        document: The document.
    """
    sections = [f'"{section}": [\n' + ",\n".join(map(_group, groups)) + "\n]" for section, groups in document.items()]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _group(group: Mapping[str, Any]) -> str:
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in group.items() if key != "prices")
    lines = [f"{json.dumps(name)}: {json.dumps(regions)}" for name, regions in group["prices"].items()]
    return "{" + head + '"prices": {\n' + ",\n".join(lines) + "\n}}"
