"""Constructs and stacks import the contract alone of what runs in Lambda; it needs the standard library only."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
FUNCTIONS = {path.name for path in (PROJECT / "lambdas").iterdir() if path.is_dir()} - {"cluster_contract"}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("root", ["constructs", "cluster_file", "cli", "manifests", "stacks"])
def test_constructs_and_stacks_import_no_function(root: str) -> None:
    files = {file: FUNCTIONS.intersection(imported(file)) for file in (PROJECT / root).rglob("*.py")}
    assert {str(file): found for file, found in files.items() if found} == {}


def test_the_contract_needs_the_standard_library_only() -> None:
    names = {name for file in (PROJECT / "lambdas" / "cluster_contract").rglob("*.py") for name in imported(file)}
    assert names - {"cluster_contract"} <= set(sys.stdlib_module_names)
