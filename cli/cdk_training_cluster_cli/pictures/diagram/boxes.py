"""What a diagram holds: boxes with text, which may hold others."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Color(Enum):
    """What a box is about; the value is the color of its background."""

    NETWORK = "#eef4fb"
    NODES = "#dff0d8"
    STORAGE = "#fdf1dc"
    GUARDRAILS = "#f3e8f7"
    MONEY = "#fbe9e7"
    PLAIN = "#ffffff"


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box of a diagram.

    Attributes:
        title: What it is.
        lines: What is said of it; a long line is folded.
        inner: The boxes in it, which follow its lines.
        color: Its background.
        columns: How many boxes in it are side by side, at most. Default: - 3.
    """

    title: str
    lines: Sequence[str] = ()
    inner: Sequence["Box"] = ()
    color: Color = Color.PLAIN
    columns: int = 3
