"""How a mistake reaches its maker: one sentence a mistake on standard error, and no traceback."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

_REFUSED = 2
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

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


@contextmanager
def plain_errors(status: int = 1) -> Iterator[None]:
    """End the program with one sentence for each mistake of its user, and an exit status.

    Mistakes are those in the cluster file, those that constructs refuse (`ValueError`), those that CDK finds in what
    was built, and what AWS refuses. Anything else is a defect and keeps its traceback, as everything does with
    `cdk --debug`.

    Args:
        status: The exit status. Default: 1
    """
    try:
        yield
    except (ClusterFileError, ValueError, RuntimeError) as error:
        sentences = sentences_of(error)
        if sentences is None:
            raise
        _end(error, sentences, status)
    except Exception as error:
        if not type(error).__module__.startswith("botocore."):
            raise
        from cdk_training_cluster_stacks.checkpoints.refusals import explained  # noqa: PLC0415 - with AWS only

        said = explained(error)
        if said is None:
            raise
        _end(error, [said], _REFUSED)


def sentences_of(error: Exception) -> Sequence[str] | None:
    """Return what an error says of its user's mistakes, a sentence each; None: it is a defect.

    Args:
        error: What was raised.
    """
    if not isinstance(error, RuntimeError):
        return str(error).splitlines()
    return _sentences_of_cdk(str(error)) if _is_from_cdk(error) else None


def printable(text: str) -> str:
    """Write control characters, which a key in S3 may have, as Python does, so that no terminal obeys them.

    Args:
        text: The text; its tabs and line ends stay.
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def _end(error: Exception, sentences: Sequence[str], status: int) -> None:
    if os.environ.get("CDK_DEBUG"):  # what `cdk --debug` sets
        raise error
    sys.stderr.writelines(f"error: {printable(sentence)}\n" for sentence in sentences)
    raise SystemExit(status)


def _is_from_cdk(error: RuntimeError) -> bool:
    # By name: this module is read before, and without, aws_cdk and the Node process that comes with it.
    return type(error.__cause__).__name__ == "JavaScriptError"


def _sentences_of_cdk(text: str) -> list[str]:
    """Take out what CDK says for programmers: the error's name, and the heading above a list."""
    lines = [line.strip() for line in re.sub(r"^[A-Z]\w+: ", "", text).splitlines() if line.strip()]
    return [line for line in lines if not line.endswith("failed with the following errors:")] or [text]
