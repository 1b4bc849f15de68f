"""`.ci/run` runs a case of each test that takes too long for each run."""

from dataclasses import dataclass
from typing import Any

import pytest

from sweeps import uncovered


@dataclass
class _Item:
    nodeid: str
    mark: Any = None

    def get_closest_marker(self, name: str) -> Any:
        assert name == "sweep"
        return self.mark


def _swept(*covered_by: str) -> Any:
    return pytest.mark.sweep(*covered_by).mark


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([_Item("a.py::test_a[1]"), _Item("a.py::test_a[2]", _swept())], ""),
        ([_Item("a.py::test_a[1]", _swept()), _Item("b.py::test_a[2]")], "a.py::test_a: leave one of its cases"),
        ([_Item("a.py::test_a", _swept())], "a.py::test_a: leave one of its cases"),
        ([_Item("a.py::test_a", _swept("docs"))], ""),
        ([_Item("a.py::test_a", _swept("bench"))], "a.py::test_a: its mark names bench, which is neither"),
        ([_Item("a.py::test_a", _swept("test_b")), _Item("a.py::test_b")], ""),
        ([_Item("a.py::test_a", _swept("test_b")), _Item("a.py::test_b", _swept("docs"))], "names test_b"),
    ],
)
def test_a_sweep_without_a_case_in_ci_is_found(items: list[Any], said: str) -> None:
    found = uncovered(items, "timed make docs")
    assert len(found) == bool(said)
    assert said in "".join(found)
