"""Tests that take too long for each run: where `.ci/run` runs one case of each."""

from collections.abc import Iterable, Mapping

import pytest

SWEEP = "sweep"


def uncovered(items: Iterable[pytest.Item], steps: str) -> list[str]:
    """Return a sentence for each swept test of which `.ci/run` runs no case.

    Args:
        items: All tests. A swept test has a case that is no sweep, or its mark names a test or a target of make.
        steps: The text of `.ci/run`.
    """
    swept: dict[str, set[str]] = {}
    plain: dict[str, str] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker(SWEEP)
        if mark is None:
            plain[name.rpartition("::")[2]] = name
        else:
            swept.setdefault(name, set()).update(map(str, mark.args))
    return sorted(_sentences(swept, plain, steps))


def _sentences(swept: Mapping[str, set[str]], plain: Mapping[str, str], steps: str) -> Iterable[str]:
    for name, covered in swept.items():
        own = name.rpartition("::")[2]
        if plain.get(own) != name and not covered:
            yield f"{name}: leave one of its cases unmarked, or name the test or the target of make in its mark"
        for where in covered:
            if where not in plain and where not in steps:
                yield f"{name}: its mark names {where}, which is neither a test of `make test` nor in .ci/run"
