"""Whatever is given for a setting: it is refused in a sentence that names it, or it is of the setting's own kind."""

import itertools
import json
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from cdk_training_cluster import NodeGroup, TrainingCluster
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_file.problems import ClusterFileError
from cluster_files import RIGHT as RIGHT_FILE
from public_calls import NOT_CALLED, RIGHT, called, parameters, public_calls
from synthesis import ZONE, new_stack

_MAX_SENTENCE = 900


class Foreign:
    """An object of a class that nothing here knows."""

    def __repr__(self) -> str:
        raise RuntimeError("has no representation")


# By name, since not all of them can be shown. Of the first no setting takes any, of the others some do.
NEVER: dict[str, Any] = {
    **{f"{number}": number for number in (float("nan"), float("inf"), float("-inf"), 10**400)},
    "a number with more digits than Python writes": 10**5000,
    "an object of another class": Foreign(),
    "another class": Foreign,
    "any object": object(),
    "bytes": b"x",
    "a set": set(),
    "a mapping of numbers": {1: 2},
}
_VALUES: list[Any] = [None, True, 2**31, -1, 0, 3.5, "", "a\nb", "\ud800", "aws:a", "a: b", ["a"]]
_HUGE: list[Any] = [1e100, 1e300, 1e308, sys.float_info.max]
_PARTS: list[Any] = [[], {}, [None], [True], [float("nan")], [[[]]], [b"x"], {"a": None}]
SOMETIMES: dict[str, Any] = {
    **{repr(value): value for value in _VALUES},
    **{repr(value): value for value in [*_HUGE, *_PARTS]},
    "10,000 characters": "a" * 10_000,
}
HOSTILE = {**NEVER, **SOMETIMES}
_QUICKLY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
CALLS = {name: call for name, call in public_calls() if name not in NOT_CALLED}


def test_every_public_call_has_settings_that_are_right() -> None:
    assert set(CALLS) == set(RIGHT)


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if parameters(call)])
def test_a_public_call_refuses_a_hostile_value_by_its_setting_or_may_take_it(name: str) -> None:
    call, stack = CALLS[name], new_stack()
    right = RIGHT[name](stack)
    ids = (f"Called{number}" for number in itertools.count())
    called(call, stack, right, next(ids))

    @_QUICKLY
    @given(st.sampled_from(sorted(parameters(call))), st.sampled_from(sorted(HOSTILE)))
    def try_one(setting: str, hostile: str) -> None:
        made: list[object] = []
        said = _refused(lambda: made.append(called(call, stack, {**right, setting: HOSTILE[hostile]}, next(ids))))
        if said is None:
            assert not re.search(r"\binf\b", repr(made))
            assert hostile not in NEVER
            assert _may_be_taken(HOSTILE[hostile], _kind(call, setting))
        else:
            assert setting in said
            assert all(len(line) <= _MAX_SENTENCE for line in said.splitlines())

    try_one()


def _refused(make: Callable[[], object]) -> str | None:
    """Return with what settings are refused; None: they are not."""
    try:
        make()
    except (ValueError, ClusterFileError) as error:
        return str(error)
    return None


def _kind(call: Callable[..., Any], setting: str) -> Any:
    owner: Any = call.__init__ if isinstance(call, type) and setting in parameters(call) else call  # type: ignore[misc]
    hints = typing.get_type_hints(owner)
    # What `**arguments` holds has its annotation in the signature alone.
    return hints[setting] if setting in hints else parameters(call)[setting].annotation


def _may_be_taken(value: object, kind: Any) -> bool:
    """Tell whether an annotation allows a value, as far as numbers, flags and what is left out go."""
    kinds = str(kind)
    if isinstance(value, list):
        return "Sequence" in kinds or "tuple" in kinds
    if value is None:
        return type(None) in get_args(kind)
    if isinstance(value, bool):
        return "bool" in kinds
    if isinstance(value, int | float):
        return ("float" in kinds and abs(value) < float("inf")) or (isinstance(value, int) and abs(value) < 2**31)
    if isinstance(value, dict):
        return "Mapping" in kinds or "dict[" in kinds
    return "str" in kinds


