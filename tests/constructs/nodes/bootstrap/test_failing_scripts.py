"""What an operator sees of a script that fails, and what a later attempt mends."""

from collections.abc import Callable
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from node_sandbox import AMAZON_LINUX, JOB_ROLE, UBUNTU, NodeSandbox

MakeNode = Callable[..., NodeSandbox]


FAILURES = [
    (AMAZON_LINUX, "systemctl", "daemon-reexec", "limits"),
    (AMAZON_LINUX, "systemctl", "enable cdk-training-cluster-boot", "nvme"),
    (AMAZON_LINUX, "lsblk", "", "nvme"),
    (AMAZON_LINUX, "modprobe", "efa", "efa"),
    (AMAZON_LINUX, "dnf", "lustre-client", "lustre"),
    (AMAZON_LINUX, "uname", "", "lustre"),
    (AMAZON_LINUX, "modprobe", "lustre", "lustre"),
    (AMAZON_LINUX, "systemctl", "fsx.automount", "mount"),
    (AMAZON_LINUX, "systemctl", "fsx.mount", "mount"),
    (AMAZON_LINUX, "systemd-escape", "", "mount"),
    (AMAZON_LINUX, "dnf", "amazon-cloudwatch-agent", "agent"),
    (AMAZON_LINUX, "amazon-cloudwatch-agent-ctl", "", "agent"),
    (AMAZON_LINUX, "systemctl", "restart cdk-training-cluster-neuron", "neuron"),
    (AMAZON_LINUX, "aws", "s3 cp", "before: setup.sh"),
    (AMAZON_LINUX, "curl", "169.254.169.254", "hook"),
    (AMAZON_LINUX, "aws", "describe-auto-scaling-instances", "hook"),
    (AMAZON_LINUX, "aws", "complete-lifecycle-action", "hook"),
    (AMAZON_LINUX, "nft", "", "metadata"),
    (AMAZON_LINUX, "dnf", "nftables", "metadata"),
    (AMAZON_LINUX, "systemctl", "restart cdk-training-cluster-credentials", "credentials"),
    (UBUNTU, "apt-get", "nftables", "metadata"),
    (UBUNTU, "systemctl", "stop apt-daily", "updates"),
    (UBUNTU, "systemctl", "start apt-daily", "updates"),
    (UBUNTU, "dpkg-query", "", "kernel"),
    (UBUNTU, "apt-mark", "", "kernel"),
    (UBUNTU, "curl", "fsx-ubuntu", "lustre"),
    (UBUNTU, "gpg", "", "lustre"),
    (UBUNTU, "apt-get", "lustre", "lustre"),
    (UBUNTU, "dpkg", "", "agent"),
    (UBUNTU, "curl", "amazoncloudwatch-agent", "agent"),
    (UBUNTU, "apt-get", "amazon-cloudwatch-agent", "agent"),
]


@pytest.mark.parametrize(
    ("os_release", "command", "arguments", "step"),
    FAILURES,
    ids=[f"{command} {arguments}".strip() for _, command, arguments, _ in FAILURES],
)
def test_a_step_that_fails_is_named_where_an_operator_looks(
    make_node: MakeNode, os_release: str, command: str, arguments: str, step: str
) -> None:
    node = make_node(os_release=os_release, vendor=AcceleratorVendor.NEURON).bare()
    node.change_settings(
        SCRIPTS_BEFORE=[node.user_script("setup.sh", "true")], LAUNCH_HOOK="ready", JOB_ROLE=JOB_ROLE
    )
    node.in_states("Warmed:Pending:Wait")
    node.fail(command, arguments)
    result = node.bootstrap()
    assert result.returncode == 1
    assert node.steps[-1] == step
    assert (node.state["state"], node.state["step"]) == ("failed", step)
    assert node.state["message"]
    assert f"cdk-training-cluster: bootstrap failed at {step}: " in node.read("dev/console")
    assert f"step {step} failed: " in result.stderr
    assert f"step {step} failed: " in node.read("var/log/cdk-training-cluster.log")
    assert _counted(node) == 1


