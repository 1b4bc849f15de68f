"""How a command shows what it found: as tables and sentences on a terminal, as Markdown, or as JSON."""

import json
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from rich import box, markup
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from cdk_training_cluster_file.problems import escaped, printable

FORMATS = ("table", "json", "markdown")
UNKNOWN = "unknown"
_CENTS_BELOW = 1000
_GAP = 2
_ONE_LINE = 100_000
_TWO_HALVES = 0x10000


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        title: What it shows. Empty: what is above says it.
        headings: The headings of its columns.
        rows: Its rows.
        numbers: The positions of columns that hold numbers.
        bold: The first cells of rows that are sums.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    bold: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Document:
    """What a command shows.

    Attributes:
        tables: Its tables; one without rows is left out.
        notes: What is said below them: a heading and its sentences. One without sentences is left out.
        conclusion: The last sentence.
    """

    tables: tuple[Table, ...]
    notes: tuple[tuple[str, tuple[str, ...]], ...]
    conclusion: str = ""


def check_format(name: str, *, option: str = "--output", formats: Sequence[str] = FORMATS) -> None:
    """Check the format that a user asks for.

    Args:
        name: What was given to the option.
        option: The option's name. Default: - `--output`
        formats: The formats that the command has. Default: - `FORMATS`

    Raises:
        ValueError: It is none of them.
    """
    if name not in formats:
        raise ValueError(f"{option} must be {', '.join(formats[:-1])} or {formats[-1]}, got {name!r}")


def show(name: str, document: Document, values: Mapping[str, object]) -> None:
    """Write what a command found to standard output.

    Args:
        name: One of `FORMATS`.
        document: What a person reads.
        values: What a program reads.
    """
    if name == "json":
        sys.stdout.write(f"{json_text(values)}\n")
    elif name == "markdown":
        sys.stdout.write("\n".join(_markdown(document)))
    else:
        _show(document, terminal())


def usd(amount: Decimal | None) -> str:
    """Write an amount as people read it: cents where they matter.

    Args:
        amount: US dollars. None: unknown.
    """
    if amount is None:
        return UNKNOWN
    if 0 < amount < Decimal("0.01"):
        return "< 0.01"
    return f"{amount:,.0f}" if abs(amount) >= _CENTS_BELOW else f"{amount:,.2f}"


def json_text(values: Mapping[str, object]) -> str:
    """Return values as JSON; amounts are texts, so that they stay exact, and no terminal obeys a text.

    Args:
        values: The values by their names.
    """
    text = json.dumps(_plain(values), indent=2, ensure_ascii=False)
    # Outside of texts there are line ends and spaces alone; of a character beyond 16 bits, JSON has two halves.
    return escaped(text, lambda one: f"\\u{ord(one):04x}" if ord(one) < _TWO_HALVES else json.dumps(one)[1:-1])


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON is of any type
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, (Decimal, date)) else value


def one_line(text: str) -> str:
    """Return a text without line ends: a name that has them, as a key in S3 may, makes no row and no sentence.

    Args:
        text: The text.
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def terminal() -> Console:
    """Return the console of standard output, as wide as the terminal or COLUMNS; without both, nothing is folded."""
    folds = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if folds else _ONE_LINE)


def print_paragraph(console: Console, text: str, *, style: str = "", first: str = "") -> None:
    """Print a sentence, folded between words; a word that is longer than a line stays whole.

    Args:
        console: Where to print.
        text: The sentence.
        style: How it looks.
        first: What stands before its first line; the others begin below the sentence.
    """
    indent = " " * len(first)
    lines = textwrap.wrap(
        printable(text),
        width=console.width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines or [first]:
        console.print(Text(line, style=style), soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table of which no word is broken and nothing is lost: what is too wide has its rows below each other.

    Args:
        console: Where to print.
        table: The table.
    """
    table = replace(table, rows=tuple(tuple(map(one_line, row)) for row in table.rows))
    if table.title:
        print_paragraph(console, table.title, style="bold")
    widths = _widths(table, console.width - 1 - _GAP * (len(table.headings) - 1))
    if widths is not None:
        console.print(Padding(_side_by_side(table, widths), (0, 0, 0, 1), expand=False))
        return
    longest = max(map(len, table.headings))
    for row in table.rows:
        style = "bold" if row[0] in table.bold else ""
        for heading, cell in zip(table.headings, row, strict=True):
            print_paragraph(console, cell, style=style, first=f" {heading:<{longest}}  ")
        console.print()


def _show(document: Document, console: Console) -> None:
    for table in filter(_has_rows, document.tables):
        print_table(console, table)
    for heading, sentences in filter(_has_sentences, document.notes):
        print_paragraph(console, heading, style="bold")
        for sentence in sentences:
            print_paragraph(console, sentence, first="- ")
    if document.conclusion:
        print_paragraph(console, document.conclusion, style="bold")


def _widths(table: Table, room: int) -> list[int] | None:
    """Return the width of each column: the widest are folded first, between words. None: they have no room."""
    columns = [(heading, *(row[at] for row in table.rows)) for at, heading in enumerate(table.headings)]
    widths = [max(map(cell_len, column)) for column in columns]
    least = [
        max(
            cell_len(word)
            for at, cell in enumerate(column)
            for word in _words(cell, at > 0 and number in table.numbers)
        )
        for number, column in enumerate(columns)
    ]
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _words(cell: str, whole: bool) -> Sequence[str]:
    """Return what of a cell stays in one line: a number with its unit, or each word."""
    return [cell] if whole else cell.split() or [""]


def _side_by_side(table: Table, widths: Sequence[int]) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    for position, (heading, width) in enumerate(zip(table.headings, widths, strict=True)):
        shown.add_column(heading, justify="right" if position in table.numbers else "left", width=width)
    for row in table.rows:
        shown.add_row(*map(markup.escape, row), style="bold" if row[0] in table.bold else None)
    return shown


def _markdown(document: Document) -> Iterator[str]:
    for table in filter(_has_rows, document.tables):
        lines = ["---:" if position in table.numbers else "---" for position in range(len(table.headings))]
        yield from (f"## {one_line(table.title)}", "", *map(_row, (table.headings, lines, *table.rows)), "")
    for heading, sentences in filter(_has_sentences, document.notes):
        yield from (f"## {one_line(heading)}", "", *(f"- {one_line(sentence)}" for sentence in sentences), "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _has_rows(table: Table) -> bool:
    return bool(table.rows)


def _has_sentences(note: tuple[str, tuple[str, ...]]) -> bool:
    return bool(note[1])
