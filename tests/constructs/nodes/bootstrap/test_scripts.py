"""What the scripts leave on a node: run for real, with stand-ins for what would change a machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor, agent_configuration
from cluster_contract.metrics import NODE_METRICS
from node_sandbox import AMAZON_LINUX, UBUNTU, NodeSandbox

MakeNode = Callable[..., NodeSandbox]

FSTAB_LINE = (
    "fs-0a1b.fsx.us-east-1.amazonaws.com@tcp:/abcdev /fsx lustre defaults,nosuid,nodev,nofail,relatime,flock,_netdev,"
    "x-systemd.automount,x-systemd.requires=systemd-networkd-wait-online.service 0 0\n"
)
IMAGES = pytest.mark.parametrize(
    ("os_release", "vendor"),
    [
        (AMAZON_LINUX, AcceleratorVendor.NVIDIA),
        (AMAZON_LINUX, AcceleratorVendor.NEURON),
        (UBUNTU, AcceleratorVendor.NVIDIA),
        (UBUNTU, AcceleratorVendor.NEURON),
        (UBUNTU, AcceleratorVendor.OTHER),
    ],
)


@IMAGES
def test_a_node_is_set_up_whatever_its_image_and_running_again_changes_nothing(
    make_node: MakeNode, os_release: str, vendor: AcceleratorVendor
) -> None:
    node = make_node(os_release=os_release, vendor=vendor).bare()
    result = node.bootstrap()
    assert (result.returncode, result.stderr) == (0, "")
    assert node.state == {"state": "ready", "step": "", "message": ""}
    assert node.read("dev/console") == "cdk-training-cluster: ready\n"
    assert node.read("etc/fstab") == f"UUID=1234 / xfs defaults,noatime 1 1\n{FSTAB_LINE}"
    assert (node.root / "fsx").is_dir()
    started = [call for call in node.calls if call.startswith("systemctl start fsx")]
    assert started == ["systemctl start fsx.automount", "systemctl start fsx.mount"]
    assert node.read("etc/security/limits.d/90-cdk-training-cluster.conf") == (
        "* - memlock unlimited\n* - nofile 1048576\nroot - memlock unlimited\nroot - nofile 1048576\n"
    )
    assert node.read("etc/systemd/system.conf.d/90-cdk-training-cluster-limits.conf") == (
        "[Manager]\nDefaultLimitMEMLOCK=infinity\nDefaultLimitNOFILE=1048576\n"
    )
    assert node.read("etc/profile.d/cdk-training-cluster.sh") == ("export NCCL_SOCKET_IFNAME='^docker,lo,veth'\n")
    assert "put-metric-data" not in "\n".join(node.calls)
    first = node.files()
    assert node.bootstrap().returncode == 0
    assert node.files() == first


def test_the_steps_come_in_order(make_node: MakeNode) -> None:
    node = make_node(vendor=AcceleratorVendor.NEURON)
    node.change_settings(SCRIPTS_BEFORE=[node.user_script("a.sh", "true"), node.user_script("bb.sh", "true")])
    node.change_settings(SCRIPTS_AFTER=[node.user_script("ccc.sh", "true")])
    assert node.bootstrap().returncode == 0
    assert node.steps == [
        *["updates", "commands", "before: a.sh", "before: bb.sh", "limits", "kernel", "nvme", "efa", "lustre"],
        *["mount", "environment", "agent", "neuron", "after: ccc.sh", "updates", "watch"],
    ]


def test_a_node_without_file_system_efa_or_accelerator_does_without_their_steps(make_node: MakeNode) -> None:
    node = make_node(vendor=AcceleratorVendor.OTHER, EFA="", MOUNT_SOURCE="", MOUNT_POINT="")
    assert node.bootstrap().returncode == 0
    assert node.steps == ["updates", "commands", "limits", "kernel", "nvme", "environment", "updates", "watch"]
    assert node.read("etc/fstab") == "UUID=1234 / xfs defaults,noatime 1 1\n"


def test_the_nodes_commands_are_on_the_path_and_run(make_node: MakeNode) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    for command, said in (
        ("cluster-node", "give one of credentials"),
        ("wait-for-dataset", "usage: wait-for-dataset"),
    ):
        result = node.run(str(node.root / "usr/local/bin" / command))
        assert (result.returncode, said in result.stderr) == (2, True)


def test_the_environment_of_a_caller_leads_the_node_s_commands_nowhere(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    program = node.root / "usr/local/bin/cluster-node"
    elsewhere = {"ROOT": str(tmp_path / "elsewhere"), "PATH": os.defpath, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([program], env=elsewhere, capture_output=True, text=True, check=False)
    assert (done.returncode, "give one of credentials" in done.stderr) == (2, True)
    text = program.read_text()
    assert f"export ROOT='{node.root}'\n" in text
    assert "unset LD_LIBRARY_PATH AWS_CONTAINER_CREDENTIALS_FULL_URI\n" in text


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("watch", {"LockPersonality=yes", "RestrictRealtime=yes", "TasksMax=256"}),
        ("neuron", {"NoNewPrivileges=yes", "ProtectSystem=full", "ProtectHome=yes", "TasksMax=256"}),
    ],
)
def test_services_of_root_have_no_more_than_they_need(make_node: MakeNode, name: str, lines: set[str]) -> None:
    node = make_node(vendor=AcceleratorVendor.NEURON)
    assert node.step(f"{name}.sh").returncode == 0
    assert lines <= set(node.read(f"etc/systemd/system/cdk-training-cluster-{name}.service").splitlines())


@pytest.mark.parametrize(
    ("python", "code", "said"),
    [
        (f'exec {sys.executable} "$@"', 0, "torchrun --standalone --max-restarts=5 train.py"),
        ("exit 1", 64, "cluster-run: it needs Python 3.10 and torch, and "),
    ],
)
def test_cluster_run_takes_the_python_of_torchrun(make_node: MakeNode, python: str, code: int, said: str) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    job = node.sandbox / "venv"
    job.mkdir()
    for name, source in (("python3", python), ("torchrun", "")):
        (job / name).write_text(f"#!/bin/sh\n{source}\n")
        (job / name).chmod(0o755)
    cluster_run = f'PATH={job}:$PATH; exec {node.root}/usr/local/bin/cluster-run "$@"'
    result = node.run("-c", cluster_run, "", "--dry-run", "torchrun", "train.py")
    assert (result.returncode, said in result.stdout + result.stderr) == (code, True)


def test_cluster_run_takes_no_module_from_the_folder_where_it_is_called(make_node: MakeNode) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    scratch = node.sandbox / "scratch"
    for module in ("argparse.py", "cluster_job/__init__.py", "sitecustomize.py"):
        (scratch / module).parent.mkdir(parents=True, exist_ok=True)
        (scratch / module).write_text("print('the code of another user')\n")
    call = f'cd {scratch}; exec {node.root}/usr/local/bin/cluster-run "$@"'
    result = node.run("-c", call, "", "--dry-run", "torchrun", "--standalone", "train.py")
    assert (result.returncode, "another user" in result.stdout) == (0, False)


_EFA_CLIENT = "configure-efa-fsx-lustre-client"


def _node_with_efa_file_system(make_node: MakeNode, interfaces: str) -> NodeSandbox:
    """Let AWS's script be there, which makes a service and gives the client these interfaces."""
    node = make_node(MOUNT_EFA="yes")
    setup = (
        f'mkdir -p "$ROOT/etc/systemd/system" && touch "$ROOT/etc/systemd/system/{_EFA_CLIENT}.service"\n'
        f'echo setup.sh >>"$SANDBOX/calls"\necho "nid: {interfaces}" >"$SANDBOX/lnet"\n'
    )
    with ZipFile(node.sandbox / "s3/client.zip", "w") as archive:
        archive.writestr(f"{_EFA_CLIENT}/setup.sh", setup)
    fetch = 'while [[ $1 != --output ]]; do shift; done\ncp "$SANDBOX/s3/client.zip" "$2"\n'
    (node.sandbox / "bin/curl").write_text(f"#!/bin/bash\n{fetch}")
    return node


