"""How a command shows what it found: as tables and sentences on a terminal, as Markdown, or as JSON."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from rich import box, markup
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable

from cdk_training_cluster_stacks.problems import printable

FORMATS = ("table", "json", "markdown")
UNKNOWN = "unknown"
_CENTS_BELOW = 1000


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        title: What it shows.
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


def check_format(name: str, *, option: str = "--format", formats: Sequence[str] = FORMATS) -> None:
    """Check the format that a user asks for.

    Args:
        name: What was given to the option.
        option: The option's name. Default: - `--format`
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
        sys.stdout.write(printable("\n".join(_markdown(document))))
    else:
        _show(document, Console(highlight=False))


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
    """Return values as JSON; amounts are texts, so that they stay exact.

    Args:
        values: The values by their names.
    """
    return json.dumps(_plain(values), indent=2, ensure_ascii=False)


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON is of any type
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, (Decimal, date)) else value


def _show(document: Document, console: Console) -> None:
    for table in filter(_has_rows, document.tables):
        console.print(f"[bold]{_escaped(table.title)}[/bold]")
        console.print(Padding(_rich(table), (0, 0, 0, 1)))
    for heading, sentences in filter(_has_sentences, document.notes):
        console.print(f"[bold]{_escaped(heading)}[/bold]")
        for sentence in sentences:
            console.print(_item(sentence))
    if document.conclusion:
        console.print(f"[bold]{_escaped(document.conclusion)}[/bold]")


def _escaped(text: str) -> str:
    return markup.escape(printable(text))


def _rich(table: Table) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    for position, heading in enumerate(table.headings):
        number = position in table.numbers
        # A number is never folded; its heading is, between words.
        width = max(map(len, (*heading.split(), *(row[position] for row in table.rows)))) if number else None
        shown.add_column(
            heading, justify="right" if number else "left", no_wrap=position == 0, overflow="fold", min_width=width
        )
    for row in table.rows:
        shown.add_row(*map(_escaped, row), style="bold" if row[0] in table.bold else None)
    return shown


def _item(sentence: str) -> RichTable:
    """Return a sentence behind a dash, its further lines below its first."""
    shown = RichTable.grid(padding=(0, 1))
    shown.add_column()
    shown.add_column(overflow="fold")
    shown.add_row("-", _escaped(sentence))
    return shown


def _markdown(document: Document) -> Iterator[str]:
    for table in filter(_has_rows, document.tables):
        lines = ["---:" if position in table.numbers else "---" for position in range(len(table.headings))]
        yield from (f"## {table.title}", "", *map(_row, (table.headings, lines, *table.rows)), "")
    for heading, sentences in filter(_has_sentences, document.notes):
        yield from (f"## {heading}", "", *(f"- {sentence}" for sentence in sentences), "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _has_rows(table: Table) -> bool:
    return bool(table.rows)


def _has_sentences(note: tuple[str, tuple[str, ...]]) -> bool:
    return bool(note[1])
