"""Jobs that fit the nodes: a runtime a node group for training, an FSDP job, a test of NCCL, a job of one share."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

from cdk_training_cluster.nodes.bootstrap.environment import DEFAULT_ENVIRONMENT
from cdk_training_cluster.nodes.job_role import JOB_SERVICE_ACCOUNT
from cdk_training_cluster_manifests.kubernetes import cluster_run, kueue
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster, Team
from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object, plain
from cdk_training_cluster_manifests.kubernetes.quotas import QUEUE_ANNOTATION
from cdk_training_cluster_manifests.kubernetes.storage import CLAIM

DEFAULT_IMAGE = "public.ecr.aws/deep-learning-containers/pytorch-training:2.9.0-gpu-py312-cu130-ubuntu22.04-ec2"
"""AWS's Deep Learning Container with PyTorch, NCCL and EFA.

Source: https://gallery.ecr.aws/deep-learning-containers/pytorch-training
"""

WORKSPACE, PROGRAM = "workspace", "train.py"
"""The ConfigMap with the user's program, and the program, where there is no file system that jobs run it from."""

_API = "trainer.kubeflow.org/v1alpha1"
# Those that nothing else counts, such as of torchrun without `cluster-run`: they would go on for ever, and be billed.
_RESTARTS = 10
_NORMAL = "normal"


def image_of(wanted: KubernetesCluster, nodes: GroupNodes) -> str | None:
    """Return the image of a group's jobs. None: the file has to name one.

    Args:
        wanted: The cluster.
        nodes: The group.
    """
    fits = nodes.info.has_nvidia_gpus and "x86_64" in nodes.info.architectures
    return wanted.settings.image or (DEFAULT_IMAGE if fits else None)


def trains(wanted: KubernetesCluster, nodes: GroupNodes) -> bool:
    """Say whether jobs that take whole nodes run on a group.

    Args:
        wanted: The cluster.
        nodes: The group.
    """
    return bool(nodes.accelerators) and nodes.sharing is None and image_of(wanted, nodes) is not None


