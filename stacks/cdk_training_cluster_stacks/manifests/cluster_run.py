"""What pods need for `cluster-run`: the node's files, the run's name, and a name for each start of it."""

from collections.abc import Sequence

from cdk_training_cluster_stacks.manifests.objects import Object
from cdk_training_cluster_stacks.manifests.wanted import Wanted
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

# JobSet labels its pods: https://jobset.sigs.k8s.io/docs/concepts/#jobset-labels
_LABELS = {
    "RUN_NAME": "metadata.labels['jobset.sigs.k8s.io/jobset-name']",
    "JOBSET_UID": "metadata.labels['jobset.sigs.k8s.io/jobset-uid']",
    "JOBSET_RESTART_ATTEMPT": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']",
    "TRAINING_CLUSTER_NODE": "spec.nodeName",
}


_LOOK_FOR_DRAINS = f"""\
for file in {node_files.DRAIN}/*; do
  [ -e "$file" ] || continue
  head -n 1 "$file" | tee /dev/termination-log
  exit 1
done
"""
# Quotas want them of each container; the job's own container asks for more.
_LITTLE = {"cpu": "100m", "memory": "64Mi"}


def runs_on_nodes(wanted: Wanted) -> bool:
    """Say whether the nodes have the package: those that Karpenter launches are not set up by the cluster.

    Args:
        wanted: The cluster.
    """
    return not wanted.settings.karpenter


def command(wanted: Wanted, program: str) -> Sequence[str]:
    """Return the command that trains.

    Args:
        wanted: The cluster.
        program: The program of the user.
    """
    end = f"--term-seconds={GRACE_SECONDS - _SECONDS_TO_LEAVE}"
    start = ["python3", "-m", "cluster_job.launch", end] if runs_on_nodes(wanted) else []
    return [*start, "torchrun", program]


def add_to(pod: Object, container: Object) -> None:
    """Let a pod and its container see the node's files, and tell them of the run.

    A container before it lets no job begin on a node that failed its verification or is drained.

    Args:
        pod: The pod's specification.
        container: Its container.
    """
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
            "name": "verification",
            "image": container["image"],
            # The reason is what kubectl logs and kubectl describe show.
            "command": ["sh", "-c", _LOOK_FOR_DRAINS],
            "resources": {"requests": dict(_LITTLE), "limits": dict(_LITTLE)},
            "volumeMounts": [{"name": "cluster-drain", "mountPath": node_files.RUN, "readOnly": True}],
        }
    ]
