"""The wheel: built from the sdist without the network, installed elsewhere, and the same templates from it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from examples import EXAMPLES, PROJECT, run_app, swept, templates
from max_seconds import MAX_SECONDS

CDK = f"{Path(sys.executable).parent}:{PROJECT / 'node_modules' / '.bin'}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(directory)]
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    subprocess.run([*build, "-t", "sdist"], cwd=PROJECT, check=True, capture_output=True, env=offline)
    (sdist,) = directory.glob("*.tar.gz")
    unpacked = directory / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "xzf", str(sdist), "-C", str(unpacked)], check=True)
    (source,) = unpacked.iterdir()
    subprocess.run([*build, "-t", "wheel"], cwd=source, check=True, capture_output=True, env=offline)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that has the wheel, and everything else from this one but the checkout."""
    directory = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        str(packages),
    ]
    subprocess.run([*install, str(wheel)], check=True)
    # As a plain entry of sys.path: the .pth files in it, the checkout's among them, are not read.
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


def test_the_wheel_holds_the_library_the_stacks_and_the_functions_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "cdk_training_cluster",
        "cdk_training_cluster_file",
        "cdk_training_cluster_cli",
        "cdk_training_cluster_manifests",
        "cdk_training_cluster_stacks",
        "cluster_contract",
        wheel.name.split("-py3")[0] + ".dist-info",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".md"))]
    assert {name.split("/")[2] for name in names if name.startswith("cdk_training_cluster/_lambdas/")} == {
        path.name for path in (PROJECT / "lambdas").iterdir() if path.is_dir()
    }
    assert {
        "cdk_training_cluster/py.typed",
        "cdk_training_cluster/instance_types/catalog.json",
        "cdk_training_cluster/nodes/bootstrap/scripts/bootstrap.sh",
        "cdk_training_cluster/nodes/agent/cluster_node/__main__.py",
        "cdk_training_cluster/_job/cluster_job/launch.py",
        "cdk_training_cluster/_lambdas/cluster_power/handler.py",
        "cdk_training_cluster/_lambdas/cluster_common/__init__.py",
        "cdk_training_cluster/_lambdas/cluster_contract/prices.json",
        "cluster_contract/prices.json",
        "cluster_contract/py.typed",
        "cdk_training_cluster_stacks/cdk.json",
    } <= set(names)


@pytest.mark.parametrize("example", [swept(example, every_change=("base-pod",)) for example in EXAMPLES])
def test_wheel_and_checkout_give_the_same_templates(example: str, elsewhere: Path, tmp_path: Path) -> None:
    python = str(elsewhere / "bin" / "python")
    found = subprocess.run(
        [python, "-c", "import cdk_training_cluster; print(cdk_training_cluster.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(elsewhere))
    # Who installed the wheel has neither app.py nor cdk.json.
    command = [python, "-c", "from cdk_training_cluster_cli.command import app; app()", "synth"]
    from_wheel = subprocess.run(
        [*command, PROJECT / example, "--output", "wheel"],
        cwd=tmp_path,
        env={**os.environ, "CDK_VALIDATION": "false", "PATH": f"{CDK}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    assert from_wheel.returncode == 0, from_wheel.stderr
    assert run_app(example, tmp_path / "checkout").returncode == 0
    assert templates(tmp_path / "wheel")
    assert templates(tmp_path / "wheel") == templates(tmp_path / "checkout")


@pytest.mark.parametrize(
    "root", ["constructs", "cluster_file", "cli", "manifests", "stacks", "lambdas", "job", "tests"]
)
def test_source_roots_are_no_packages(root: str) -> None:
    assert not (PROJECT / root / "__init__.py").exists()
    if root == "tests":
        assert list((PROJECT / root).rglob("__init__.py")) == []
