"""The scripts of a node as one S3 asset, the same bytes wherever they were checked out or installed."""

import atexit
import hashlib
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from aws_cdk import Stack
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from cdk_training_cluster.nodes.bootstrap.agent import (
    STATSD_PORT,
    AcceleratorVendor,
    agent_configuration,
    neuron_monitor_configuration,
)
from cdk_training_cluster.nodes.bootstrap.collector import write_collector
from cdk_training_cluster.nodes.bootstrap.downloads import DOWNLOADS
from cdk_training_cluster.nodes.bootstrap.job_package import write_job_package
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cluster_contract import node_files
from cluster_contract.metrics import NODE_METRICS

SCRIPTS = Path(__file__).parent / "scripts"
"""Where the scripts lie that are the same on every node."""

AGENT = Path(__file__).parents[1] / "agent" / "cluster_node"
"""Where the program `cluster-node` lies, a package that every node gets in the scripts' asset."""

CONTRACT = Path(node_files.__file__).parent
"""Where the package lies whose modules nodes share with functions."""

NVIDIA_ML_PY = next(AGENT.parent.glob("nvidia_ml_py-*.whl"))
"""The wheel of nvidia-ml-py as NVIDIA published it, with its license (BSD) in its one module."""

# Those that run with the Python of nodes, and what they read.
_SHARED = (
    *("__init__.py", "claims.py", "faults.json", "faults.py", "health.py", "node_files.py", "tags.py", "texts.py"),
    "times.py",
)

# The oldest time that a zip file can hold.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


class NodeScripts(NamedTuple):
    """The asset of a node's scripts.

    Attributes:
        asset: The asset, a zip file.
        sha256: The SHA-256 of the zip file, which a node compares before it runs anything of it.
    """

    asset: s3_assets.Asset
    sha256: str


CLUSTER_PLACEHOLDER = "@CLUSTER@"
NAMESPACE_PLACEHOLDER = "@NAMESPACE@"
NODE_GROUP_PLACEHOLDER = "@NODE_GROUP@"

# An allow-list: what an editor or the interpreter leaves beside them must not change the asset's hash.
_SUFFIXES = {".json", ".sh", ".py"}


def write_scripts(
    directory: Path,
    vendor: AcceleratorVendor,
    *,
    efa_traffic: bool = False,
    neuron_devices: int = 0,
    collector_seconds: int | None = None,
) -> None:
    """Write what a node's asset holds into a directory.

    Nothing in it depends on the cluster, so that clusters and node groups share it. The scripts put the names
    in for the placeholders.

    Args:
        directory: An empty directory.
        vendor: Whose accelerators the node has.
        efa_traffic: Whether it reports what goes over Elastic Fabric Adapters. Default: - no.
        neuron_devices: How many Neuron devices it has. Default: - none.
        collector_seconds: The seconds from one sample of its collector for Prometheus to the next.
            Default: - it has none.
    """
    program, contract = directory / AGENT.name, directory / CONTRACT.name
    program.mkdir()
    contract.mkdir()
    for name in _SHARED:
        shutil.copyfile(CONTRACT / name, contract / name)
    for part, target in ((SCRIPTS, directory), (AGENT, program)):
        for source in sorted(part.iterdir()):
            if source.suffix in _SUFFIXES:
                shutil.copyfile(source, target / source.name)
    write_job_package(directory)
    (directory / "downloads.settings").write_text(shell_assignments(DOWNLOADS), encoding="utf-8")
    if vendor is AcceleratorVendor.NVIDIA:
        with zipfile.ZipFile(NVIDIA_ML_PY) as wheel:
            (directory / "pynvml.py").write_bytes(wheel.read("pynvml.py"))
    configuration = agent_configuration(
        vendor,
        namespace=NAMESPACE_PLACEHOLDER,
        cluster=CLUSTER_PLACEHOLDER,
        node_group=NODE_GROUP_PLACEHOLDER,
        efa_traffic=efa_traffic,
    )
    if configuration is not None:
        _write_json(directory / "agent.json", configuration)
    if vendor is AcceleratorVendor.NEURON:
        _write_json(directory / "neuron-monitor.json", neuron_monitor_configuration())
        names = {
            "NEURON_METRIC": NODE_METRICS.neuron_core_utilization,
            "NEURON_STATSD_PORT": str(STATSD_PORT),
            "CLUSTER_DIMENSION": NODE_METRICS.cluster_dimension,
            "NODE_GROUP_DIMENSION": NODE_METRICS.node_group_dimension,
            "NEURON_DEVICES": str(neuron_devices),
        }
        (directory / "neuron.settings").write_text(shell_assignments(names), encoding="utf-8")
    if vendor is AcceleratorVendor.COMMAND:
        names = {
            "METRIC": NODE_METRICS.accelerator_utilization,
            "STATSD_PORT": str(STATSD_PORT),
            "SECONDS_EACH": str(NODE_METRICS.interval_seconds // 2),
            "CLUSTER_DIMENSION": NODE_METRICS.cluster_dimension,
            "NODE_GROUP_DIMENSION": NODE_METRICS.node_group_dimension,
        }
        (directory / "utilization.settings").write_text(shell_assignments(names), encoding="utf-8")
    if collector_seconds is not None:
        write_collector(directory, vendor, interval_seconds=collector_seconds)


def scripts_asset(
    scope: Construct,
    id: str,
    vendor: AcceleratorVendor,
    *,
    efa_traffic: bool = False,
    neuron_devices: int = 0,
    collector_seconds: int | None = None,
) -> NodeScripts:
    """Return the asset of a node's scripts: a new one, or the one that a node group like this has in the stack.

    Args:
        scope: The parent construct of a new one.
        id: The id of a new one.
        vendor: Whose accelerators the node has.
        efa_traffic: Whether it reports what goes over Elastic Fabric Adapters. Default: - no.
        neuron_devices: How many Neuron devices it has. Default: - none.
        collector_seconds: The seconds from one sample of its collector for Prometheus to the next.
            Default: - it has none.
    """
    assets = _ASSETS.setdefault(Stack.of(scope), {})
    like = (vendor, efa_traffic, neuron_devices, collector_seconds)
    if like not in assets:
        # Until the program ends: an app that disables asset staging has no copy in its cloud assembly.
        directory = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        scripts, archive = Path(directory, "scripts"), Path(directory, "scripts.zip")
        scripts.mkdir()
        write_scripts(
            scripts,
            vendor,
            efa_traffic=efa_traffic,
            neuron_devices=neuron_devices,
            collector_seconds=collector_seconds,
        )
        write_archive(scripts, archive)
        shutil.rmtree(scripts)
        assets[like] = NodeScripts(s3_assets.Asset(scope, id, path=str(archive)), sha256_of(archive))
    return assets[like]


def write_archive(directory: Path, archive: Path) -> None:
    """Write a zip file of a directory, the same bytes on each machine.

    Its files are not compressed, since versions of zlib differ in the bytes that they write.

    Args:
        directory: The directory.
        archive: The zip file.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as written:
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(directory).as_posix(), _TIMESTAMP)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            written.writestr(entry, path.read_bytes())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Args:
        path: The file.
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()


_ASSETS: WeakKeyDictionary[Stack, dict[tuple[AcceleratorVendor, bool, int, int | None], NodeScripts]] = (
    WeakKeyDictionary()
)
"""The assets of each stack, by what their content depends on."""


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