def test_the_table_of_failures_has_every_stand_in_that_a_step_relies_on(make_node: MakeNode) -> None:
    # findmnt, blkid, id and timedatectl answer questions, snap serves the user data, sleep is a pause; disks have a
    # table of their own, and so have file systems with EFA and collectors.
    elsewhere = {
        "lnetctl",
        "lustre_rmmod",
        "findmnt",
        "blkid",
        "id",
        "snap",
        "docker",
        "sleep",
        "timedatectl",
        "mount.lustre",
        "mdadm",
        "mkfs.xfs",
        "mount",
    }
    stand_ins = {path.name for path in (make_node().sandbox / "bin").iterdir()}
    assert {command for _, command, _, _ in FAILURES} == stand_ins - elsewhere


@pytest.mark.parametrize(
    ("settings", "break_node", "message"),
    [
        (
            {},
            lambda node: (node.root / "sys/class/infiniband/rdmap0s6").rmdir(),
            "the EFA driver finds no device",
        ),
        (
            {},
            lambda node: node.fail("systemctl", "fsx.mount"),
            "cannot be mounted at /fsx: look at the security",
        ),
        (
            {"JOB_ROLE": JOB_ROLE},
            lambda node: node.fail("nft"),
            "every job could use the nodes' role: the firewall took no rule for the instance metadata service",
        ),
        ({}, lambda node: node.fail("modprobe", "lustre"), "does not fit kernel 6.8.0-1040-aws"),
        ({}, lambda node: node.write("etc/os-release", "ID=arch"), "this operating system is not known"),
        ({}, lambda node: node.write("etc/dnf/dnf.conf", "gpgcheck=1\n"), "has no section [main]"),
        (
            {"vendor": AcceleratorVendor.NEURON},
            lambda node: (node.root / "opt/aws/neuron/bin/neuron-monitor").unlink(),
            "neuron-monitor is missing: the image needs the package aws-neuronx-tools",
        ),
    ],
)
def test_what_an_operator_can_put_right_is_said_in_a_sentence(
    make_node: MakeNode,
    settings: dict[str, Any],
    break_node: Callable[[NodeSandbox], None],
    message: str,
) -> None:
    node = make_node(**settings)
    break_node(node)
    assert node.bootstrap().returncode == 1
    assert message in node.state["message"]


def test_a_passing_fault_is_tried_again(make_node: MakeNode) -> None:
    node = make_node().bare()
    # The stand-in for sleep mends what was broken: by then a second try is due.
    node.fail("dnf", "lustre-client")
    (node.sandbox / "bin/sleep").write_text('#!/bin/bash\nrm -f "$SANDBOX/fail/dnf"\n')
    assert node.step("lustre.sh").returncode == 0
    assert [call for call in node.calls if "lustre-client" in call] == ["dnf install -y lustre-client"] * 2


def test_a_failure_to_report_does_not_hide_the_failure(make_node: MakeNode) -> None:
    node = make_node()
    node.fail("modprobe", "efa")
    node.fail("aws")
    (node.root / "dev/console").unlink()
    (node.root / "dev/console").mkdir()
    assert node.bootstrap().returncode == 1
    assert node.state["step"] == "efa"
    assert _counted(node) == 1


def test_a_node_that_failed_and_was_mended_becomes_ready(make_node: MakeNode) -> None:
    node = make_node()
    node.fail("modprobe", "lustre")
    assert node.bootstrap().returncode == 1
    (node.sandbox / "fail/modprobe").unlink()
    assert node.bootstrap().returncode == 0
    assert node.state["state"] == "ready"


def _counted(node: NodeSandbox) -> int:
    return sum(call.startswith("aws cloudwatch put-metric-data") for call in node.calls)
