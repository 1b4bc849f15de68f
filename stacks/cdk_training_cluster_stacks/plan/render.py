"""Shows a plan: as tables on a terminal, or as Markdown."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cdk_training_cluster_stacks.plan.report import Plan
from cdk_training_cluster_stacks.plan.sentences import conclusion, notes
from cdk_training_cluster_stacks.plan.tables import PlanTable, tables


def show(plan: Plan, console: Console) -> None:
    """Show a plan on a terminal.

    Args:
        plan: The plan.
        console: What shows it.
    """
    for table in tables(plan, brief=True):
        console.print(f"[bold]{escape(table.title)}[/bold]")
        console.print(_rich(table))
    for heading, sentences in notes(plan, brief=True):
        console.print(f"[bold]{heading}[/bold]")
        for sentence in sentences:
            console.print(_item(sentence))
    console.print(f"[bold]{escape(conclusion(plan))}[/bold]")


def markdown(plan: Plan) -> str:
    """Return a plan as Markdown.

    Args:
        plan: The plan.
    """
    parts = [part for table in tables(plan) for part in (f"## {table.title}", "", *_markdown(table), "")]
    for heading, sentences in notes(plan):
        parts += [f"## {heading}", "", *(f"- {sentence}" for sentence in sentences), ""]
    return "\n".join(parts)


def _rich(table: PlanTable) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for position, heading in enumerate(table.headings):
        number = position in table.numbers
        shown.add_column(
            heading, justify="right" if number else "left", no_wrap=number or position == 0, overflow="fold"
        )
    for row in table.rows:
        shown.add_row(
            *map(escape, row),
            style="bold"
            if row[0] in ("compute", "storage", "transfer", "guardrails", "known so far", "total")
            else None,
        )
    return shown


def _item(sentence: str) -> Table:
    """Return a sentence behind a dash, its further lines below its first."""
    shown = Table.grid(padding=(0, 1))
    shown.add_column()
    shown.add_column(overflow="fold")
    shown.add_row("-", escape(sentence))
    return shown


def _markdown(table: PlanTable) -> list[str]:
    lines = ["---:" if position in table.numbers else "---" for position in range(len(table.headings))]
    return [_row(table.headings), _row(lines), *map(_row, table.rows)]


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
