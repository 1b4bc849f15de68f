"""What stands in a page in place of `<!-- made: WHAT NAMES -->`, from the source as it is now."""

import ast
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import typer.main
from scripts.site import synthesized
from typer.core import TyperGroup

import cdk_training_cluster
from cdk_training_cluster.nodes.legality import LEGALITY, Cell, Choice
from cdk_training_cluster.observability.prometheus_rules import ALERT_RULES
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.pictures.diagram import architecture, fenced
from cdk_training_cluster_file import read_cluster_file

PROJECT = Path(__file__).resolve().parents[2]
MERMAID = "assets/mermaid.min.js"
"""The site's copy of Mermaid, below its top."""
_PLACE = re.compile(r"<!-- made: (?P<what>\w+)(?P<names>[^>]*?) *-->")


def expanded(markdown: str) -> str:
    """Return a page with what its places stand for.

    Args:
        markdown: The page.
    """
    return _PLACE.sub(lambda place: _MAKERS[place["what"]](*place["names"].split()), markdown)


def with_mermaid(html: str, url: str) -> str:
    """Return a page's content with the site's copy of Mermaid if the page contains a diagram.

    Without it, the theme loads Mermaid from another host.

    Args:
        html: The content.
        url: The address of the page below the site's top, such as `constructs/nodes/`.
    """
    if '<pre class="mermaid">' not in html:
        return html
    return f'{html}\n<script src="{posixpath.relpath(MERMAID, url or ".")}"></script>'


def _members(path: str, name: str) -> str:
    """Return an enumeration's values with their docstrings."""
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    (enum,) = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    rows = []
    for member, text in zip(enum.body, enum.body[1:], strict=False):
        match member, text:
            case ast.Assign(value=ast.Constant(value=str(value))), ast.Expr(value=ast.Constant(value=str(words))):
                rows.append(f"| `{value}` | {' '.join(words.split())} |")
    return "\n".join(["| value | what it means |", "|---|---|", *rows])


def _commands(*names: str) -> str:
    """Return the commands with their first sentence; with names, only those."""
    rows = [
        f"| `training-cluster {name}` | {says} |"
        for name, says in _leaves(typer.main.get_group(training_cluster), "")
        if not names or name in names
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def _leaves(group: TyperGroup, before: str) -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _leaves(command, f"{before}{name} ")
        elif not command.hidden:
            yield f"{before}{name}", (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _constructs() -> str:
    """Return the public constructs with the pages that have them as a title."""
    rows = []
    for page in sorted((PROJECT / "docs/constructs").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0]
        for name in (word for word in re.findall(r"\w+", title) if word in cdk_training_cluster.__all__):
            says = (getattr(cdk_training_cluster, name).__doc__ or "").partition("\n")[0]
            rows.append(f"| [`{name}`]({page.name}) | {says} |")
    return "\n".join(["| name | what it makes |", "|---|---|", *sorted(rows)])


def _alarms() -> str:
    """Return a section for each alarm, under the anchor that its description links to."""
    return "\n\n".join(
        f"### {anchor.replace('-', ' ').capitalize()} {{ #{anchor} }}\n\n"
        f"**{trouble[0].upper()}{trouble[1:]}.** {remedy}"
        for anchor, trouble, remedy in synthesized.alarms()
    )


def _alerts() -> str:
    """Return what Prometheus alerts on, and what to do then."""
    rows = [f"| `{rule.name}` | {_plain(rule.summary)} | {rule.runbook} |" for rule in ALERT_RULES]
    return "\n".join(["| alert | what it says | what to do |", "|---|---|---|", *rows])


def _legality() -> str:
    """Return which ways to buy and place nodes each orchestrator takes."""
    rows = [[f"`{choice.value}`", *(_cell(cells[choice]) for cells in LEGALITY.values())] for choice in Choice]
    head = ["setting", *(kind.value for kind in LEGALITY)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _cell(cell: Cell) -> str:
    """Return a cell with a link to where AWS says so."""
    how = f"{cell.how}: not documented" if cell.inferred else cell.how
    return f"[{how}]({cell.source})" if cell.source else how


def _plain(template: str) -> str:
    """Return a text of Prometheus with names in place of what it fills in."""
    return re.sub(r"\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}", r"*\1*", template)


def _architecture() -> str:
    """Return the architecture of a cluster with every part."""
    return fenced(architecture(read_cluster_file(synthesized.FILE)))


_MAKERS: dict[str, Callable[..., str]] = {
    "alarms": _alarms,
    "alerts": _alerts,
    "architecture": _architecture,
    "commands": _commands,
    "constructs": _constructs,
    "enum": _members,
    "legality": _legality,
    "resources": synthesized.resources,
}
