"""What goes into the asset of a node's scripts."""

import ast
import json
import os
import re
import zipfile
from importlib import import_module
from importlib.metadata import distributions, version
from pathlib import Path

import pytest
from aws_cdk import App, Stack

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import (
    AGENT,
    CONTRACT,
    NVIDIA_ML_PY,
    SCRIPTS,
    scripts_asset,
    write_archive,
    write_scripts,
)

GENERATED = {
    AcceleratorVendor.NVIDIA: {"agent.json", "pynvml.py"},
    AcceleratorVendor.NEURON: {"agent.json", "neuron-monitor.json", "neuron.settings"},
    AcceleratorVendor.COMMAND: {"agent.json", "utilization.settings"},
    AcceleratorVendor.OTHER: set(),
}


@pytest.mark.parametrize("vendor", list(AcceleratorVendor))
def test_it_holds_the_scripts_and_what_the_accelerator_needs(tmp_path: Path, vendor: AcceleratorVendor) -> None:
    write_scripts(tmp_path, vendor)
    scripts = {path.name for path in SCRIPTS.iterdir() if path.suffix in {".sh", ".py"}}
    program = {f"{AGENT.name}/{path.name}" for path in AGENT.iterdir() if path.suffix in {".json", ".py"}}
    shared = {
        f"{CONTRACT.name}/{name}"
        for name in (
            *("__init__.py", "claims.py", "faults.json", "faults.py", "health.py", "node_files.py", "tags.py"),
            *("texts.py", "times.py"),
        )
    }
    found = {name for name in _content(tmp_path) if not name.startswith("job/")}
    assert found == scripts | program | shared | {"downloads.settings"} | GENERATED[vendor]


def test_the_library_of_nvidia_is_the_pinned_one_whole_and_runs_with_the_python_of_nodes(tmp_path: Path) -> None:
    write_scripts(tmp_path, AcceleratorVendor.NVIDIA)
    shipped = (tmp_path / "pynvml.py").read_text()
    pinned = import_module("pynvml").__file__
    assert pinned is not None
    assert shipped == Path(pinned).read_text(), "replace the kept wheel by that of the version in constraints.txt"
    assert version("nvidia-ml-py") == NVIDIA_ML_PY.name.split("-")[1]
    assert "Redistributions of source code must retain the above copyright" in shipped
    ast.parse(shipped, feature_version=(3, 9))


def test_jobs_find_the_package_and_its_entry_points(tmp_path: Path) -> None:
    write_scripts(tmp_path, AcceleratorVendor.NVIDIA)
    (found,) = distributions(name="cdk-training-cluster-job", path=[str(tmp_path / "job")])
    points = {(point.group, point.name): point.value for point in found.entry_points}
    assert points == {
        ("console_scripts", "cluster-run"): "cluster_job.launch:main",
        ("torchrun.handlers", "cluster-table"): "cluster_job.rendezvous:plugin",
    }
    assert found.version == version("cdk-training-cluster")
    for value in points.values():
        module, _, function = value.partition(":")
        assert f"\ndef {function}(" in (tmp_path / "job" / f"{module.replace('.', '/')}.py").read_text()


@pytest.mark.parametrize("asked", [True, False])
def test_the_agent_reports_efa_traffic_where_a_policy_asks_for_it(tmp_path: Path, asked: bool) -> None:
    write_scripts(tmp_path, AcceleratorVendor.NVIDIA, efa_traffic=asked)
    agent = json.loads((tmp_path / "agent.json").read_text())
    assert ("efa" in agent["metrics"]["metrics_collected"]) is asked


def test_what_else_lies_beside_the_scripts_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, first, second = tmp_path / "checkout", tmp_path / "first", tmp_path / "second"
    for path in (checkout, checkout / "__pycache__", first, second):
        path.mkdir()
    write_scripts(first, AcceleratorVendor.OTHER)
    write_scripts(checkout, AcceleratorVendor.OTHER)
    for name in ("__pycache__/neuron_statsd.cpython-311.pyc", "lib.sh~", ".DS_Store"):
        (checkout / name).write_text("junk")
    monkeypatch.setattr("cdk_training_cluster.nodes.bootstrap.asset.SCRIPTS", checkout)
    write_scripts(second, AcceleratorVendor.OTHER)
    assert _content(second) == _content(first)


def test_node_groups_of_a_stack_that_are_alike_share_one_asset() -> None:
    app = App()
    stack, other = Stack(app, "Stack"), Stack(app, "Other")
    first = scripts_asset(stack, "First", AcceleratorVendor.NVIDIA, efa_traffic=True)
    assert scripts_asset(stack, "Alike", AcceleratorVendor.NVIDIA, efa_traffic=True) is first
    assert scripts_asset(stack, "Different", AcceleratorVendor.NVIDIA).sha256 != first.sha256
    elsewhere = scripts_asset(other, "First", AcceleratorVendor.NVIDIA, efa_traffic=True)
    assert elsewhere is not first
    assert (elsewhere.asset.asset_hash, elsewhere.sha256) == (first.asset.asset_hash, first.sha256)


def test_the_archive_has_the_same_bytes_whatever_the_files_modes_and_times_are(tmp_path: Path) -> None:
    content, archives = {"b/c.sh": "c", "b.sh": "b", "a.json": "a"}, []
    for number, (mode, paths) in enumerate(((0o600, [*content]), (0o755, [*reversed(content)]))):
        directory, archive = tmp_path / f"{number}", tmp_path / f"{number}.zip"
        for path in paths:
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(content[path])
            (directory / path).chmod(mode)
            os.utime(directory / path, (number, number))
        write_archive(directory, archive)
        with zipfile.ZipFile(archive) as written:
            assert {name: written.read(name).decode() for name in written.namelist()} == content
        archives.append(archive.read_bytes())
    assert archives[0] == archives[1]


def test_every_script_is_run() -> None:
    runs = set(re.findall(r"bash (\w+\.sh)", (SCRIPTS / "bootstrap.sh").read_text()))
    assert runs | {"bootstrap.sh", "lib.sh"} == {path.name for path in SCRIPTS.glob("*.sh")}


def _content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