def runtimes(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return for each team and group how a training job runs there: its pods, volumes and environment.

    Args:
        wanted: The cluster.
    """
    return [
        _runtime(wanted, team, each)
        for team in wanted.teams
        for each in wanted.groups
        if trains(wanted, each) and wanted.usable(team)[each.name]
    ]


def _runtime(wanted: KubernetesCluster, team: Team, nodes: GroupNodes) -> Object:
    volcano = wanted.settings.queues == "volcano"
    node = {
        "name": "node",
        "template": {
            # What Kubeflow Trainer fills the job's settings into.
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "spec": {
                        **_pod(wanted, nodes),
                        "containers": [_container(wanted, nodes, nodes.whole_node)],
                    }
                },
            },
        },
    }
    # A node that is lost ends its gang, which starts again from its checkpoint.
    job_set: Object = {"failurePolicy": {"maxRestarts": _RESTARTS}, "replicatedJobs": [node]}
    if cluster_run.runs_on_nodes(wanted):
        cluster_run.add_to(job_set)
    template: dict[str, Any] = {"spec": job_set}
    policy: dict[str, Any] = {}
    if volcano:
        template = {"metadata": {"annotations": {QUEUE_ANNOTATION: team.name}}, **template}
        policy = {"podGroupPolicy": {"volcano": {}}}
    return an_object(
        "TrainingRuntime",
        nodes.name,
        api=_API,
        namespace=team.namespace,
        labels={"trainer.kubeflow.org/framework": "torch"},
        spec=plain({"mlPolicy": {"numNodes": 1, "torch": {}}, **policy, "template": template}),
    )


def _processes(nodes: GroupNodes) -> int:
    """Return how many processes an accelerator runs: one a GPU, one a NeuronCore."""
    return next((each.cores_per_device for each in nodes.info.accelerators if each.cores_per_device), 1)


def _pod(wanted: KubernetesCluster, nodes: GroupNodes) -> Mapping[str, Any]:
    volumes: list[Object] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    if wanted.file_system is not None:
        volumes.append({"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}})
    else:
        volumes.append({"name": WORKSPACE, "configMap": {"name": WORKSPACE}})
    return {
        # JobSet's default is OnFailure, with which a container starts again in a pod whose job has failed.
        # https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
        "restartPolicy": "Never",
        "serviceAccountName": JOB_SERVICE_ACCOUNT,
        **({"schedulerName": "volcano"} if wanted.settings.queues == "volcano" else {}),
        "nodeSelector": dict(nodes.node_selector),
        "tolerations": nodes.tolerations,
        "terminationGracePeriodSeconds": cluster_run.GRACE_SECONDS,
        "volumes": volumes,
    }


def _container(wanted: KubernetesCluster, nodes: GroupNodes, asked: Mapping[str, str]) -> Object:
    file_system = wanted.file_system
    # NCCL's default of the nodes holds in pods too: no bridge of containers is the way to another node.
    environment = {**DEFAULT_ENVIRONMENT, **nodes.group.environment}
    if nodes.efas and not nodes.huge_pages:
        # https://github.com/ofiwg/libfabric/blob/main/man/fi_efa.7.md
        environment["FI_EFA_USE_HUGE_PAGE"] = "0"
    if file_system is not None:
        environment["CHECKPOINT_DIR"] = file_system.checkpoint_directory
    mounts: list[Object] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - what shared memory is called
    if file_system is not None:
        mounts.append({"name": CLAIM, "mountPath": file_system.mount_point})
    else:
        mounts.append({"name": WORKSPACE, "mountPath": f"/{WORKSPACE}", "readOnly": True})
    return {
        "name": "node",
        "image": image_of(wanted, nodes),
        "env": [{"name": name, "value": value} for name, value in sorted(environment.items())],
        # Kubernetes wants the same of both for devices and huge pages; CPUs may be used beyond what was asked for.
        "resources": {
            "requests": dict(asked),
            "limits": {name: amount for name, amount in asked.items() if name != "cpu"},
        },
        "volumeMounts": mounts,
    }


def _in_queue(wanted: KubernetesCluster, team: Team, made: Object) -> Object:
    """Put a job into its team's queue."""
    if wanted.settings.queues == "kueue":
        made["metadata"]["labels"] = kueue.job_labels(wanted, team, _NORMAL)
    return made


def job_files(wanted: KubernetesCluster) -> Mapping[str, Object]:
    """Return the jobs to begin with, by the name of their file, in the namespace of the first team that may run them.

    Args:
        wanted: The cluster.
    """
    found: dict[str, Object] = {}
    for nodes in wanted.groups:
        team = next((each for each in wanted.teams if wanted.usable(each)[nodes.name]), None)
        if team is None or image_of(wanted, nodes) is None:
            continue
        if trains(wanted, nodes):
            found[f"fsdp-{nodes.name}"] = _training(wanted, team, nodes)
            if nodes.info.has_nvidia_gpus:
                found[f"nccl-test-{nodes.name}"] = _nccl_test(wanted, team, nodes)
        elif nodes.accelerators:
            found[f"share-{nodes.name}"] = share_job(wanted, team, nodes)
    return found


def _train_job(wanted: KubernetesCluster, team: Team, nodes: GroupNodes, name: str, trainer: Object) -> Object:
    # The name is a part of host names: letters first, at most 63.
    # https://github.com/kubeflow/trainer/blob/v2.3.0/pkg/apis/trainer/v1alpha1/trainjob_types.go
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": nodes.name}
    processes = sum(nodes.accelerators.values()) * _processes(nodes)
    job = an_object(
        "TrainJob",
        f"{name}-{nodes.name}"[:63].rstrip("-"),
        api=_API,
        namespace=team.namespace,
        spec={"runtimeRef": reference, "trainer": {"numProcPerNode": processes, **trainer}},
    )
    return _in_queue(wanted, team, job)


def program_of(wanted: KubernetesCluster) -> PurePosixPath:
    """Return the program of the user that a training job runs.

    Args:
        wanted: The cluster.
    """
    folder = f"/{WORKSPACE}" if wanted.file_system is None else wanted.file_system.mount_point
    return PurePosixPath(folder) / PROGRAM


def _training(wanted: KubernetesCluster, team: Team, nodes: GroupNodes) -> Object:
    own = team.nodes[nodes.name] or wanted.usable(team)[nodes.name]
    command = cluster_run.command(wanted, str(program_of(wanted)))
    return _train_job(wanted, team, nodes, "fsdp", {"numNodes": own, "command": command})


def _nccl_test(wanted: KubernetesCluster, team: Team, nodes: GroupNodes) -> Object:
    program = resources.files(__package__).joinpath("all_reduce.py").read_text(encoding="utf-8")
    return _train_job(
        wanted,
        team,
        nodes,
        "nccl-test",
        {
            "numNodes": min(2, wanted.usable(team)[nodes.name]),
            "command": [
                "bash",
                "-c",
                'printf %s "$PROGRAM" > /tmp/all_reduce.py && exec torchrun /tmp/all_reduce.py',
            ],
            "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "PROGRAM", "value": program}],
        },
    )


def share_job(wanted: KubernetesCluster, team: Team, nodes: GroupNodes) -> Object:
    """Return a job of one accelerator or share, which shows what it got.

    Args:
        wanted: The cluster.
        team: Whose it is.
        nodes: Where it runs.
    """
    job = an_object(
        "Job",
        f"share-{nodes.name}",
        api="batch/v1",
        namespace=team.namespace,
        spec={"backoffLimit": 2, "template": pod_template(wanted, team, pod_of_a_share(wanted, nodes))},
    )
    return _in_queue(wanted, team, job)


def pod_template(wanted: KubernetesCluster, team: Team, pod: Object) -> Mapping[str, Any]:
    """Return the template of a Job's pods, which names the team's queue where Volcano schedules them.

    Args:
        wanted: The cluster.
        team: Whose the job is.
        pod: The specification of its pods.
    """
    if wanted.settings.queues != "volcano":
        return {"spec": pod}
    return {"metadata": {"annotations": {QUEUE_ANNOTATION: team.name}}, "spec": pod}


def pod_of_a_share(wanted: KubernetesCluster, nodes: GroupNodes) -> Object:
    """Return the pod of such a job.

    Args:
        wanted: The cluster.
        nodes: Where it runs.
    """
    container = {**_container(wanted, nodes, nodes.one_share), "command": ["nvidia-smi", "--list-gpus"]}
    return {**_pod(wanted, nodes), "containers": [container]}
