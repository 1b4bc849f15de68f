"""Flowcharts in the language of Mermaid, which GitHub and many editors render: https://mermaid.js.org/syntax/flowchart.html."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

# All other characters are written as entity codes, which Mermaid shows and never reads as syntax, Markdown or HTML.
# A colon within a word can name an icon.
_UNSAFE = re.compile(r"[^A-Za-z0-9 ,.:/()-]|:(?![ /]|$)")
# Mermaid shows no label that begins as a list of Markdown does.
_LIST = re.compile(r"^-|^\d(?=\d*[.)])")


class Shape(Enum):
    """The brackets around a node's label."""

    BOX = ('["', '"]')
    STORE = ('[("', '")]')
    FUNCTION = ('(["', '"])')


@dataclass(frozen=True, kw_only=True)
class Box:
    """A node of a flowchart.

    Attributes:
        id: An identifier: `n` and digits or letters. Users' names are labels only.
        lines: The lines of the label.
        shape: The shape.
    """

    id: str
    lines: Sequence[str]
    shape: Shape = Shape.BOX


@dataclass(frozen=True, kw_only=True)
class Group:
    """A frame around nodes.

    Attributes:
        id: As for `Box`.
        title: The title.
        inner: The nodes and frames in the frame.
    """

    id: str
    title: str
    inner: Sequence["Box | Group"]


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """An arrow between nodes or frames.

    Attributes:
        source: The id of the node or frame where the arrow begins.
        target: The id of the node or frame where the arrow ends.
        lines: The lines of the label.
    """

    source: str
    target: str
    lines: Sequence[str]


def flowchart(parts: Sequence[Box | Group], arrows: Sequence[Arrow]) -> str:
    """Return a flowchart from left to right.

    Args:
        parts: The nodes and frames.
        arrows: The arrows.
    """
    drawn = (f'  {each.source} -->|"{_label(each.lines)}"| {each.target}' for each in arrows)
    return "\n".join(["flowchart LR", *_drawn(parts, "  "), *drawn, ""])


def _drawn(parts: Sequence[Box | Group], indent: str) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Box):
            before, after = part.shape.value
            yield f"{indent}{part.id}{before}{_label(part.lines)}{after}"
        else:
            yield f'{indent}subgraph {part.id}["{_label([part.title])}"]'
            yield from _drawn(part.inner, f"{indent}  ")
            yield f"{indent}end"


def _label(lines: Sequence[str]) -> str:
    return "<br/>".join(map(_escaped, lines))


def _escaped(text: str) -> str:
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    coded = _UNSAFE.sub(lambda found: f"#{ord(found[0])};", shown)
    return _LIST.sub(lambda found: f"#{ord(found[0])};", coded)