@pytest.mark.parametrize("half_done", [False, True])
def test_a_file_system_with_efa_is_mounted_after_aws_s_script_has_configured_the_client(
    make_node: MakeNode, half_done: bool
) -> None:
    # More than a pipe holds: what reads it must not leave at the first match.
    node = _node_with_efa_file_system(make_node, "1.251.91.0@efa" + "\npeer" * 40_000)
    if half_done:
        unit = node.root / f"etc/systemd/system/{_EFA_CLIENT}.service"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.touch()
    for _ in range(2):
        assert node.bootstrap().returncode == 0
    assert node.steps[node.steps.index("lustre") :][:3] == ["lustre", "lustre-efa", "mount"]
    configured = [call for call in node.calls if call.split()[0] in {"lustre_rmmod", "setup.sh"}]
    assert [call.strip() for call in configured] == ["lustre_rmmod", "setup.sh"]
    service = f"{_EFA_CLIENT}.service"
    assert f",x-systemd.requires={service},x-systemd.after={service} 0 0\n" in node.read("etc/fstab")


@pytest.mark.parametrize(
    ("interfaces", "command", "message"),
    [
        ("10.0.0.1@tcp", None, "the Lustre client has no EFA interface: see journalctl"),
        ("1.251.91.0@efa", "lnetctl", "lnetctl is broken"),
        ("1.251.91.0@efa", "lustre_rmmod", "lustre_rmmod is broken"),
    ],
)
def test_a_client_that_is_not_on_efa_is_no_node_of_a_file_system_with_efa(
    make_node: MakeNode, interfaces: str, command: str | None, message: str
) -> None:
    node = _node_with_efa_file_system(make_node, interfaces)
    if command is not None:
        node.fail(command)
    assert node.bootstrap().returncode == 1
    assert node.state["step"] == "lustre-efa"
    assert message in node.state["message"]


