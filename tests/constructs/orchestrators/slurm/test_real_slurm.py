"""A real Slurm under the configuration that the construct emits: what its jobs go through when nodes fail."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from aws_cdk import Duration

from cdk_training_cluster import Capacity, GpuSharing, NodeGroup
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.allowed import CLUSTER_SETTINGS, NODE_GROUP_SETTINGS, QUEUE_SETTINGS
from cdk_training_cluster.orchestrators.slurm.configuration import slurm_configuration
from cdk_training_cluster.orchestrators.slurm.job_scripts import job_scripts
from cdk_training_cluster.orchestrators.slurm.settings import Preemption, SlurmNodes, SlurmQueue, SlurmSettings
from examples import PROJECT
from node_sandbox import UBUNTU, NodeSandbox
from real_slurm import RealSlurm, real_slurm
from slurm_files import SHORTER

pytestmark = pytest.mark.sweep("test-slurm")

_NODES = ClusterContext.of(
    [
        NodeGroup("workers", instance_types=["p5.48xlarge"], count=4),
        NodeGroup("extra", instance_types=["p5.48xlarge"], count=2, capacity=Capacity.spot()),
        NodeGroup("late", instance_types=["p5.48xlarge"], count=2, capacity=Capacity.spot()),
        NodeGroup("turns", instance_types=["g6.12xlarge"], count=1, gpu_sharing=GpuSharing.time_slicing(4)),
        NodeGroup("mps", instance_types=["g6.12xlarge"], count=1, gpu_sharing=GpuSharing.mps(4)),
        NodeGroup("parts", instance_types=["p5.48xlarge"], count=1, gpu_sharing=GpuSharing.mig("1g.10gb")),
    ]
)
_ALWAYS = SlurmNodes(fixed=True)
_SLURM = SlurmSettings(
    queues=[
        SlurmQueue("train", node_groups=["workers"], priority_tier=10),
        SlurmQueue("low", node_groups=["workers"], preemption=Preemption.REQUEUE, grace_time=Duration.seconds(20)),
        SlurmQueue("elastic", node_groups=["extra"]),
        SlurmQueue("late", node_groups=["late"]),
        SlurmQueue("small", node_groups=["turns", "mps", "parts"]),
    ],
    # Debian's slurmd finds no MIG partitions, so that their node stays as it is before it boots.
    node_groups={"workers": _ALWAYS, "turns": _ALWAYS, "mps": _ALWAYS, "parts": SlurmNodes(fixed=False)},
)
_CONFIGURATION = slurm_configuration(_SLURM, _NODES)
_SCRIPTS = job_scripts(
    _SLURM, [(each.group, each.infos[0]) for each in _NODES.nodes], mount_point="/fsx", datasets=["/fsx/data"]
)
_TRAINS = _SCRIPTS["workers/torchrun.sbatch"]
# In place of PyTorch: it trains until its checkpoint says that it is done, and saves at the signal.
_TORCHRUN = """
if [[ $SLURM_NODEID == 0 ]]; then echo "$*" >/srv/torchrun-$SLURM_JOB_ID; fi
if [[ -e $CHECKPOINT_DIR/$RUN_NAME ]]; then echo "goes on at $(<"$CHECKPOINT_DIR/$RUN_NAME")"; exit 0; fi
# A process of the training, which has a handler, and as with torchrun a session of its own: a signal to the job's
# task, or to its process group, does not reach it.
setsid /usr/bin/python3 -c '
import os, signal, sys, time

def save(*_):
    with open(os.environ["CHECKPOINT_DIR"] + "/" + os.environ["RUN_NAME"], "w") as checkpoint:
        checkpoint.write("1000")
    print("saves", flush=True)
    sys.exit(1)

signal.signal(signal.SIGUSR1, save)
print("trains", flush=True)
while True:
    time.sleep(0.1)
