"""What the prolog, the epilog and the health check of a Slurm node find, and what they do then."""

import json
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdk_training_cluster.orchestrators.slurm import node_scripts
from cdk_training_cluster.orchestrators.slurm.paths import EPILOG, HEALTH_CHECK, PROLOG
from cluster_contract.node_files import DRAIN
from slurm_node import USER, SlurmNode

_HOME = Path(node_scripts.__file__).parent / "scripts/home.sh"


@pytest.fixture
def node(tmp_path: Path) -> SlurmNode:
    return SlurmNode(tmp_path)


def _failed_set_up(node: SlurmNode) -> None:
    report = {"state": "failed", "step": "mount", "message": "no answer"}
    node.write("var/lib/cdk-training-cluster/bootstrap.json", json.dumps(report))


ALL, AFTER, UNDER_A_JOB = {PROLOG, EPILOG, HEALTH_CHECK}, {PROLOG, EPILOG}, {PROLOG}
FAULTS: list[tuple[Callable[[SlurmNode], object], set[str], str]] = [
    (lambda node: node.write(f"{DRAIN}/xid"[1:], "Xid 79 of GPU 3\nmore"), ALL, "Xid 79 of GPU 3"),
    (lambda node: node.write(f"{DRAIN}/by-hand"[1:]), ALL, "by-hand"),
    (
        lambda node: shutil.rmtree(node.root / "sys/class/infiniband/rdma0"),
        ALL,
        "the node has 0 EFA devices, and its launch template asks for 1",
    ),
    (lambda node: node.gpus("NVML_DEAD=1"), AFTER, "NVIDIA's driver does not answer: Driver Not Loaded"),
    (lambda node: node.command("stat", "echo tmpfs"), UNDER_A_JOB, "/fsx is tmpfs, not lustre: the file system is"),
    (_failed_set_up, UNDER_A_JOB, "the set-up of the node failed at mount: no answer"),
    (
        lambda node: node.command("cluster-node", "exit 1"),
        UNDER_A_JOB,
        "cluster-node verify ended with exit status 1 and said nothing",
    ),
]


@pytest.mark.parametrize(("breaks", "found_by", "reason"), FAULTS)
def test_a_node_with_a_fault_is_drained_with_one_sentence(
    node: SlurmNode, breaks: Callable[[SlurmNode], object], found_by: set[str], reason: str
) -> None:
    breaks(node)
    for script in (PROLOG, EPILOG, HEALTH_CHECK):
        before = len(node.asked)
        assert (node.slurm_runs(script) != 0) == (script in found_by)
        asked = node.asked[before:]
        if script in found_by:
            assert asked[-1].startswith(f"/run/slurm/conf/slurm.conf update nodename=n1 state=drain reason={reason}")
        else:
            assert asked == []


def test_a_node_without_a_fault_changes_nothing_and_does_not_ask_the_controller_each_minute(
    node: SlurmNode,
) -> None:
    assert [node.slurm_runs(script) for script in (PROLOG, EPILOG)] == [0, 0]
    assert node.asked == []
    for _ in range(3):
        assert node.slurm_runs(HEALTH_CHECK) == 0
    assert node.asked == ["/run/slurm/conf/slurm.conf --oneliner show node n1"]


def test_a_node_that_is_drained_keeps_its_reason(node: SlurmNode) -> None:
    node.write("shown", "NodeName=n1 State=IDLE+DRAIN Reason=rack moves")
    node.write(f"{DRAIN}/xid"[1:], "Xid 79")
    assert node.slurm_runs(HEALTH_CHECK) != 0
    assert not any("update" in line for line in node.asked)


def test_a_node_is_refused_where_the_controller_does_not_answer(node: SlurmNode) -> None:
    node.command("scontrol", "exit 1")
    node.gpus("NVML_DEAD=1")
    assert node.slurm_runs(PROLOG) != 0


_LEFT = ("tmp/a/b", "var/tmp/c", "dev/shm/torch_1", "tmp/cdk-training-cluster-987654/r1/flight-recorder-rank-0")
_OTHERS = ("tmp/cdk-training-cluster-987655/r1/x", "tmp/of-root", "dev/shm/of-another", "tmp/a/of-another")


def _leave_files(node: SlurmNode) -> None:
    for path in (*_LEFT, *_OTHERS):
        node.write(path)
        os.chown(node.root / path, 0 if "root" in path else USER + (path in _OTHERS), 0)
    for path in ("tmp/a", "tmp/cdk-training-cluster-987654"):
        os.chown(node.root / path, USER, 0)
    (node.root / "tmp/link").symlink_to(node.root / "home")
    node.write("home/kept")
    for path in ("tmp/link", "home/kept"):
        os.chown(node.root / path, USER, 0, follow_symlinks=False)


def _files(node: SlurmNode) -> set[str]:
    return {path for path in (*_LEFT, *_OTHERS, "tmp/link", "home/kept") if os.path.lexists(node.root / path)}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to users")
def test_the_files_of_a_user_go_with_the_last_job_of_the_user_on_the_node(node: SlurmNode) -> None:
    _leave_files(node)
    everything = _files(node)
    node.jobs_run((PROLOG, 1), (PROLOG, 2), (EPILOG, 2), (PROLOG, 3), (EPILOG, 1))
    assert _files(node) == everything
    node.jobs_run((EPILOG, 3))
    # What a hang left for its user stays, and all that is not the user's or not in these places.
    assert _files(node) == {*_OTHERS, _LEFT[-1], "home/kept"}


