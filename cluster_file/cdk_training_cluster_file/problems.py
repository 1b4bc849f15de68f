"""How a mistake reaches its maker: one sentence a mistake on standard error, and no traceback."""

import dis
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from traceback import format_exception
from typing import TypeAlias
from unicodedata import category

DEFECT = 70
"""The exit status of an internal error: EX_SOFTWARE of sysexits.h."""

_REFUSED = 2
_OWN = ("cdk_training_cluster", "cluster_contract")
_COMMAND_LINE = ("click", "typer")
_FULL = {errno.ENOSPC, errno.EDQUOT}
_RAISE = dis.opmap["RAISE_VARARGS"]
# A refusal of CDK has a name, such as `InvalidPv: `; below an error of Python code that CDK calls back is a handler.
_CDK_REFUSAL = re.compile(r"\s*@jsii/kernel\.RuntimeError: (?!(Type|Range|Reference|Syntax)Error: )[A-Z]\w+: ")
_MANY_RESOURCES = re.compile(r"Number of resources in stack '(.*?)': (\d+) is greater than allowed maximum of (\d+)")
_CALLED_BACK = "at KernelHost.callbackHandler"

Location: TypeAlias = tuple[str | int, ...]
"""Where something is in a file: keys and, in lists, positions from 0."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake in a cluster file.

    Attributes:
        message: What is wrong, what was given, what is allowed, and how to mend it if that is not plain.
        where: The setting, such as `("node_groups", 1, "count")`; empty for the file as a whole.
        line: The line in the file, counted from 1, where it is known.
    """

    message: str
    where: Location = ()
    line: int | None = None

    @property
    def path(self) -> str:
        """The setting as people write it: `node_groups[1].count`."""
        return "".join(map(_step, self.where)).removeprefix(".")


def _step(part: str | int) -> str:
    if isinstance(part, str) and re.fullmatch(r"[^\s\[\]\"]+", part):
        return f".{part}"
    return f"[{json.dumps(part, ensure_ascii=False)}]"


class ClusterFileError(Exception):
    """A cluster file cannot be used; it carries every problem, in the order of the file.

    Attributes:
        file: The file as its user named it.
        problems: All that is wrong with it.
    """

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(self._sentence(problem) for problem in self.problems))

    def _sentence(self, problem: Problem) -> str:
        place = self.file if problem.line is None else f"{self.file}:{problem.line}"
        return ": ".join(part for part in (place, problem.path, problem.message) if part)


class UnreadableFileError(ClusterFileError):
    """A file cannot be read, so that nothing is known of its content."""


def explain_os_error(error: Exception) -> str | None:
    """Return the reason why the operating system refuses, and the fix. None: the error has another origin.

    Args:
        error: The exception.
    """
    if not isinstance(error, OSError):
        return None
    if error.errno in _FULL:
        return "the disk is full: free some space and run the command again, which goes on from there"
    reason = error.strerror or str(error)
    return f"{reason}: {error.filename}" if error.filename else reason


@contextmanager
def plain_errors(
    status: int = 1,
    *,
    unreadable: int | None = None,
    explain: Callable[[Exception], str | None] = explain_os_error,
) -> Iterator[None]:
    """End the program with one sentence for each mistake of its user, and an exit status.

    Mistakes are those in the cluster file, those that this library's code refuses (`raise ValueError`), those that
    CDK finds in what was built, and what AWS or the operating system refuses. Anything else is a defect: its
    sentence says so, its status is `DEFECT`, and a file has its traceback. With CDK_DEBUG, which `cdk --debug` sets,
    an error keeps its traceback.

    Args:
        status: The exit status of a mistake. Default: 1
        unreadable: The exit status where a file cannot be read. Default: - `status`
        explain: Returns the sentence for an error of another system, or None for a defect. Default: - the operating
            system alone
    """
    try:
        yield
    except Exception as error:
        # Typer ends the program with its own exceptions, and without a word when nobody reads on.
        closed = isinstance(error, OSError) and error.errno == errno.EPIPE
        if os.environ.get("CDK_DEBUG") or closed or _package(type(error).__module__) in _COMMAND_LINE:
            raise
        sentences = sentences_of(error)
        if isinstance(error, UnreadableFileError) and unreadable is not None:
            status = unreadable
        if sentences is None:
            sentence = explain(error)
            sentences, status = None if sentence is None else [sentence], _REFUSED
        if sentences is None:
            sentences, status = _defect(error), DEFECT
        sys.stderr.writelines(f"error: {printable(sentence)}\n" for sentence in sentences)
        raise SystemExit(status) from error


def sentences_of(error: Exception) -> Sequence[str] | None:
    """Return what an error says of its user's mistakes, a sentence each; None: it is none of these.

    Args:
        error: What was raised.
    """
    if isinstance(error, ClusterFileError) or (isinstance(error, ValueError) and _is_raised_here(error)):
        return str(error).splitlines()
    return _sentences_of_cdk(str(error)) if isinstance(error, RuntimeError) and _is_from_cdk(error) else None


def printable(text: str) -> str:
    """Write characters that no terminal shows, which a key in S3 may have, as Python does.

    They control the terminal, or change the order of what is shown.

    Args:
        text: The text; its tabs, line ends and spaces stay.
    """
    return escaped(text, lambda one: repr(one)[1:-1])


def escaped(text: str, escape: Callable[[str], str]) -> str:
    """Escape the characters of a text that no terminal shows.

    Args:
        text: The text; its tabs, line ends and spaces stay.
        escape: What a character is written as.
    """
    return "".join(
        one if one.isprintable() or one in "\t\n" or category(one) == "Zs" else escape(one) for one in text
    )


def _is_raised_here(error: Exception) -> bool:
    """Return whether a `raise` of this library raised it: Python's own errors have the same types."""
    where = error.__traceback__
    if where is None:
        return False
    while where.tb_next:
        where = where.tb_next
    module = str(where.tb_frame.f_globals.get("__name__"))
    return module.startswith(_OWN) and where.tb_frame.f_code.co_code[where.tb_lasti] == _RAISE


def _package(module: str) -> str:
    return module.partition(".")[0]


def _defect(error: Exception) -> list[str]:
    with NamedTemporaryFile("w", prefix="training-cluster-", suffix=".txt", encoding="utf-8", delete=False) as file:
        file.writelines(format_exception(error))
    said = " ".join(str(error).split()) or "no message"
    return [
        f"this is a defect of cdk-training-cluster, and no mistake of yours: {type(error).__name__}: {said}",
        f"report it with {file.name}, your cluster file, the command and what training-cluster --version prints",
    ]


def _is_from_cdk(error: RuntimeError) -> bool:
    # By name: this module is read before, and without, aws_cdk and the Node process that comes with it.
    cause = error.__cause__
    if type(cause).__name__ != "JavaScriptError":
        return False
    return bool(_CDK_REFUSAL.match(str(cause))) and _CALLED_BACK not in str(cause).partition("at Kernel.")[0]


def _sentences_of_cdk(text: str) -> list[str]:
    """Take out what CDK says for programmers: the error's name, the heading above a list, the types of resources."""
    many = _MANY_RESOURCES.search(text)
    if many:
        return [
            "stack {} would have {} resources, and CloudFormation takes at most {}: declare fewer, larger node "
            "groups, or spread them over several cluster files".format(*many.groups())
        ]
    lines = [line.strip() for line in re.sub(r"^[A-Z]\w+: ", "", text).splitlines() if line.strip()]
    return [line for line in lines if not line.endswith("failed with the following errors:")] or [text]
