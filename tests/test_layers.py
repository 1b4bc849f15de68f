"""Each package imports only the packages below it: the table lists them, and imports for type checkers count too."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
ROOTS = ("constructs", "cluster_file", "stacks", "manifests", "cli", "lambdas")

CONTRACT = "cluster_contract"
CONSTRUCTS = "cdk_training_cluster"
FILE, STACKS, MANIFESTS, CLI = (f"cdk_training_cluster_{name}" for name in ("file", "stacks", "manifests", "cli"))

# What a source package imports of the others. The functions' packages are tested with the contract.
PACKAGES: Mapping[str, set[str]] = {
    CONSTRUCTS: {CONTRACT},
    FILE: {CONSTRUCTS},
    STACKS: {CONSTRUCTS, FILE, CONTRACT},
    MANIFESTS: {CONSTRUCTS, FILE, CONTRACT},
    CLI: {CONSTRUCTS, FILE, STACKS, MANIFESTS, CONTRACT},
}

# What a folder imports of its package.
CONSTRUCTS_FOLDERS: Mapping[str, set[str]] = {
    "validation": set(),
    "core": {"validation"},
    "instance_types": {"validation"},
    "prices": {"instance_types", "validation"},
    "capacity": {"core", "validation"},
    "functions": {"core", "validation"},
    "network": {"core", "instance_types", "validation"},
    "nodes": {"capacity", "core", "functions", "instance_types", "network", "validation"},
    "observability": {"core", "nodes", "validation"},
    "storage": {"core", "instance_types", "network", "nodes", "prices", "validation"},
    "guardrails": {"capacity", "core", "functions", "network", "nodes", "prices", "storage", "validation"},
    "cluster": {
        "core",
        "functions",
        "guardrails",
        "instance_types",
        "network",
        "nodes",
        "observability",
        "storage",
        "validation",
    },
    "orchestrators": {"cluster", "core", "instance_types", "network", "nodes", "prices", "storage", "validation"},
}
CLI_FOLDERS: Mapping[str, set[str]] = {
    "core": set(),
    "deploy": {"core"},
    "files": {"core"},
    "operate": {"core"},
    "pictures": {"core"},
    "money": {"core"},
    "data": {"core", "money"},
    "observe": {"core", "data", "operate"},
    "prepare": {"core", "files", "money"},
    "main": {"core", "data", "deploy", "files", "money", "observe", "operate", "pictures", "prepare"},
    "command": {"main"},
}


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules by their dotted names."""
    found = {}
    for root in ROOTS:
        for path in (PROJECT / root).rglob("*.py"):
            name = ".".join(path.relative_to(PROJECT / root).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def _imported(name: str, path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            package = path.stem == "__init__"
            above = name.split(".")[: len(name.split(".")) - node.level + package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                if f"{base}.{alias.name}" in modules():
                    yield f"{base}.{alias.name}"
                elif base in modules():
                    yield base


@cache
def imports() -> Mapping[str, set[str]]:
    """Return the modules of this project that each module imports, wherever in the module."""
    return {name: set(_imported(name, path)) - {name} for name, path in modules().items()}


def _between(parts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the imports between parts, given the part of each module; other modules do not count."""
    found: dict[str, set[str]] = {part: set() for part in parts.values()}
    for name, others in imports().items():
        if name in parts:
            found[parts[name]] |= {parts[other] for other in others if other in parts} - {parts[name]}
    return found


def _folders(package: str) -> dict[str, str]:
    return {name: name.split(".")[1] for name in modules() if name.startswith(f"{package}.")}


def _levels(table: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield the packages of each level; a cycle belongs to none."""
    done: set[str] = set()
    while level := {name for name, below in table.items() if name not in done and below <= done}:
        yield level
        done |= level


def test_source_packages_import_only_the_packages_below() -> None:
    parts = {name: name.split(".")[0] for name in modules() if name.split(".")[0] in {*PACKAGES, CONTRACT}}
    assert _between(parts) == {**PACKAGES, CONTRACT: set()}


@pytest.mark.parametrize(("package", "table"), [(CONSTRUCTS, CONSTRUCTS_FOLDERS), (CLI, CLI_FOLDERS)])
def test_folders_import_only_the_folders_below(package: str, table: Mapping[str, set[str]]) -> None:
    assert _between(_folders(package)) == table


@pytest.mark.parametrize("table", [CONSTRUCTS_FOLDERS, CLI_FOLDERS, {**PACKAGES, CONTRACT: set()}])
def test_the_table_has_no_cycle(table: Mapping[str, set[str]]) -> None:
    assert set().union(*_levels(table)) == set(table)


def test_no_cycle_exists_between_modules() -> None:
    assert set(imports()) - set().union(*_levels(imports())) == set()


def test_constructs_have_at_most_18_packages_and_80_imports_between_them() -> None:
    found = _between(_folders(CONSTRUCTS))
    assert len(found) <= 18
    assert sum(map(len, found.values())) <= 80
