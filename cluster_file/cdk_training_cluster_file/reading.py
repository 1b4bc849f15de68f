"""Turns a file into a `ClusterFile`, or into every problem it has."""

import errno
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

import yaml
from pydantic import ValidationError

from cdk_training_cluster_file.capacity import CALLS, example_of
from cdk_training_cluster_file.explaining import explain, required_example, shown
from cdk_training_cluster_file.model import ClusterFile
from cdk_training_cluster_file.problems import ClusterFileError, Location, Problem, UnreadableFileError
from cdk_training_cluster_file.rules import complaints
from cdk_training_cluster_file.source import Source, TooManyValuesError, parse

_CONTEXT = "cluster"
_NAME_SHOWN = 40
# A cluster file among others: it has groups, and is not larger than any that is written by hand.
_GROUPS, _LARGEST_SHOWN = "node_groups", 1_000_000


def cluster_file_in(context: Mapping[str, object]) -> str:
    """Return the path of the cluster file that the app's context names.

    Nothing is taken for granted: a context that is forgotten or misspelt must not deploy another cluster.

    Args:
        context: All of the app's context.

    Raises:
        ValueError: It names none.
    """
    file = context.get(_CONTEXT)
    if isinstance(file, str) and file.strip():
        return file
    near = "".join(f" (you gave {key!r})" for key in get_close_matches(_CONTEXT, context.keys() - {_CONTEXT}, n=1))
    given = (
        f"the context {_CONTEXT!r} is {file!r}" if _CONTEXT in context else f"there is no context {_CONTEXT!r}{near}"
    )
    raise ValueError(
        f"{given}: name the cluster file in every cdk command, such as cdk synth -c cluster=clusters/base-pod.yaml"
    )


def read_cluster_file(path: str | Path, *, relative_to: Path | None = None) -> ClusterFile:
    """Read a cluster file.

    Args:
        path: The file. Errors name it as it is given here.
        relative_to: The directory that a relative path starts from. Default: - the current directory.

    Raises:
        ClusterFileError: The file cannot be read, or anything is wrong in it: everything that is, at once.
    """
    file = (relative_to or Path()) / path
    source = parsed(str(path), file)
    if not isinstance(source.value, Mapping):
        message = (
            "is empty; a cluster file begins with its name, such as name: base-pod"
            if source.value is None
            else f"must be a mapping of settings, such as name: base-pod, got {shown(source.value)}"
        )
        raise ClusterFileError(str(path), [Problem(message=message)])
    cluster = None
    found = [Problem(message=message, where=where, line=line) for where, line, message in source.written_twice]
    wrong = [(where, _no_value(where)) for where in source.empty]
    try:
        cluster = ClusterFile.model_validate(source.value, context={"directory": file.parent})
    except ValidationError as error:
        wrong += [(where, message) for where, message in explain(error) if where not in source.empty]
    # Where a value has the wrong form, what it would contradict says nothing.
    misshapen = {where for where, _ in wrong}
    wrong += [(where, message) for where, message in complaints(source.value, file.parent) if where not in misshapen]
    found += [Problem(message=message, where=where, line=source.line(where)) for where, message in wrong]
    if found or cluster is None:
        raise ClusterFileError(str(path), sorted(found, key=lambda problem: problem.line or 0))
    return cluster


def with_places(
    path: str | Path, found: Iterable[tuple[Location, str]], *, relative_to: Path | None = None
) -> ClusterFileError:
    """Return what is wrong with a file that could be read, with the lines of the settings.

    Args:
        path: The file. The error names it as it is given here.
        found: What is wrong with each setting; () is the file as a whole.
        relative_to: The directory that a relative path starts from. Default: - the current directory.
    """
    source = parsed(str(path), (relative_to or Path()) / path)
    return ClusterFileError(
        str(path),
        [
            Problem(message=message, where=where, line=source.line(where) if where else None)
            for where, message in found
        ],
    )


def parsed(name: str, file: Path) -> Source:
    """Return what a file of settings says, and where.

    Args:
        name: The file as its user named it.
        file: The file.

    Raises:
        ClusterFileError: It cannot be read, or is not YAML.
    """
    try:
        return parse(_text(name, file))
    except UnicodeDecodeError:
        message, line = "is not text in UTF-8", None
    except TooManyValuesError as error:
        message, line = str(error), None
    except RecursionError:
        message, line = "is nested too deeply to be a cluster file", None
    except yaml.MarkedYAMLError as error:
        message, line = _not_yaml(error)
    except yaml.YAMLError as error:  # a character that YAML does not allow
        message, line = f"is not YAML: {str(error).splitlines()[0]}", None
    raise ClusterFileError(name, [Problem(message=message, line=line)])


def _text(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"there is no such file{_others(name, file.parent, file.name)}"
    except IsADirectoryError:
        message = f"is a directory; name a file{_others(name + '/', file)}"
    except UnicodeDecodeError:  # a ValueError too
        raise
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        if error.errno == errno.ENAMETOOLONG:
            message = f"is no file: the name has {len(name)} characters, and the system takes no name of that length"
            name = f"{name[:_NAME_SHOWN]}…"
    except ValueError:  # what the system says of a name with a null character
        message = "is not a file name: it contains a null character"
    raise UnreadableFileError(name, [Problem(message=message)])


def _no_value(where: Location) -> str:
    match where:
        case ("node_groups", _, "capacity", call) if call in CALLS:
            return f"has no value; write {example_of(str(call))}"
    return f"has no value; write one{required_example(where) or ', or leave the key out'}"


def _others(name: str, directory: Path, meant: str | None = None) -> str:
    """Name the cluster files in a directory, or the one that is most like the one that was meant."""
    files = sorted(path.name for path in directory.glob("*.y*ml") if _is_cluster_file(path))
    near = get_close_matches(meant, files, n=1) if meant else []
    start = name[: name.rfind("/") + 1]
    if near:
        return f"; did you mean {start}{near[0]}?"
    return f"; there are {', '.join(start + file for file in files)}" if files else ""


def _is_cluster_file(path: Path) -> bool:
    try:
        value = parse(path.read_text(encoding="utf-8")).value if path.stat().st_size <= _LARGEST_SHOWN else None
    except (OSError, ValueError, RecursionError, TooManyValuesError, yaml.YAMLError):
        return False
    return isinstance(value, Mapping) and _GROUPS in value


def _not_yaml(error: yaml.MarkedYAMLError) -> tuple[str, int | None]:
    mark = error.problem_mark or error.context_mark
    column = f" in column {mark.column + 1}" if mark else ""
    problem = error.problem or "it cannot be understood"
    if r"'\t'" in problem or (mark and mark.buffer and mark.buffer[mark.pointer : mark.pointer + 1] == "\t"):
        problem = "a tab; indent with spaces"
    return f"is not YAML{column}: {problem}", mark.line + 1 if mark else None
