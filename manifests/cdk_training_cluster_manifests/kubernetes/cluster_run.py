"""What pods need for `cluster-run`: the node's files, the run's name, and a name for each start of it."""

from collections.abc import Sequence

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.objects import Object
from cluster_contract import node_files

_PACKAGE = "/opt/cdk-training-cluster/scripts/job"

GRACE_SECONDS = 100
"""How long a pod has to end: a Spot Instance is interrupted after two minutes.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
"""

_SECONDS_TO_LEAVE = 5

# Kubernetes neither makes nor looks for what may come and go: /run is empty after a reboot.
_FOLDERS = {
    "cluster-settings": (node_files.JOB.rpartition("/")[0], "Directory"),
    "cluster-package": (_PACKAGE, "Directory"),
    "cluster-drain": (node_files.RUN, "DirectoryOrCreate"),
}

NODE_FOLDERS = tuple(path for path, _ in _FOLDERS.values())
"""The folders of the node that pods of jobs read."""

# JobSet labels its pods: https://jobset.sigs.k8s.io/docs/concepts/#jobset-labels
_LABELS = {
    "RUN_NAME": "metadata.labels['jobset.sigs.k8s.io/jobset-name']",
    "JOBSET_UID": "metadata.labels['jobset.sigs.k8s.io/jobset-uid']",
    "JOBSET_RESTART_ATTEMPT": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']",
    "TRAINING_CLUSTER_NODE": "spec.nodeName",
}


_FIRST = "verification"

# The node's taint comes some seconds after its drain, and keeps the pod off it that follows this one. Where no taint
# comes, the pod would be made again on the same node at once, and its gang with it.
_WAIT_SECONDS = 60

# The first process of a container gets no signal without a handler: a deleted pod would wait for its grace period.
_END_WHERE_DRAINED = f"""\
set -- {node_files.DRAIN}/*
[ -e "$1" ] || exit 0
trap 'exit 143' TERM
printf 'The node is drained: %s\n' "$(head -n 1 "$1")" | tee /dev/termination-log
sleep {_WAIT_SECONDS} &
wait $!
exit 1
"""

# Exit codes of `cluster-run`: docs/resilience/jobs.md says what they mean.
# 69 counts as any other failure: the pod may land on the node again that is left out, for an hour.
_FOR_AN_OPERATOR = (64, 66, 70)
_START_AGAIN = 75

# Each of these fails the Job at once and with a reason of its own, by which JobSet chooses; all other failures exceed
# the Job's backoffLimit. It needs restartPolicy Never.
# https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
_POD_FAILURE_POLICY = {
    "rules": [
        {
            "action": "FailJob",
            "onExitCodes": {
                "containerName": "node",
                "operator": "In",
                "values": [*_FOR_AN_OPERATOR, _START_AGAIN],
            },
        },
        {"action": "FailJob", "onExitCodes": {"containerName": _FIRST, "operator": "NotIn", "values": [0]}},
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
}

# Node losses and drains are no failures of a job, however many there are in weeks; `cluster-run` counts the job's own
# by the hour. JobSet tells the rules of the policy apart by Kubernetes' message alone; one that fits no pattern
# counts as any other failure does.
# https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/keps/262-ConfigurableFailurePolicy/README.md
_RULES = [
    {
        "name": "needsAnOperator",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [f"^Container node .* exit code ({'|'.join(map(str, _FOR_AN_OPERATOR))}) "],
    },
    {
        "name": "startsAgain",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [
            f"^Container node .* exit code {_START_AGAIN} ",
            f"^Container {_FIRST} ",
            "condition DisruptionTarget ",
        ],
    },
]
# Quotas want them of each container; the job's own container asks for more.
_LITTLE = {"cpu": "100m", "memory": "64Mi"}


def runs_on_nodes(wanted: KubernetesCluster) -> bool:
    """Say whether the nodes have the package: those that Karpenter launches are not set up by the cluster.

    Args:
        wanted: The cluster.
    """
    return not wanted.settings.karpenter


def command(wanted: KubernetesCluster, program: str) -> Sequence[str]:
    """Return the command that trains.

    Args:
        wanted: The cluster.
        program: The program of the user.
    """
    end = f"--term-seconds={GRACE_SECONDS - _SECONDS_TO_LEAVE}"
    start = ["python3", "-m", "cluster_job.launch", end] if runs_on_nodes(wanted) else []
    return [*start, "torchrun", program]


def add_to(job_set: Object) -> None:
    """Let the pods of a job see the node's files, tell them of the run, and say which of their failures end it.

    A container before theirs lets no job begin on a node that failed its verification or is drained.

    Args:
        job_set: The specification of a JobSet with one job, whose pods have one container.
    """
    (replicated,) = job_set["replicatedJobs"]
    job = replicated["template"]["spec"]
    job["podFailurePolicy"] = _POD_FAILURE_POLICY
    job_set["failurePolicy"]["rules"] = _RULES
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    for name, (path, kind) in _FOLDERS.items():
        pod["volumes"].append({"name": name, "hostPath": {"path": path, "type": kind}})
        container["volumeMounts"].append({"name": name, "mountPath": path, "readOnly": True})
    container["env"] += [
        {"name": "PYTHONPATH", "value": _PACKAGE},
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in _LABELS.items()),
        {"name": "TRAINING_CLUSTER_ATTEMPT", "value": "$(JOBSET_UID)-$(JOBSET_RESTART_ATTEMPT)"},
    ]
    pod["initContainers"] = [
        {
            "name": _FIRST,
            "image": container["image"],
            # The reason is what kubectl logs and kubectl describe show.
            "command": ["sh", "-c", _END_WHERE_DRAINED],
            "resources": {"requests": dict(_LITTLE), "limits": dict(_LITTLE)},
            "volumeMounts": [{"name": "cluster-drain", "mountPath": node_files.RUN, "readOnly": True}],
        }
    ]
