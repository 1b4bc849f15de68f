"""The pages for readers: README and docs/, with their blocks of code and the commands in them."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import botocore.session
import typer.main
from botocore import xform_name
from typer.core import TyperGroup

from cdk_training_cluster_cli.main import training_cluster
from examples import PROJECT

PAGES = ["README.md", *sorted(f"docs/{path.relative_to(PROJECT / 'docs')}" for path in PROJECT.glob("docs/**/*.md"))]

_BLOCK = re.compile(r"^( *)```(?P<language>\w*)\n(?P<text>.*?)^\1```", re.DOTALL | re.MULTILINE)
_AWS_OPTIONS = {"cli-binary-format", "cli-input-json", "no-cli-pager", "output", "profile", "query", "region"}
_AWS_OWN = {"s3", "configure", "logs tail"}
"""Commands of the AWS CLI that are no operation of a service."""
_AWS_SHORT = {"put-metric-data": {"metric-name", "value", "dimensions", "unit"}}
"""Options that the AWS CLI adds to those of an operation: https://docs.aws.amazon.com/cli/latest/reference/."""


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    page: str
    language: str
    text: str


def text_of(page: str) -> str:
    """Return a page's text."""
    return (PROJECT / page).read_text(encoding="utf-8")


def blocks(language: str) -> list[Block]:
    """Return the blocks of all pages in a language."""
    return [block for page in PAGES for block in blocks_of(page, language)]


def blocks_of(page: str, language: str) -> list[Block]:
    """Return a page's blocks in a language."""
    return [
        Block(page, language, textwrap.dedent(match["text"]))
        for match in _BLOCK.finditer(text_of(page))
        if match["language"] == language
    ]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command at a prompt in a console block, without what pipes and redirections add."""
    for line in re.findall(r"^\$ ((?:.*\\\n)*.*)", text, re.MULTILINE):
        # Files that the commands before would have written.
        filled = re.sub(r"<file>|\S+\.template\.json", "clusters/base-pod.yaml", line)
        filled = re.sub(r"<\w[^<>\n]*>", "PLACE", filled.replace("\\\n", " "))
        lexer = shlex.shlex(filled, posix=True, punctuation_chars="|;&()<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("|;&()"):
                yield words
                words = []
            elif words[-1:] == [">"]:  # and what it writes to
                words.pop()
            else:
                words.append(word)
        yield words


def parse_own(words: list[str]) -> None:
    """Parse a call of `training-cluster` without running it; raise click's error if it is none."""
    group = typer.main.get_group(training_cluster)
    context, (_, name, *rest) = typer.Context(group), words
    command = group.commands[name]
    if isinstance(command, TyperGroup):
        command, rest = command.commands[rest[0]], rest[1:]
    with command.make_context(name, rest, parent=context):
        pass


def parse_aws(words: list[str]) -> None:
    """Look a call of the AWS CLI up in botocore's models; raise where an option or operation is none of them."""
    service, operation, *rest = words[1:]
    if service in _AWS_OWN or f"{service} {operation}" in _AWS_OWN:
        return
    session = botocore.session.get_session()
    model = session.get_service_model(service)
    if operation == "wait":
        waiters = session.get_waiter_model(service)
        (operation,) = (
            xform_name(waiters.get_waiter(each).operation, "-")
            for each in waiters.waiter_names
            if xform_name(each, "-") == rest[0]
        )
    (name,) = (each for each in model.operation_names if xform_name(each, "-") == operation)
    shape = model.operation_model(name).input_shape
    known = (
        _AWS_OPTIONS
        | _AWS_SHORT.get(operation, set())
        | ({xform_name(member, "-") for member in shape.members} if shape else set())
    )
    for option in (word[2:] for word in rest if word.startswith("--")):
        assert option.partition("=")[0] in known or option.removeprefix("no-") in known, f"{operation} --{option}"
