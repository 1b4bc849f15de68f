"""What sends a node's metrics to Prometheus, and that a node starts without it."""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.collector import EFA_COUNTERS
from cdk_training_cluster.nodes.bootstrap.downloads import DOWNLOADS
from cdk_training_cluster.nodes.bootstrap.scripts import efa_counters
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from node_sandbox import UBUNTU, NodeSandbox

MakeNode = Callable[..., NodeSandbox]
PROGRAMS = {"PROMETHEUS": "prometheus", "NODE_EXPORTER": "node_exporter"}


@pytest.fixture
def make_collecting(make_node: MakeNode) -> MakeNode:
    """A node with a collector, whose downloads are at hand."""

    def make(**arguments: Any) -> NodeSandbox:
        node = make_node(collector_seconds=30, **arguments)
        for name, program in PROGRAMS.items():
            archive = _archive(program)
            path = node.sandbox / "web" / f"{DOWNLOADS[f'{name}_URL']}amd64.tar.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive)
            pin = shell_assignments({f"{name}_AMD64": hashlib.sha256(archive).hexdigest()})
            with (node.home / "scripts/downloads.settings").open("a") as settings:
                settings.write(pin)
        return node

    return make


def _archive(program: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        info = tarfile.TarInfo(f"{program}-1.0.linux-amd64/{program}")
        info.mode, info.size = 0o755, 4
        archive.addfile(info, io.BytesIO(b"true"))
    return content.getvalue()


def _install(node: NodeSandbox) -> int:
    return node.run("-c", f"cd {node.home}/scripts && exec bash collector.sh install").returncode


def _units(node: NodeSandbox) -> dict[str, str]:
    found = (node.root / "etc/systemd/system").glob("cdk-training-cluster-*.service")
    return {path.stem.removeprefix("cdk-training-cluster-"): path.read_text() for path in found}


def test_a_node_does_not_wait_for_its_collector(make_collecting: MakeNode) -> None:
    node = make_collecting()
    assert node.bootstrap().returncode == 0
    assert "collector" in node.steps
    assert node.calls.count("systemctl start --no-block cdk-training-cluster-collector.service") == 1
    assert not any("github.com" in call or call.startswith("docker") for call in node.calls)


@pytest.mark.parametrize(
    ("vendor", "services"),
    [
        (AcceleratorVendor.NVIDIA, {"node-exporter", "efa", "dcgm", "prometheus"}),
        (AcceleratorVendor.NEURON, {"node-exporter", "efa", "prometheus"}),
        (AcceleratorVendor.OTHER, {"node-exporter", "efa", "prometheus"}),
    ],
)
def test_it_starts_what_the_node_has_to_report(
    make_collecting: MakeNode, vendor: AcceleratorVendor, services: set[str]
) -> None:
    node = make_collecting(vendor=vendor, os_release=UBUNTU)
    assert _install(node) == 0
    units = _units(node)
    assert set(units) == services
    # Nothing of it can be reached from outside the node, and none of it takes a job's processors.
    for name, unit in units.items():
        assert name == "efa" or re.search(r"(--web.listen-address=|-a )127\.0\.0\.1:1\d{4}\b", unit)
        assert "CPUQuota=100%\nMemoryMax=1G\n" in unit
    assert "SYS_ADMIN" not in units.get("dcgm", "")
    text = "/opt/cdk-training-cluster/collector/textfiles"
    sandbox = {"NoNewPrivileges=yes", "ProtectSystem=strict", f"ReadWritePaths={text}", "CapabilityBoundingSet="}
    assert sandbox <= set(units["efa"].splitlines())
    # A GPU is read as often as its values are sent, and billed.
    assert "dcgm" not in units or " -a 127.0.0.1:19400 -c 30000 -f /etc/counters.csv\n" in units["dcgm"]
    first = node.files()
    assert _install(node) == 0
    assert node.files() == first
    assert sum(call.startswith("curl") and "github" in call for call in node.calls) == 2


def test_the_collector_knows_its_node_and_its_workspace(make_collecting: MakeNode) -> None:
    node = make_collecting()
    assert _install(node) == 0
    configuration = json.loads(node.read("opt/cdk-training-cluster/collector/prometheus.yml"))
    assert configuration["global"]["external_labels"] == {"cluster": "llama", "node_group": "workers"}
    [remote] = configuration["remote_write"]
    assert (remote["url"], remote["sigv4"]) == (node.settings["REMOTE_WRITE_URL"], {"region": "us-east-1"})
    jobs = {each["job_name"]: each["static_configs"][0] for each in configuration["scrape_configs"]}
    assert {job: static["targets"] for job, static in jobs.items()} == {
        "node": ["127.0.0.1:19100"],
        "dcgm": ["127.0.0.1:19400"],
    }
    assert {static["labels"]["instance"] for static in jobs.values()} == {"i-0a1b2c3d4e5f67890"}
    assert "@" not in json.dumps(configuration)


def _wrong_archive(node: NodeSandbox) -> None:
    (node.sandbox / "web" / f"{DOWNLOADS['PROMETHEUS_URL']}amd64.tar.gz").write_bytes(b"something else")


@pytest.mark.parametrize(
    ("break_it", "missing", "said"),
    [
        (_wrong_archive, "prometheus", "is not the file that was published: its SHA-256 must be "),
        (lambda node: node.lacks("docker"), "dcgm", "the image has neither dcgm-exporter nor Docker"),
        (lambda node: node.fail("docker", "image inspect|pull"), "dcgm", "dcgm: "),
        (lambda node: node.fail("curl", "node_exporter"), "node-exporter", "node_exporter: "),
    ],
)
def test_what_cannot_be_had_is_reported_and_the_others_go_on(
    make_collecting: MakeNode, break_it: Callable[[NodeSandbox], None], missing: str, said: str
) -> None:
    node = make_collecting()
    break_it(node)
    assert _install(node) == 1
    assert {"node-exporter", "efa", "dcgm", "prometheus"} - set(_units(node)) == {missing}
    console = node.read("dev/console")
    assert console.startswith("cdk-training-cluster: ready, but not all of its metrics reach Prometheus: ")
    assert said in console
    [call] = [call for call in node.calls if call.startswith("aws cloudwatch put-metric-data")]
    assert '"MetricName":"CollectorFailed"' in call


def test_an_image_that_the_node_has_is_not_pulled_again(make_collecting: MakeNode) -> None:
    node = make_collecting()
    node.fail("docker", "pull")
    assert _install(node) == 0
    assert "dcgm" in _units(node)


def test_a_node_whose_systemd_refuses_the_collector_is_ready(make_collecting: MakeNode) -> None:
    node = make_collecting()
    node.fail("systemctl", "cdk-training-cluster-collector")
    assert node.bootstrap().returncode == 0
    assert node.state["state"] == "ready"
    assert "CollectorFailed" in "\n".join(node.calls)


def test_neuron_cores_are_written_where_node_exporter_reads(make_collecting: MakeNode) -> None:
    node = make_collecting(vendor=AcceleratorVendor.NEURON)
    assert node.step("neuron.sh").returncode == 0
    unit = node.read("etc/systemd/system/cdk-training-cluster-neuron.service")
    textfile = "/opt/cdk-training-cluster/collector/textfiles/neuron.prom"
    assert f" 0 {textfile}'\nExecStopPost=/bin/rm -f {textfile}\n" in unit


def test_efa_counters_have_the_names_of_aws_s_exporter(tmp_path: Path) -> None:
    for device, value in (("rdmap16s27", 5), ("rdmap32s27", 7)):
        counters = tmp_path / device / "ports/1/hw_counters"
        counters.mkdir(parents=True)
        (counters / "rx_bytes").write_text(f"{value}\n")
    assert list(efa_counters.lines(tmp_path, "node_amazonefa_", list(EFA_COUNTERS))) == [
        "# TYPE node_amazonefa_rx_bytes counter",
        'node_amazonefa_rx_bytes{device="rdmap16s27",port="1"} 5',
        'node_amazonefa_rx_bytes{device="rdmap32s27",port="1"} 7',
    ]
