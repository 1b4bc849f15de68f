"""What AWS PCS would write of a configuration that a cluster's construct emits."""

from collections.abc import Collection, Mapping, Sequence

from cdk_training_cluster.orchestrators.slurm.configuration import SlurmConfiguration

_IDLE_SECONDS = 3
_BOOT_SECONDS = 15

# What AWS PCS writes itself and lets no one set. Times are those of a test, kinds of plugins PCS's own where they
# need no control groups. PCS allows expedited requeues from Slurm 25.11 on. Its control groups signal the tasks of a
# step and none of their children; proctrack/pgid comes nearest: it signals a task's process group.
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-configuration.html
_OF_PCS = f"""\
ClusterName=pcs
SlurmctldHost=controller(10.99.0.1)
SlurmUser=root
AuthType=auth/slurm
CredType=auth/slurm
SlurmctldParameters=enable_configless,enable_expedited_requeue
StateSaveLocation=/srv/state
SlurmdSpoolDir=/srv/spool
SlurmctldLogFile=/srv/slurmctld.log
SlurmctldPidFile=/srv/slurmctld.pid
SlurmdLogFile=/srv/%n.log
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=1
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=2
ResumeProgram="/srv/machine.sh resume"
SuspendProgram="/srv/machine.sh suspend"
ResumeTimeout={_BOOT_SECONDS}
SuspendTimeout=2
SuspendTime={_IDLE_SECONDS}
"""

SHORTER: Mapping[str, str] = {"HealthCheckInterval": "2"}
_LOOPS = "sched_interval=2,bf_interval=2"
"""What alone differs from the construct's settings: how often Slurm looks, which is each minute or half a minute."""


def slurm_files(
    configuration: SlurmConfiguration, counts: Mapping[str, int], *, stopped: Collection[str] = ()
) -> dict[str, str]:
    """Return what AWS PCS would write of a configuration, by the file's name.

    Args:
        configuration: What the construct emits.
        counts: How many nodes each group has.
        stopped: The groups that may have none: AWS PCS takes their nodes out of Slurm.
    """
    there = [group for group in configuration.node_groups if group.name not in stopped]
    named = {group.name: f"{group.name}-[1-{counts[group.name]}]" for group in configuration.node_groups}
    kinds = {name.partition(":")[0] for group in configuration.node_groups for name in group.gres.resources}
    loops = {"SchedulerParameters": f"{configuration.settings['SchedulerParameters']},{_LOOPS}"}
    lines = [f"GresTypes={','.join(sorted(kinds))}", *_settings({**configuration.settings, **SHORTER, **loops})]
    port = 17_000
    for group in configuration.node_groups:
        count = counts[group.name]
        own = {} if "Gres" in group.settings or not group.gres.text else {"Gres": group.gres.text}
        state = "UNKNOWN" if group.fixed else "CLOUD"
        settings = " ".join(_settings({**group.settings, **own}))
        if group in there:
            lines.append(
                f"NodeName={named[group.name]} NodeHostname=controller NodeAddr=10.99.0.1 "
                f"Port=[{port}-{port + count - 1}] CPUs=96 RealMemory=1000 State={state} {settings}"
            )
        port += count
    fixed = [named[group.name] for group in there if group.fixed]
    if fixed:
        lines.append(f"SuspendExcNodes={','.join(fixed)}")
    for queue in configuration.queues:
        nodes = ",".join(named[name] for name in queue.node_groups if name not in stopped)
        lines.append(f'PartitionName={queue.name} Nodes="{nodes}" {" ".join(_settings(queue.settings))}')
    records = [
        " ".join([f"NodeName={named[group.name]}", *_settings(record)])
        for group in there
        for record in group.gres.records
    ]
    return {
        "slurm.conf": "\n".join([_OF_PCS, *lines, ""]),
        "gres.conf": "\n".join([*records, ""]),
        # This machine has no control groups to give away; Slurm reads the settings all the same.
        "cgroup.conf": "\n".join(["CgroupPlugin=disabled", *_settings(configuration.cgroup_settings), ""]),
    }


def _settings(settings: Mapping[str, str]) -> Sequence[str]:
    return [f"{name}={value}" for name, value in settings.items()]
