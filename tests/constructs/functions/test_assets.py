import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from cdk_training_cluster.functions import FunctionSource, function_source

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two functions and the shared packages, with everything beside them that has no business in an asset."""
    for package in ("cluster_common", "cluster_contract", "cluster_power", "cluster_idle"):
        (tmp_path / package / "parts").mkdir(parents=True)
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "handler.py").write_text(f"NAME = {package!r}\n")
        (tmp_path / package / "parts" / "__init__.py").touch()
        (tmp_path / package / "parts" / "deep.py").write_text("DEPTH = 2\n")
        (tmp_path / package / "parts" / "facts.json").write_text("{}\n")
        (tmp_path / package / "data-1-py3-none-any.whl").write_bytes(b"PK")
        (tmp_path / package / "notes.md").write_text("not code\n")
        (tmp_path / package / "__pycache__").mkdir()
        (tmp_path / package / "__pycache__" / "handler.cpython-313.pyc").write_bytes(b"\0")
        (tmp_path / package / "__pycache__" / "odd.py").touch()
    (tmp_path / "README.md").touch()
    return tmp_path


def staged(source: FunctionSource, out: Path) -> tuple[str, list[str]]:
    """Synthesize a function and return its asset's hash and files."""
    stack = Stack(App(outdir=str(out), post_cli_context={"aws:cdk:disable-asset-staging": False}), "Test")
    lambda_.Function(
        stack,
        "Function",
        code=source.code(),
        handler=source.handler,
        runtime=lambda_.Runtime.PYTHON_3_14,
    )
    [function] = Template.from_stack(stack).find_resources("AWS::Lambda::Function").values()
    digest = function["Properties"]["Code"]["S3Key"].removesuffix(".zip")
    asset = out / f"asset.{digest}"
    return digest, sorted(
        path.relative_to(asset).as_posix() for path in asset.rglob("*") if path.is_file() or not any(path.iterdir())
    )


def test_an_asset_holds_the_functions_package_and_the_shared_ones_with_code_data_and_wheels_only(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = FunctionSource(root=root, package="cluster_power")

    digest, files = staged(source, tmp_path_factory.mktemp("out"))

    # CDK names an asset with a hash of its own by the hash of that hash.
    assert digest == hashlib.sha256(source.digest.encode()).hexdigest()
    assert files == [
        f"{package}/{file}"
        for package in ("cluster_common", "cluster_contract", "cluster_power")
        for file in (
            "__init__.py",
            "data-1-py3-none-any.whl",
            "handler.py",
            "parts/__init__.py",
            "parts/deep.py",
            "parts/facts.json",
        )
    ]


@pytest.mark.parametrize("package", sorted(path.parent.name for path in (CHECKOUT / "lambdas").glob("*/handler.py")))
def test_nothing_that_lies_beside_the_code_of_a_function_is_left_out(package: str) -> None:
    lies = {
        path.relative_to(CHECKOUT / "lambdas").as_posix() for path in (CHECKOUT / "lambdas" / package).rglob("*.*")
    }
    code = {name for name in lies if "__pycache__" not in name and not name.endswith(".typed")}
    assert code <= set(function_source(package).files)


def test_the_handler_is_found_in_the_asset() -> None:
    source = function_source("cluster_power")

    assert source.handler == "cluster_power.handler.handler"
    assert "cluster_power/handler.py" in source.files


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("cluster_idle/handler.py", "CHANGED = True\n"),
        ("cluster_power/notes.md", "changed\n"),
        ("cluster_power/__pycache__/handler.cpython-314.pyc", "new"),
        ("cluster_power/.handler.py.swp", "new"),
        ("new_package/__init__.py", ""),
        ("cluster_power/handler.py", "NAME = 'cluster_power'\r\n"),
    ],
)
def test_what_is_not_the_functions_code_does_not_change_its_hash(root: Path, file: str, content: str) -> None:
    source = FunctionSource(root=root, package="cluster_power")
    before = source.digest

    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_bytes(content.encode())

    assert source.digest == before


@pytest.mark.parametrize(
    "file",
    [
        "cluster_power/handler.py",
        "cluster_common/parts/deep.py",
        "cluster_power/new.py",
        "cluster_contract/prices.json",
    ],
)
def test_the_functions_code_and_the_shared_code_change_its_hash(root: Path, file: str) -> None:
    source = FunctionSource(root=root, package="cluster_power")
    before = source.digest

    (root / file).write_text("CHANGED = True\n")

    assert source.digest != before


@pytest.mark.parametrize("name", ["parts/deeper.py", "deep.py"])
def test_code_that_moves_to_another_file_changes_the_hash(root: Path, name: str) -> None:
    source = FunctionSource(root=root, package="cluster_power")
    before = source.digest

    (root / "cluster_power" / "parts" / "deep.py").rename(root / "cluster_power" / name)

    assert source.digest != before


def test_times_and_modes_do_not_change_the_hash(root: Path) -> None:
    source = FunctionSource(root=root, package="cluster_power")
    before = source.digest

    for path in root.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o600)

    assert source.digest == before


def test_sources_that_cannot_be_written_are_packaged_all_the_same(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = FunctionSource(root=root, package="cluster_power")
    everything = sorted(root.rglob("*"))
    for path in (*everything, root):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        digest, files = staged(source, tmp_path_factory.mktemp("out"))
    finally:
        for path in (root, *everything):
            path.chmod(0o755 if path.is_dir() else 0o644)

    assert len(files) == 18
    assert sorted(root.rglob("*")) == everything
    assert digest


PRINT_DIGEST = (
    "from cdk_training_cluster.functions import function_source as find; source = find('cluster_power');"
    "print(source.root); print(source.digest)"
)


def test_a_wheel_and_a_checkout_make_the_same_asset_whatever_the_hash_seed(tmp_path: Path) -> None:
    """In a wheel the sources lie in the library itself, as pyproject.toml says."""
    library = tmp_path / "site-packages" / "cdk_training_cluster"
    _copy(CHECKOUT / "constructs" / "cdk_training_cluster", library)
    _copy(CHECKOUT / "lambdas", library / "_lambdas")
    _copy(CHECKOUT / "lambdas" / "cluster_contract", library.parent / "cluster_contract")

    root, digest = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(library.parent), "PYTHONHASHSEED": "4242"},
    ).stdout.splitlines()

    assert Path(root) == library / "_lambdas"
    assert digest == function_source("cluster_power").digest
    assert function_source("cluster_power").root == CHECKOUT / "lambdas"


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def test_a_package_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        FunctionSource(root=root, package="cluster_nap")

    assert str(caught.value) == f"package must be a folder with an __init__.py in {root}, got 'cluster_nap'"