' &
worker=$!
trap 'echo "torchrun ends"; kill "$worker"' TERM
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; done
wait "$worker"
"""
# Another slurmd is installed, as an update of its package or of a library does it, and then what apt runs.
_UPDATE = """
mkdir -p /run/systemd/system
cp -a /usr/sbin/slurmd-wlm /srv/new
mv /srv/new /usr/sbin/slurmd-wlm
echo 0::/system.slice/slurmd.service >/srv/cgroup
for each in $(pgrep slurmd); do mount --bind /srv/cgroup "/proc/$each/cgroup"; done
NEEDRESTART_MODE=a needrestart -l
"""
_GANG = ("--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=8")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSlurm]:
    with real_slurm(tmp_path_factory.mktemp("slurm"), _CONFIGURATION, _NODES) as made:
        with made.timed("6 nodes boot and are idle"):
            made.start()
        made.put_command("torchrun", _TORCHRUN)
        shutil.copytree(PROJECT / "job/cluster_job", made.root / "srv/job/cluster_job")
        made.put_command("cluster-run", 'PYTHONPATH=/srv/job exec /usr/bin/python3 -m cluster_job.launch "$@"')
        made.put_command("wait-for-dataset", 'echo "$*" >>/srv/waited')
        (made.root / "srv/checkpoints").mkdir()
        (made.root / "etc/profile.d/cdk-training-cluster.sh").write_text("export CHECKPOINT_DIR='/srv/checkpoints'\n")
        yield made
        width = max(map(len, made.times))
        sys.stdout.write(f"\nSlurm {made.run('sinfo', '--version').split()[-1]} in namespaces of this machine\n")
        sys.stdout.writelines(f"  {what:<{width}} {seconds:6.1f} s\n" for what, seconds in made.times.items())


@pytest.fixture(scope="module", autouse=True)
def from_zero(slurm: RealSlurm) -> Mapping[str, str]:
    """Submit, before all others, the jobs of nodes that are not there; they take half a minute."""
    (slurm.folder("late-1") / "never-boots").touch()
    return {
        "elastic": slurm.submit(*_GANG, "--partition=elastic", script="srun bash -c 'echo $SLURMD_NODENAME'"),
        "late": slurm.submit("--partition=late", "--gpus-per-node=8", script="echo on $SLURM_JOB_NODELIST"),
    }


def test_slurm_reads_each_setting_and_pcs_takes_it(slurm: RealSlurm) -> None:
    shown = {}
    for line in slurm.run("scontrol", "show", "config").splitlines():
        name, equals, value = line.partition("=")
        if equals:
            shown[name.strip().removesuffix("[0]")] = value.strip()
    for name, value in {**_CONFIGURATION.settings, **SHORTER}.items():
        assert name in CLUSTER_SETTINGS
        assert shown[name].startswith(value), name
    for group in _CONFIGURATION.node_groups:
        assert set(group.settings) <= NODE_GROUP_SETTINGS
        node = slurm.shown("node", f"{group.name}-1")
        assert (node["AvailableFeatures"], node["Weight"]) == (group.settings["Features"], group.settings["Weight"])
        assert node["Gres"].partition("(")[0] == group.gres.text
    for queue in _CONFIGURATION.queues:
        assert set(queue.settings) <= QUEUE_SETTINGS
        partition = slurm.shown("partition", queue.name)
        assert {name: partition[name] for name in queue.settings} == queue.settings


@pytest.mark.parametrize(
    "line",
    [
        "HealthCheckPrograms=/opt/cdk-training-cluster/slurm/health-check.sh",
        "PreemptMode=REQUEU",
        "PrologFlags=Aloc",
        "PartitionName=none Nodes=others-[1-2]",
    ],
)
def test_slurm_refuses_what_is_written_wrong(slurm: RealSlurm, line: str) -> None:
    assert "fatal" in slurm.refuses(line)


def test_a_gang_gets_all_gpus_of_two_nodes(slurm: RealSlurm) -> None:
    with slurm.timed("a job of 2 x 8 GPUs starts and ends"):
        said = slurm.run("srun", *_GANG, "bash", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES")
    assert sorted(said.split()[1::2]) == ["0,1,2,3,4,5,6,7"] * 2
    assert len(set(said.split()[::2])) == 2


def test_a_training_whose_node_is_lost_goes_on_at_once_on_others(slurm: RealSlurm) -> None:
    job = slurm.submit("--nodes=2", script=_TRAINS)
    lost = slurm.hosts(slurm.wait_for_job(job, "RUNNING")["NodeList"])[-1]
    slurm.wait_for("both nodes train", lambda: slurm.output(job).count("trains") == 2)
    (slurm.root / f"srv/checkpoints/train-{job}").write_text("500")
    with slurm.timed("a node is lost: Slurm says so"):
        slurm.kill(lost)
        slurm.wait_for_state(lost, "DOWN")
    with slurm.timed("a node is lost: its training, expedited, has gone on and finished"):
        shown = slurm.wait_for_job(job, "COMPLETED")
    assert shown["Restarts"] == "1"
    assert lost not in slurm.hosts(shown["NodeList"])
    assert _said(slurm, job) == [f"start 0 of train-{job}", f"start 1 of train-{job}", *["goes on at 500"] * 2]
    assert (slurm.root / "srv/waited").read_text().splitlines()[-1] == "/fsx/data --timeout 4h"
    rendezvous = (slurm.root / f"srv/torchrun-{job}").read_text()
    assert f"--rdzv-id=train-{job}@{job}-0-1 --rdzv-endpoint=10.99.0.1:29500 --rdzv-conf=is_host=1" in rendezvous
    slurm.boot(lost)
    slurm.mend(lost)


def test_jobs_of_a_stopped_node_group_wait_and_run_after_its_start(slurm: RealSlurm) -> None:
    """Its queue has no other group, as by default: Slurm neither refuses a job of it nor holds one."""
    trains = slurm.submit("--nodes=2", script=_TRAINS)
    slurm.wait_for("both nodes train", lambda: slurm.output(trains).count("trains") == 2)
    waits = slurm.submit("--nodes=4", "--exclusive", script="echo ran")
    slurm.stop_group("workers")
    new = slurm.submit("--nodes=2", script=_TRAINS)
    for job in (trains, new):
        (slurm.root / f"srv/checkpoints/train-{job}").write_text("500")
    for job in (trains, waits, new):
        assert slurm.wait_for_job(job, "PENDING")["Reason"] != "BadConstraints"
    with slurm.timed("a node group is stopped and started: its jobs have run"):
        slurm.start_group("workers")
        for job in (trains, waits, new):
            slurm.wait_for_job(job, "COMPLETED")
    assert _said(slurm, trains)[-2:] == ["goes on at 500"] * 2


def test_an_xid_of_a_gpu_takes_its_node_out(slurm: RealSlurm) -> None:
    with slurm.timed("an Xid is written: its node is drained"):
        slurm.ask_to_drain("workers-2", "Xid 79: GPU 3 has fallen off the bus")
        shown = slurm.wait_for_state("workers-2", "DRAIN")
    assert shown["Reason"] == "Xid 79: GPU 3 has fallen off the bus"
    slurm.mend("workers-2")


def test_a_job_runs_elsewhere_where_a_node_fails_its_prolog(slurm: RealSlurm) -> None:
    gpu = slurm.folder("workers-1") / "dev/nvidia7"
    gpu.unlink()
    with slurm.timed("a node fails its prolog: its job has run on others"):
        job = slurm.submit("--nodes=3", "--gpus-per-node=8", script="echo on $SLURM_JOB_NODELIST")
        slurm.wait_for_job(job, "COMPLETED")
    shown = slurm.wait_for_state("workers-1", "DRAIN")
    assert shown["Reason"] == "the driver lists 7 GPUs, and p5.48xlarge has 8"
    assert slurm.output(job).strip() == "on workers-[2-4]"
    _copy(slurm, "workers-2", "workers-1")
    slurm.mend("workers-1")


def test_a_node_whose_prolog_is_lost_is_drained_by_slurm_and_taken_back(slurm: RealSlurm) -> None:
    """As on a new node of AWS PCS whose slurmd systemd starts anew: nothing is wrong with it."""
    held = [slurm.folder(node) / "run/held" for node in slurm.nodes_of("workers")]
    for each in held:
        each.touch()
    job = slurm.submit("--nodes=1", script="echo on $SLURM_JOB_NODELIST")
    slurm.wait_for("its prolog is lost", lambda: slurm.run("pkill", "-KILL", "-e", "prolog.sh", check=False) or None)
    for each in held:
        each.unlink()
    with slurm.timed("a prolog is lost: its job has run on another node"):
        slurm.wait_for_job(job, "COMPLETED")
    [node] = set(slurm.run("sinfo", "--noheader", "--states=drain", "--format=%N").split())
    assert slurm.shown("node", node)["Reason"] == "Prolog error"
    assert slurm.output(job).strip() != f"on {node}"
    with slurm.timed("a prolog is lost: its node is taken back, but for the minutes that it waits"):
        slurm.wait_for(f"{node} is taken back", lambda: slurm.is_taken_back(node))
    slurm.wait_for_state(node, "IDLE")


def test_a_node_that_failed_the_verification_of_its_boot_joins_drained(slurm: RealSlurm) -> None:
    slurm.kill("workers-3")
    slurm.wait_for_state("workers-3", "DOWN")
    slurm.ask_to_drain("workers-3", "verification failed: efa_state: rdmap0s6 is 1: DOWN")
    slurm.boot("workers-3")
    shown = slurm.wait_for_state("workers-3", "DRAIN")
    assert shown["Reason"] == "verification failed: efa_state: rdmap0s6 is 1: DOWN"
    slurm.mend("workers-3")


def test_jobs_wait_on_their_nodes_for_a_file_system_in_maintenance(slurm: RealSlurm) -> None:
    answers = [slurm.folder(f"workers-{number}") / "run/file-system" for number in range(1, 5)]
    for answer in answers:
        answer.unlink()
    job = slurm.submit("--nodes=2", script="echo waits; stat --file-system --format %T /fsx; echo ran")
    slurm.wait_for("it has started", lambda: slurm.output(job) or None)
    # The nodes say which jobs they have.
    slurm.run("scontrol", "reconfigure")
    assert slurm.output(job) == "waits\n"
    for answer in answers:
        answer.write_text("lustre\n")
    assert slurm.wait_for_job(job, "COMPLETED")["Restarts"] == "0"
    for number in range(1, 5):
        slurm.wait_for_state(f"workers-{number}", "IDLE")


def test_a_training_that_is_preempted_saves_and_goes_on_later(slurm: RealSlurm) -> None:
    low = slurm.submit("--nodes=2", "--partition=low", script=_TRAINS)
    slurm.wait_for("both nodes train", lambda: slurm.output(low).count("trains") == 2)
    with slurm.timed("a job preempts a training: it has run"):
        high = slurm.submit("--nodes=4", "--gpus-per-node=8", "--partition=train", script="echo first")
        slurm.wait_for_job(high, "COMPLETED")
    with slurm.timed("a job preempts a training: this has gone on and finished"):
        shown = slurm.wait_for_job(low, "COMPLETED")
    assert shown["Restarts"] == "1"
    assert _said(slurm, low) == [
        f"start 0 of train-{low}",
        "SIGUSR1: the training saves and ends",
        *["saves"] * 2,
        f"start 1 of train-{low}",
        *["goes on at 1000"] * 2,
    ]


def test_a_training_whose_time_is_over_saves_and_goes_on(slurm: RealSlurm) -> None:
    with slurm.timed("a training's time is over: it has gone on and finished"):
        job = slurm.submit("--nodes=2", "--time=1", "--signal=B:USR1@55", script=_TRAINS)
        shown = slurm.wait_for_job(job, "COMPLETED")
    assert shown["Restarts"] == "1"
    assert "goes on at 1000" in _said(slurm, job)


def test_an_expedited_job_that_fails_on_sound_nodes_waits_for_its_user_and_holds_no_node(slurm: RealSlurm) -> None:
    job = slurm.submit("--nodes=4", "--exclusive", "--requeue=expedite", script="exit 1")
    slurm.wait_for_job(job, "REQUEUE_HOLD")
    other = slurm.submit("--nodes=4", "--exclusive", script="true")
    slurm.wait_for_job(other, "COMPLETED")
    slurm.run("scancel", job)


def test_a_job_may_ask_to_run_again(slurm: RealSlurm) -> None:
    with slurm.timed("a job ends with 99: it has run again"):
        job = slurm.submit(script="echo run ${SLURM_RESTART_COUNT:-0}; exit $((${SLURM_RESTART_COUNT:-0} ? 0 : 99))")
        slurm.wait_for_job(job, "COMPLETED")
    assert slurm.output(job).splitlines() == ["run 0", "run 1"]


def test_a_user_who_is_no_operator_drains_no_node_and_ends_no_job_of_others(slurm: RealSlurm) -> None:
    job = slurm.submit("--nodes=1", script="sleep 600")
    slurm.wait_for_job(job, "RUNNING")
    node = slurm.shown("job", job)["NodeList"]
    for command in (
        ("scontrol", "update", f"nodename={node}", "state=drain", "reason=forged"),
        ("scontrol", "update", f"nodename={node}", "state=resume"),
        ("scontrol", "reconfigure"),
        ("scancel", job),
    ):
        said = slurm.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command, check=False)
        assert "ermission denied" in said or "Invalid user id" in said, (command, said)
    assert slurm.shown("job", job)["JobState"] == "RUNNING"
    assert "DRAIN" not in slurm.shown("node", node)["State"]
    slurm.run("scancel", job)


def test_an_update_of_slurmd_does_not_restart_it_under_its_jobs(slurm: RealSlurm, tmp_path: Path) -> None:
    """By Debian's needrestart, as it is without the node's configuration and with it."""
    restarts = slurm.root / "srv/restarts"
    systemctl = slurm.root / "usr/local/bin/systemctl"
    systemctl.write_text('#!/bin/bash\nif [[ $1 == restart ]]; then echo "$*" >>/srv/restarts; fi\n')
    systemctl.chmod(0o755)
    slurm.run("bash", "-c", _UPDATE)
    assert restarts.read_text() == "restart slurmd.service\n"
    node = NodeSandbox(tmp_path, os_release=UBUNTU)
    node.install_scripts()
    assert node.step("updates.sh pause").returncode == 0
    shutil.copytree(node.root / "etc/needrestart", slurm.root / "etc/needrestart", dirs_exist_ok=True)
    said = slurm.run("bash", "-c", _UPDATE)
    assert "Service restarts being deferred:\n systemctl restart slurmd.service" in said
    assert restarts.read_text() == "restart slurmd.service\n"


@pytest.mark.parametrize(
    ("share", "node", "at_once", "told"),
    [
        ("shard", "turns-1", 16, "CUDA_VISIBLE_DEVICES"),
        ("mps", "mps-1", 4, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
    ],
)
def test_jobs_share_gpus(slurm: RealSlurm, share: str, node: str, at_once: int, told: str) -> None:
    """Slurm gives out the shares of all GPUs of a node, but for MPS those of one of them."""
    asks = ("--partition=small", f"--gres={share}:1", "--ntasks=1")
    jobs = [slurm.submit(*asks, script=f"echo ${told}; sleep 300") for _ in range(at_once)]
    for job in jobs:
        assert slurm.wait_for_job(job, "RUNNING")["NodeList"] == node
    slurm.wait_for("all have begun", lambda: all(slurm.output(job) for job in jobs))
    said = [slurm.output(job).strip() for job in jobs]
    assert sorted(said) == (["25"] * 4 if share == "mps" else sorted("0123" * 4))
    one_more = slurm.submit(*asks, script="true")
    slurm.wait_for("Slurm says why", lambda: slurm.shown("job", one_more)["Reason"] == "Resources")
    slurm.run("scancel", *jobs, one_more)


def test_a_partition_of_a_gpu_is_a_resource_of_its_own(slurm: RealSlurm) -> None:
    assert slurm.shown("node", "parts-1")["Gres"] == "gpu:1g.10gb:56"
    assert "parts-1" in slurm.run(
        "sbatch", "--test-only", "--partition=small", "--gres=gpu:1g.10gb:2", "--wrap=true", check=False
    )


def test_nodes_come_for_a_job_and_go_after_it(slurm: RealSlurm, from_zero: Mapping[str, str]) -> None:
    job = from_zero["elastic"]
    slurm.wait_for_job(job, "COMPLETED")
    assert set(slurm.output(job).split()) == {"extra-1", "extra-2"}
    slurm.times["from no node: a job of 2 x 8 GPUs has run"] = slurm.seconds_of(job)
    slurm.times["its nodes are ended after it"] = slurm.ended(job, "extra-1", "extra-2")
    slurm.wait_for_state("extra-1", "POWERED_DOWN")


def test_a_node_that_never_boots_is_given_up_and_its_job_runs_elsewhere(
    slurm: RealSlurm, from_zero: Mapping[str, str]
) -> None:
    job = from_zero["late"]
    slurm.wait_for_job(job, "COMPLETED")
    slurm.times["a node never boots: its job has run on another"] = slurm.seconds_of(job)
    assert slurm.output(job).strip() == "on late-2"


def _said(slurm: RealSlurm, job: str) -> list[str]:
    """Return what a training's script printed, without what Slurm says of its steps."""
    lines = [line.partition(" on workers")[0] for line in slurm.output(job).splitlines()]
    return [line for line in lines if line.startswith(("start ", "SIGUSR1", "saves", "goes on"))]


def _copy(slurm: RealSlurm, source: str, target: str) -> None:
    found = (slurm.folder(source) / "dev/nvidia7").stat()
    os.mknod(slurm.folder(target) / "dev/nvidia7", found.st_mode, found.st_rdev)
