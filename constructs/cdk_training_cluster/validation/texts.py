"""The documented limits of every text that the library, its users or their escape hatches put into a template.

They are kept in `texts.toml`, a row for each limit of AWS's, with its address and all places that it holds for.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.text_limit import TextLimit

# Letters, digits, spaces and _ . : / = + - @: what services mean with [\p{L}\p{Z}\p{N}_.:/=+\-@].
_TAG = r"(?![\x00-\x1f\x85])[\w\s.:/=+@-]"
_TAG_WORDS = " of letters, digits, spaces and _ . : / = + - @"


def _tag_rows(
    *,
    id: str,
    source: str,
    lists: Sequence[str] = (),
    maps: Sequence[str] = (),
    characters: str | None = None,
    longest_key: int = 128,
    shortest_value: int = 0,
    reserved_values: Sequence[str] = (),
) -> Iterator[TextLimit]:
    """Yield the two rows for the tags of a service: the keys and the values of lists and of maps of tags."""
    of = _TAG_WORDS if characters is None else ""
    yield TextLimit(
        id=f"{id}TagKey",
        places=(*(f"{each}.*.Key" for each in lists), *(f"{each}.~" for each in maps)),
        allowed=f"1 to {longest_key} characters{of}, and must not start with aws:",
        characters=characters or _TAG,
        minimum=1,
        maximum=longest_key,
        reserved=("aws:",),
        source=source,
    )
    yield TextLimit(
        id=f"{id}TagValue",
        places=(*(f"{each}.*.Value" for each in lists), *(f"{each}.*" for each in maps)),
        allowed=f"{'1 to' if shortest_value else 'at most'} 256 characters{of}"
        f"{', and must not start with aws:' if reserved_values else ''}",
        characters=characters or _TAG,
        minimum=shortest_value,
        maximum=256,
        reserved=tuple(reserved_values),
        source=source,
    )


def _rows() -> Iterator[TextLimit]:
    text = resources.files("cdk_training_cluster.validation").joinpath("texts.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    for tags in found["tags"]:
        yield from _tag_rows(**tags)
    for row in found["rows"]:
        given: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in row.items()}
        yield TextLimit(**given)


LIMITS: Mapping[str, TextLimit] = {row.id: row for row in _rows()}
"""All rows, by their ids."""

TAG_COUNT = TextLimit(
    id="tagCount",
    places=(),
    allowed="at most 50 tags",
    maximum=50,
    source="https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html",
)
"""How many tags a resource may have."""

# It is within descriptions, of which a function's is the shortest: 256 characters.
_LONGEST_CLUSTER_NAME = 128


def cluster_name_problems(cluster_name: object) -> list[str]:
    """Say in one sentence why a cluster cannot be called so: its name is a tag, a metric's dimension and in texts.

    Args:
        cluster_name: What was given.
    """
    if not isinstance(cluster_name, str) or len(cluster_name) > _LONGEST_CLUSTER_NAME:
        return [
            f"cluster_name must be text of at most {_LONGEST_CLUSTER_NAME} characters, such as 'llama', got "
            f"{shown(cluster_name)}"
        ]
    return text_problems("cluster_name", cluster_name, "dimensionValue", "sqsTagValue")


def text_problems(setting: str, value: str, *limits: str) -> list[str]:
    """Say in one sentence why a setting's text cannot be; nothing if it can, or if only the deployment knows it.

    Args:
        setting: The setting as its user spelled it.
        value: What was given.
        limits: The ids of the rows that it has to keep, the most telling first.
    """
    if is_unknown(value):
        return []
    problems = (LIMITS[each].problem(setting, (value,)) for each in limits)
    return [problem for problem in problems if problem is not None][:1]
