"""Draws boxes with matplotlib: every text is folded to the width of its box, and every box is as high as its text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdk_training_cluster_cli.pictures.diagram.boxes import Box

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

_WIDTH, _MARGIN, _PADDING, _GAP = 1080.0, 18.0, 9.0, 9.0  # points, of which an inch has 72
_SIZE, _TITLE_SIZE, _LINE = 9.0, 10.5, 1.35
_POINTS_AN_INCH = 72
_DOTS_AN_INCH = 120
# What is wider than a box has no blank where it could be folded.
_BREAKS = re.compile(r"(?<=[/,._:-])")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure, and where its texts belong.

    Attributes:
        figure: The figure.
        texts: Each text with its box.
        boxes: All boxes, an outer one before those in it.
    """

    figure: "Figure"
    texts: "Sequence[tuple[Text, Rectangle]]"
    boxes: "Sequence[Rectangle]"


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """A box with its place, in points from the upper left corner of the one that it is in."""

    x: float
    y: float
    width: float
    height: float
    title: Sequence[str]
    lines: Sequence[str]
    inner: "Sequence[_Placed]"
    color: str


def draw(boxes: Sequence[Box], heading: str) -> Drawing:
    """Draw boxes below each other; the same boxes give the same figure.

    Args:
        boxes: The boxes.
        heading: What stands above them.

    Raises:
        ValueError: matplotlib is missing.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - slow to import, and seldom wanted
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ValueError("a diagram needs matplotlib: pip install 'cdk-training-cluster[cli]'") from error
    whole = Box(title=heading, inner=boxes, columns=1)
    placed = _place(whole, _MARGIN, _MARGIN, _WIDTH)
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    with rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(width / _POINTS_AN_INCH, height / _POINTS_AN_INCH), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.set_axis_off()
        texts: list[tuple[Text, Rectangle]] = []
        drawn: list[Rectangle] = []
        _draw(axes, placed, texts, drawn)
    return Drawing(figure=figure, texts=texts, boxes=drawn)


def save(drawing: Drawing, file: Path) -> None:
    """Write a drawing; the same one gives the same bytes.

    Args:
        drawing: The drawing.
        file: A `.png` or `.svg` file.

    Raises:
        ValueError: The file cannot be written, or its name ends otherwise.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - see draw

    metadata = {".svg": {"Date": None}, ".png": {"Software": None}}.get(file.suffix.lower())
    if metadata is None:
        raise ValueError(f"a diagram is a .svg or .png file, got {str(file)!r}")
    try:
        with rc_context({"svg.hashsalt": "diagram"}):
            drawing.figure.savefig(file, dpi=_DOTS_AN_INCH, metadata=metadata)
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}") from error


def _place(box: Box, x: float, y: float, width: float) -> _Placed:
    inside = width - 2 * _PADDING
    title = list(_folded(box.title, _TITLE_SIZE, inside, bold=True))
    lines = [part for line in box.lines for part in _folded(line, _SIZE, inside)]
    height = _PADDING + _LINE * (len(title) * _TITLE_SIZE + len(lines) * _SIZE)
    columns = max(1, min(box.columns, len(box.inner)))
    share = (inside - (columns - 1) * _GAP) / columns
    inner: list[_Placed] = []
    for start in range(0, len(box.inner), columns):
        height += _GAP
        row = [
            _place(each, x + _PADDING + number * (share + _GAP), y + height, share)
            for number, each in enumerate(box.inner[start : start + columns])
        ]
        highest = max(each.height for each in row)
        inner += [replace(each, height=highest) for each in row]
        height += highest
    return _Placed(
        x=x, y=y, width=width, height=height + _PADDING, title=title, lines=lines, inner=inner, color=box.color.value
    )


def _draw(axes: Any, box: _Placed, texts: "list[tuple[Text, Rectangle]]", drawn: "list[Rectangle]") -> None:  # noqa: ANN401 - its methods take anything
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - see draw

    patch = Rectangle((box.x, box.y), box.width, box.height, facecolor=box.color, edgecolor="#555555", linewidth=0.8)
    axes.add_patch(patch)
    drawn.append(patch)
    y = box.y + _PADDING
    sizes = [(text, _TITLE_SIZE, "bold") for text in box.title] + [(text, _SIZE, "normal") for text in box.lines]
    for text, size, weight in sizes:
        made = axes.text(
            box.x + _PADDING, y, text, fontsize=size, fontweight=weight, va="top", ha="left", parse_math=False
        )
        texts.append((made, patch))
        y += size * _LINE
    for each in box.inner:
        _draw(axes, each, texts, drawn)


def _folded(text: str, size: float, width: float, *, bold: bool = False) -> Iterator[str]:
    """Yield the lines of a text that is folded to a width: at blanks, and within a word only where it must be."""
    line = ""
    for word in _words(text, size, width, bold=bold):
        if line and _wide(line + word.rstrip(), size, bold=bold) > width:
            yield line.rstrip()
            line = "  " if not bold else ""
        line += word
    yield line.rstrip()


def _words(text: str, size: float, width: float, *, bold: bool) -> Iterator[str]:
    for word in re.findall(r"\S+\s*", text):
        if _wide(f"  {word}", size, bold=bold) <= width:
            yield word
            continue
        for part in _BREAKS.split(word):
            while _wide(f"  {part}", size, bold=bold) > width:
                fits = next(n for n in range(1, len(part)) if _wide(f"  {part[: n + 1]}", size, bold=bold) > width)
                yield part[:fits]
                part = part[fits:]  # noqa: PLW2901 - what is left of it
            yield part


@cache
def _wide(text: str, size: float, *, bold: bool) -> float:
    """Return the width of a text, in points."""
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415 - see draw
    from matplotlib.textpath import text_to_path  # noqa: PLC0415

    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) * _ROUNDING


# The renderers round the advance of each letter to a pixel of their own.
_ROUNDING = 1.04