def test_the_removal_of_files_has_one_limit_of_time_for_all_places(node: SlurmNode) -> None:
    node.command("timeout", 'echo "$*" >>"$ROOT/timed"\nexec /usr/bin/timeout "$@"')
    node.jobs_run((PROLOG, 1), (EPILOG, 1))
    [find] = [line for line in (node.root / "timed").read_text().splitlines() if " find " in line]
    assert all(f"{node.root}/{place} " in find for place in ("dev/shm", "tmp", "var/tmp"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to users")
@pytest.mark.parametrize("stays", ["a process", "an unknown process", "a service", "no prolog"])
def test_files_stay_while_their_user_is_on_the_node_and_those_of_services_always(node: SlurmNode, stays: str) -> None:
    _leave_files(node)
    everything = _files(node)
    if stays == "a process":
        node.command("pgrep", '[[ "$*" == "--uid 987654" ]]')
    if stays == "an unknown process":
        node.command("pgrep", "exit 3")
    if stays == "a service":
        node.user = 0
    if stays != "no prolog":
        node.jobs_run((PROLOG, 1))
    node.jobs_run((EPILOG, 1))
    assert _files(node) == everything


def test_no_user_holds_up_the_jobs_of_another_with_a_lock(node: SlurmNode) -> None:
    """Whoever may open a file for reading may lock it."""
    node.jobs_run((PROLOG, 1), (EPILOG, 1))
    [lock] = node.root.rglob(f"{USER}.lock")
    assert lock.parent.stat().st_mode & 0o077 == 0


def test_gpus_are_partitioned_before_slurm_looks_for_them_and_again_at_each_boot(node: SlurmNode) -> None:
    node.write("etc/systemd/system/others.service")
    node.command("systemctl", 'echo "$*" >>"$ROOT/systemctl"')
    node.command("nvidia-smi", 'echo "$*" >>"$ROOT/smi"; if [[ $* == *mode.current* ]]; then echo Enabled; fi')
    assert node.install(mig_profiles=("3g.40gb", "1g.10gb")).returncode == 0
    made = (node.root / "smi").read_text()
    assert made.splitlines()[-1] == "mig --create-gpu-instance 3g.40gb,1g.10gb --default-compute-instance"
    assert "enable cdk-training-cluster-mig.service" in (node.root / "systemctl").read_text()
    unit = (node.root / "etc/systemd/system/cdk-training-cluster-mig.service").read_text()
    assert "Before=slurmd.service cdk-training-cluster-boot.service" in unit
    [script] = re.findall("ExecStart=/bin/bash (.*)", unit)
    (node.root / "smi").unlink()
    assert node.run(f"{node.root}{script}").returncode == 0
    assert (node.root / "smi").read_text() == made
    node.command("nvidia-smi", "echo Disabled")
    refused = node.install(mig_profiles=("3g.40gb",))
    assert (refused.returncode, "not in MIG mode" in refused.stderr) == (1, True)


def test_a_node_whose_jobs_share_gpus_runs_the_server_of_mps(node: SlurmNode) -> None:
    node.write("etc/systemd/system/others.service")
    node.command("systemctl", 'echo "$*" >>"$ROOT/systemctl"')
    assert node.install(mps=True).returncode == 0
    assert "enable --now cdk-training-cluster-mps.service" in (node.root / "systemctl").read_text()
    unit = (node.root / "etc/systemd/system/cdk-training-cluster-mps.service").read_text()
    # No user puts a directory of theirs in the place of the pipes first.
    assert "Before=slurmd.service systemd-user-sessions.service\n" in unit
    assert "ExecStartPre=/bin/rm -rf /tmp/nvidia-mps\nExecStart=/usr/bin/nvidia-cuda-mps-control -d\n" in unit


def _link(home: Path) -> None:
    home.symlink_to("../etc")


def _file(home: Path) -> None:
    home.write_text("")


def _of_a_user(home: Path) -> None:
    home.mkdir()
    os.chown(home, 1000, 1000)


@pytest.mark.parametrize(
    "makes",
    [
        _link,
        _file,
        pytest.param(_of_a_user, marks=pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")),
    ],
)
def test_homes_behind_a_link_or_of_a_user_are_refused(node: SlurmNode, makes: Callable[[Path], None]) -> None:
    node.write("home/alice/.profile", "image")
    node.command("mountpoint", "exit 1")
    node.command("mount", 'echo "$*" >>"$ROOT/mounted"')
    for folder in ("fsx", "etc"):
        (node.root / folder).mkdir(exist_ok=True)
    before = sorted((node.root / "etc").iterdir())
    makes(node.root / "fsx/home")
    ended = node.run(str(_HOME))
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 1
    assert said == "/fsx/home must be a directory that root owns, and no link: correct it, and launch the node again"
    assert sorted((node.root / "etc").iterdir()) == before
    assert not (node.root / "mounted").exists()


def test_nodes_that_start_together_share_complete_homes(node: SlurmNode) -> None:
    node.write("etc/fstab")
    for number in range(40):
        node.write(f"home/ubuntu/{number}/.profile", "image")
    node.write("home/alice/.profile", "image")
    node.write("fsx/home/alice/work", "kept")
    node.command("mountpoint", "exit 1")
    node.command("mount", 'echo "$*" >>"$ROOT/mounted"')
    with ThreadPoolExecutor() as pool:
        ended = list(pool.map(lambda _: node.run(str(_HOME)), range(8)))
    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * 8
    homes = node.root / "fsx/home"
    assert len(list(homes.glob("ubuntu/*/.profile"))) == 40
    assert sorted(path.name for path in homes.iterdir()) == ["alice", "ubuntu"]
    assert [path.name for path in (homes / "alice").iterdir()] == ["work"]
    assert len((node.root / "mounted").read_text().splitlines()) == 8
