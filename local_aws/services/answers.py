"""What answers to many requests have in common: pages, and things found by filters."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from local_aws.refusal import Refusal

_T = TypeVar("_T")


def page(items: Sequence[_T], token: str | None, size: int | None) -> tuple[Sequence[_T], str | None]:
    """Return a page of items, and the token of the next one if there are more.

    Args:
        items: All of them.
        token: The token of the page; None is the first.
        size: How many items a page has; None is all of them.
    """
    start = int(token or 0)
    end = start + (len(items) if size is None else int(size))
    return items[start:end], str(end) if end < len(items) else None


def passes(described: Mapping[str, Any], filters: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> bool:
    """Tell whether filters of a request to EC2 let something pass.

    Args:
        described: The thing, as EC2 describes it.
        filters: The filters.
        names: What the filters call its members, but for tags.

    Raises:
        Refusal: A filter is none of these.
    """
    values = {f"tag:{tag['Key']}": tag["Value"] for tag in described["Tags"]}
    values |= {name: described.get(member) for name, member in names.items()}
    for name, wanted in filters.items():
        if name not in names and not name.startswith("tag:"):
            raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
        if values.get(name) not in wanted:
            return False
    return True


def naive(moment: datetime) -> datetime:
    """Return a time as moto's clock tells time: in UTC, without saying so."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