# Kernel, mount, agent


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[main]\ngpgcheck=1\n", "[main]\nexclude=kernel*\ngpgcheck=1\n"),
        ("[main]\nexclude=docker\n[x]\na=1\n", "[main]\nexclude=docker kernel*\n[x]\na=1\n"),
        ("[main]\nexcludepkgs = a,b\n", "[main]\nexcludepkgs = a,b kernel*\n"),
        ("[main]\nexclude=a kernel*\n", "[main]\nexclude=a kernel*\n"),
        ("[main]\nexclude=kernel*-debug\n", "[main]\nexclude=kernel*-debug kernel*\n"),
    ],
)
def test_dnf_keeps_its_hands_off_the_kernel(make_node: MakeNode, before: str, after: str) -> None:
    node = make_node()
    node.write("etc/dnf/dnf.conf", before)
    assert node.step("kernel.sh").returncode == 0
    assert node.read("etc/dnf/dnf.conf") == after


def test_apt_holds_the_kernel_packages_that_are_installed(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU)
    assert node.step("kernel.sh").returncode == 0
    assert "apt-mark hold linux-aws linux-image-6.8.0-1040-aws" in node.calls


def test_another_file_system_at_the_mount_point_gives_way_and_the_rest_stays(make_node: MakeNode) -> None:
    node = make_node()
    node.write("etc/fstab", "# /fsx below\nold@tcp:/x /fsx lustre defaults 0 0\n/dev/sdb /fsx2 ext4 defaults 0 0\n")
    assert node.step("mount.sh").returncode == 0
    assert node.read("etc/fstab") == f"# /fsx below\n/dev/sdb /fsx2 ext4 defaults 0 0\n{FSTAB_LINE}"


def test_no_file_of_the_file_system_makes_a_user_root(make_node: MakeNode) -> None:
    """Root in a pod is root on the file system, where it can make set-user-ID programs and device files."""
    node = make_node()
    assert node.step("mount.sh").returncode == 0
    options = node.read("etc/fstab").splitlines()[-1].split()[3].split(",")
    assert {"nosuid", "nodev"} <= set(options)


def test_a_deeper_mount_point_has_its_own_units(make_node: MakeNode) -> None:
    node = make_node(MOUNT_POINT="/mnt/shared-data")
    assert node.step("mount.sh").returncode == 0
    assert "systemctl start mnt-shared\\x2ddata.mount" in node.calls


def test_the_lustre_client_on_ubuntu_is_the_one_of_the_running_kernel(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU).bare()
    assert node.step("lustre.sh").returncode == 0
    assert node.read("etc/apt/sources.list.d/fsxlustreclientrepo.list") == (
        "deb [signed-by=/usr/share/keyrings/fsx-ubuntu-public-key.gpg] "
        "https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu noble main\n"
    )
    assert (node.root / "usr/share/keyrings/fsx-ubuntu-public-key.gpg").is_file()
    assert any(call.endswith("install -qy lustre-client-modules-6.8.0-1040-aws") for call in node.calls)


def test_an_image_that_has_everything_installs_nothing(make_node: MakeNode) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    assert not [call for call in node.calls if call.startswith(("dnf", "apt-get", "curl"))]


@pytest.mark.parametrize("vendor", [AcceleratorVendor.NVIDIA, AcceleratorVendor.NEURON])
def test_the_agent_is_started_with_this_cluster_s_configuration(
    make_node: MakeNode, vendor: AcceleratorVendor
) -> None:
    node = make_node(vendor=vendor)
    assert node.step("agent.sh").returncode == 0
    path = node.home / "agent.json"
    assert json.loads(path.read_text()) == agent_configuration(
        vendor, namespace="CdkTrainingCluster/Nodes/llama", cluster="llama", node_group="workers"
    )
    assert f"amazon-cloudwatch-agent-ctl -a fetch-config -m ec2 -s -c file:{path}" in node.calls


def test_the_agent_s_package_on_ubuntu_comes_from_the_node_s_own_region(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU, REGION="eu-west-3").bare()
    assert node.bootstrap().returncode == 0
    address = (
        "https://amazoncloudwatch-agent-eu-west-3.s3.eu-west-3.amazonaws.com/ubuntu/amd64/latest/"
        "amazon-cloudwatch-agent.deb"
    )
    assert any(call.startswith("curl") and call.endswith(address) for call in node.calls)
    assert not list((node.root / "var/lib/cdk-training-cluster").glob("*.deb"))


def test_neuron_nodes_run_the_reader_as_a_service(make_node: MakeNode) -> None:
    node = make_node(vendor=AcceleratorVendor.NEURON)
    assert node.step("neuron.sh").returncode == 0
    unit = node.read("etc/systemd/system/cdk-training-cluster-neuron.service")
    scripts = "/opt/cdk-training-cluster/scripts"
    assert (
        "ExecStart=/bin/bash -c '/opt/aws/neuron/bin/neuron-monitor "
        f"-c {scripts}/neuron-monitor.json | exec python3 -IS {scripts}/neuron_statsd.py "
        f"8125 {NODE_METRICS.neuron_core_utilization} Cluster:llama,NodeGroup:workers 0'\n"
    ) in unit
    assert "Restart=always\n" in unit
    assert "systemctl enable cdk-training-cluster-neuron.service" in node.calls