@pytest.mark.parametrize("name", ["power", "network", "nodegroups", "idlestop", "Resource", "Default", "alerts"])
def test_a_group_may_be_named_like_a_part_of_the_construct_tree(name: str) -> None:
    stack = new_stack()
    group = NodeGroup(name, instance_types=["g5.xlarge"], count=1)
    cluster = TrainingCluster(stack, name, availability_zone=ZONE, node_groups=[group])
    assert cluster.node_group(name).node_group is group


def _fields(model: type[BaseModel], where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for name, field in model.model_fields.items():
        yield (*where, name)
        for inner, is_list in _models(field.annotation):
            yield from _fields(inner, (*where, name, *([0] if is_list else [])))


def _models(kind: Any, is_list: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind, is_list
    for inner in get_args(kind):
        yield from _models(inner, is_list or typing.get_origin(kind) is tuple)


FIELDS = sorted(_fields(ClusterFile), key=str)


def _put(document: Any, where: tuple[str | int, ...], value: object) -> None:
    """Put a value into a file, and what it is part of where the file does not have that."""
    for part, following in itertools.pairwise(where):
        inner = document[part] if isinstance(part, int) else document.get(part)
        if not isinstance(inner, dict | list):
            inner = document[part] = [{}] if isinstance(following, int) else {}
        document = inner
    document[where[-1]] = value


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=st.sampled_from(FIELDS), hostile=st.sampled_from(sorted(SOMETIMES)))
def test_a_cluster_file_refuses_a_hostile_value_by_its_place_or_takes_it(
    tmp_path: Path, where: tuple[str | int, ...], hostile: str
) -> None:
    document = yaml.safe_load(RIGHT_FILE)
    _put(document, where, SOMETIMES[hostile])
    (tmp_path / "cluster.yaml").write_text(json.dumps(document, default=str))  # JSON is YAML
    said = _refused(lambda: read_cluster_file("cluster.yaml", relative_to=tmp_path))
    if said is not None:
        lines = said.splitlines()
        assert all(line.startswith("cluster.yaml") and len(line) <= _MAX_SENTENCE for line in lines)
        assert any(part in line for part in where if isinstance(part, str) for line in lines)


_TEN = ", ".join(["*{0}"] * 10)
_LEVELS = "\n".join(f"{name}: &{name} [{_TEN.format(before)}]" for before, name in itertools.pairwise("abcdefghi"))
STRUCTURES = {
    "an alias bomb": (f"a: &a [x]\n{_LEVELS}\n", "has more than 10000 values; write out what its anchors repeat"),
    "a tag of a language": ("name: !!python/object/apply:os.system [ls]\n", "is not one of a cluster file"),
    "a tag on a list": (
        "name: !Sub [x]\n",
        "the tag '!Sub' is not one of a cluster file; write the value without it",
    ),
    "a tag of CloudFormation": ("name: !Sub x\n", "the tag '!Sub' is not one of a cluster file"),
    "a tag of YAML's": (
        "name: !!timestamp x\n",
        "tag:yaml.org,2002:timestamp' is not one of a cluster file",
    ),
    "a wrong whole number": ("a: !!int abc\n", "'abc' is not a value of the tag !!int; remove the tag"),
    "no whole number": ("a: !!int ''\n", "'' is not a value of the tag !!int"),
    "a wrong number": ("a: !!float x\n", "'x' is not a value of the tag !!float"),
    "a wrong flag": ("a: !!bool x\n", "'x' is not a value of the tag !!bool"),
    "a null with a value": ("a: !!null x\n", "'x' is not a value of the tag !!null"),
    "a number longer than any": (f"a: {'9' * 5000}\n", "a number must have at most 400 digits, got 5000"),
    "lists in lists": ("name: " + "[" * 3000, "is nested too deeply to be a cluster file"),
    "settings in settings": ("{a: " * 3000, "is nested too deeply to be a cluster file"),
}


@pytest.mark.parametrize(("text", "said"), STRUCTURES.values(), ids=STRUCTURES)
def test_a_bomb_a_foreign_tag_and_deep_nesting_are_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(ClusterFileError) as error:
        read_cluster_file("cluster.yaml", relative_to=tmp_path)
    (sentence,) = str(error.value).splitlines()
    assert said in sentence
