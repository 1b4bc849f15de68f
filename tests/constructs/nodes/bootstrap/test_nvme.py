"""Which local disks become one file system, which are left alone, and what a restart finds."""

from collections.abc import Callable

import pytest

from node_sandbox import EBS, INSTANCE_STORE, NodeSandbox, disk

MakeNode = Callable[..., NodeSandbox]

ROOT_VOLUME = disk("nvme0n1", EBS, partitions="gpt")
EMPTY_VOLUME = disk("nvme9n1", EBS)
LINE = "LABEL=local-nvme /opt/dlami/nvme xfs defaults,noatime,nofail,x-systemd.device-timeout=30s 0 0\n"


def _changes(node: NodeSandbox) -> list[str]:
    """What was done to disks."""
    return [call for call in node.calls if call.startswith(("mdadm", "mkfs", "mount"))]


@pytest.mark.parametrize("disks", [[], [ROOT_VOLUME], [ROOT_VOLUME, EMPTY_VOLUME]])
def test_ebs_volumes_are_never_touched(make_node: MakeNode, disks: list[str]) -> None:
    node = make_node(disks=disks)
    assert node.bootstrap("--boot").returncode == 0
    assert _changes(node) == []
    assert LINE not in node.read("etc/fstab")


def test_one_disk_needs_no_raid(make_node: MakeNode) -> None:
    node = make_node(disks=[ROOT_VOLUME, disk("nvme1n1", INSTANCE_STORE)])
    assert node.bootstrap("--boot").returncode == 0
    assert _changes(node) == ["mkfs.xfs -q -L local-nvme /dev/nvme1n1", "mount /opt/dlami/nvme"]
    assert node.read("etc/fstab").endswith(LINE)
    assert (node.root / "opt/dlami/nvme").stat().st_mode & 0o7777 == 0o1777


def test_several_disks_become_a_stripe_without_the_ebs_volumes(make_node: MakeNode) -> None:
    local = [disk(f"nvme{number}n1", INSTANCE_STORE) for number in range(1, 9)]
    node = make_node(disks=[*local[:3], ROOT_VOLUME, *local[3:], EMPTY_VOLUME])
    assert node.bootstrap("--boot").returncode == 0
    names = " ".join(f"/dev/nvme{number}n1" for number in range(1, 9))
    assert _changes(node) == [
        f"mdadm --create /dev/md/local-nvme --run --level=0 --raid-devices=8 {names}",
        "mkfs.xfs -q -L local-nvme /dev/md/local-nvme",
        "mount /opt/dlami/nvme",
    ]


@pytest.mark.parametrize("arguments", [[], ["--boot"]])
def test_disks_that_another_program_takes_are_left_to_it(make_node: MakeNode, arguments: list[str]) -> None:
    node = make_node(DISKS_TAKEN="yes", MOUNT_SOURCE="", disks=[disk("nvme1n1", INSTANCE_STORE)])
    assert node.bootstrap(*arguments).returncode == 0
    assert _changes(node) == []


def test_what_the_image_lacks_is_installed(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE), disk("nvme2n1", INSTANCE_STORE)])
    node.lacks("mdadm")
    node.lacks("mkfs.xfs")
    assert node.bootstrap("--boot").returncode == 0
    assert [call for call in node.calls if call.startswith("dnf")] == [
        "dnf install -y xfsprogs",
        "dnf install -y mdadm",
    ]


@pytest.mark.parametrize("used", [{"file_system": "ext4"}, {"file_system": "LVM2_member"}, {"partitions": "gpt"}])
def test_disks_that_hold_something_are_left_as_they_are(make_node: MakeNode, used: dict[str, str]) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE), disk("nvme2n1", INSTANCE_STORE, **used)])
    assert node.bootstrap("--boot").returncode == 0
    assert _changes(node) == []
    assert "/dev/nvme2n1 holds something already" in node.read("var/log/cdk-training-cluster.log")


def test_our_own_file_system_is_mounted_and_not_made_again(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE, file_system="xfs")])
    (node.sandbox / "labels/local-nvme").touch()
    assert node.bootstrap("--boot").returncode == 0
    assert _changes(node) == ["mount /opt/dlami/nvme"]


def test_the_image_s_own_unit_is_waited_for(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE)])
    node.unit("dlami-nvme.service", start='touch "$SANDBOX/mounted"\n')
    assert node.bootstrap("--boot").returncode == 0
    assert "systemctl start dlami-nvme.service" in node.calls
    assert _changes(node) == []
    assert LINE not in node.read("etc/fstab")


def test_the_image_s_own_unit_may_fail_and_say_that_all_is_well(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE)])
    node.unit("dlami-nvme.service")
    assert node.bootstrap("--boot").returncode == 1
    assert node.state["message"] == ("dlami-nvme.service did not mount /opt/dlami/nvme: see journalctl -u dlami-nvme")
    assert _changes(node) == []


@pytest.mark.parametrize("command", ["mdadm", "mkfs.xfs", "mount", "dnf"])
def test_a_stand_in_that_fails_fails_the_step(make_node: MakeNode, command: str) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE), disk("nvme2n1", INSTANCE_STORE)])
    if command == "dnf":
        node.lacks("mdadm")
    node.fail(command)
    assert node.bootstrap("--boot").returncode == 1
    assert (node.state["state"], node.state["step"]) == ("failed", "nvme")
    assert any(call.startswith("aws cloudwatch put-metric-data") for call in node.calls)


def test_systemd_may_mount_what_was_made_before_the_step_does(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE)])
    (node.sandbox / "bin/mount").write_text('#!/bin/bash\ntouch "$SANDBOX/mounted"\nexit 32\n')
    assert node.bootstrap("--boot").returncode == 0
    assert (node.root / "opt/dlami/nvme").stat().st_mode & 0o7777 == 0o1777


def test_twice_leaves_the_same_files(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE), disk("nvme2n1", INSTANCE_STORE)])
    assert node.bootstrap("--boot").returncode == 0
    first = node.files()
    assert node.bootstrap("--boot").returncode == 0
    assert node.files() == first


def test_after_a_stop_and_start_the_empty_disks_are_prepared_again(make_node: MakeNode) -> None:
    node = make_node(disks=[disk("nvme1n1", INSTANCE_STORE)])
    assert node.bootstrap().returncode == 0
    unit = node.read("etc/systemd/system/cdk-training-cluster-boot.service")
    assert "ExecStart=/bin/bash /opt/cdk-training-cluster/scripts/bootstrap.sh --boot\n" in unit
    assert "systemctl enable cdk-training-cluster-boot.service" in node.calls
    (node.sandbox / "labels/local-nvme").unlink()
    (node.sandbox / "mounted").unlink()
    (node.sandbox / "calls").write_text("")
    assert node.bootstrap("--boot").returncode == 0
    assert _changes(node) == ["mkfs.xfs -q -L local-nvme /dev/nvme1n1", "mount /opt/dlami/nvme"]
    assert node.read("etc/fstab").count("/opt/dlami/nvme") == 1


def test_a_restart_that_goes_well_does_not_forget_an_earlier_failure(make_node: MakeNode) -> None:
    node = make_node()
    node.fail("modprobe", "lustre")
    assert node.bootstrap().returncode == 1
    assert node.bootstrap("--boot").returncode == 0
    assert node.state["step"] == "lustre"
