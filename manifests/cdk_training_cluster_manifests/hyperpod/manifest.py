"""Writes a job as the manifests that kubectl applies: a ResourceQuota and a HyperPodPyTorchJob."""

import shlex
from typing import Any

import yaml

from cdk_training_cluster_manifests.hyperpod.job import HyperPodJob
from cdk_training_cluster_manifests.hyperpod.recipes import Recipe

_NODE_LABEL = "node.kubernetes.io/instance-type"
_PLACES = {"data": "/data", "shm": "/dev/shm"}  # noqa: S108 - where NCCL keeps its shared memory
_HEADER = """\
# Needs the HyperPod training operator 1.2 or newer (EKS add-on amazon-sagemaker-hyperpod-training-operator).
"""
_SPOT = """\
# Its nodes are to be Spot Instances: the instance group says so, not this manifest.
"""
_TIERED = """\
# Its script is to write checkpoints with amzn-sagemaker-checkpointing: this manifest does not make it.
"""
_CONFIGURATION = """\
# Make the ConfigMap training-config-{name} from the files that the launcher of the recipe writes:
#   github.com/aws/sagemaker-hyperpod-recipes, recipes={recipe}
"""

# The configurations in the image inject faults to show the recovery; a job that trains must not.
# https://github.com/aws/sagemaker-hyperpod-checkpointless-training examples/*/config/*_checkpointless.yaml
_FAULTS = ("after_bwd", "between_lock", "during_fwd", "during_bwd", "random")
_PREPARE = """\
mkdir -p "$LOGDIR"
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-$(ip -o -4 route show to default | awk '{print $5; exit}')}
ln -sf /opt/aws-ofi-nccl/lib/libnccl-net-ofi.so /opt/aws-ofi-nccl/lib/libnccl-net-aws-ofi.so
sysctl -w net.ipv4.ip_local_port_range='20000 65535'
exec """


class _Dumper(yaml.SafeDumper):
    """Writes a script as a block, as people write it."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)


def manifests(job: HyperPodJob) -> str:
    """Return the YAML text.

    Args:
        job: The job.
    """
    documents = [_training_job(job)]
    if job.elastic or job.quota_nodes:
        documents.insert(0, _quota(job))
    header = _HEADER + (_SPOT if job.spot else "") + (_TIERED if job.tiered_checkpointing else "")
    if job.known_recipe and job.known_recipe.sizes:
        header += _CONFIGURATION.format(name=job.name, recipe=job.recipe)
    return header + str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=10_000))


def _quota(job: HyperPodJob) -> dict[str, Any]:
    """Bound the namespace: the operator asks for nodes up to the maximum, and Karpenter launches them.

    Kubernetes counts extended resources by their requests only, so the keys begin with `requests.`.
    https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources
    """
    hard = {f"requests.{name}": str(count * job.quota) for name, count in _devices(job).items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "hyperpod-jobs", "namespace": job.namespace},
        "spec": {"hard": hard},
    }


def _devices(job: HyperPodJob) -> dict[str, int]:
    devices = {"nvidia.com/gpu": job.node.nvidia_gpu_count, "vpc.amazonaws.com/efa": len(job.node.efa_cards)}
    return {name: count for name, count in devices.items() if count}


def _training_job(job: HyperPodJob) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": job.queue, "kueue.x-k8s.io/priority-class": job.priority_class}
    labels = {key: value for key, value in labels.items() if value}
    spec: dict[str, Any] = {"nprocPerNode": str(job.node.nvidia_gpu_count)}
    if job.elastic:
        spec["elasticPolicy"] = _elastic_policy(job)
    spec["replicaSpecs"] = _replica_specs(job)
    spec["runPolicy"] = {"cleanPodPolicy": "All"}
    metadata: dict[str, Any] = {"name": job.name, "namespace": job.namespace}
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": metadata | ({"labels": labels} if labels else {}),
        "spec": spec,
    }


def _elastic_policy(job: HyperPodJob) -> dict[str, Any]:
    settings = (
        job.elastic.model_dump(exclude={"base_priority_class", "elastic_priority_class"}) if job.elastic else {}
    )
    return {
        _camel(name): list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if value is not None
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _replica_specs(job: HyperPodJob) -> list[dict[str, Any]]:
    policy, spares = job.elastic, {"spares": job.spares} if job.spares else {}
    if policy is None:
        return [{"name": "pods", "replicas": job.first_size, **spares, "template": _template(job, None)}]
    if policy.base_priority_class is None:
        # It should match elasticPolicy.maxReplicas, AWS says; AWS's first example contradicts that.
        sizes = {"replicas": job.first_size, "maxReplicas": policy.max_replicas}
        return [{"name": "pods", **sizes, **spares, "template": _template(job, None)}]
    base = {"name": "base", "replicas": policy.min_replicas, **spares}
    more = {
        "name": "elastic",
        "replicas": job.first_size - policy.min_replicas,
        "maxReplicas": policy.max_replicas - policy.min_replicas,
    }
    return [
        {**base, "template": _template(job, policy.base_priority_class)},
        {**more, "template": _template(job, policy.elastic_priority_class)},
    ]


def _template(job: HyperPodJob, priority: str | None) -> dict[str, Any]:
    resources: dict[str, int | str] = {**_devices(job)}
    recipe = job.known_recipe
    if recipe:
        resources["hugepages-2Mi"] = "5120Mi"
    volumes: list[dict[str, Any]] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": job.file_system_claim}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [{"name": name, "mountPath": path} for name, path in _PLACES.items()]
    if recipe and recipe.sizes:
        volumes.append({"name": "config", "configMap": {"name": f"training-config-{job.name}"}})
        mounts.append({"name": "config", "mountPath": "/config"})
    container = {
        "name": "pytorch",
        "image": job.image or (recipe.image_in(job.region) if recipe and job.region else ""),
        **_command(job, recipe),
        "env": [{"name": name, "value": value} for name, value in sorted(_environment(job, recipe).items())],
        "resources": {"limits": resources, "requests": {**resources, "memory": "32000Mi"}},
        "securityContext": {"privileged": True} if recipe else {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": mounts,
    }
    return {
        "spec": {
            **({"priorityClassName": priority} if priority else {}),
            **({"hostNetwork": True} if recipe else {}),
            "nodeSelector": {_NODE_LABEL: job.instance_type},
            "containers": [container],
            "volumes": volumes,
        }
    }


def _environment(job: HyperPodJob, recipe: Recipe | None) -> dict[str, str]:
    given = {"JOB_NAME": job.name, "LOGDIR": f"/data/logs/{job.name}"}
    if recipe and recipe.sizes:
        given |= {"NODES": str(job.first_size), "NTASKS_PER_NODE": str(job.node.nvidia_gpu_count)}
    elif recipe:
        given["CHECKPOINT_DIR"] = f"/data/checkpoints/{job.name}"
    return given | dict(recipe.environment if recipe else {}) | job.environment


def _command(job: HyperPodJob, recipe: Recipe | None) -> dict[str, Any]:
    gpus = job.node.nvidia_gpu_count
    if recipe is None:
        launcher = [f"--nnodes={job.first_size}", f"--nproc-per-node={gpus}", "--rdzv-backend=hyperpod"]
        return {"command": ["hyperpodrun"], "args": [*launcher, *job.arguments]}
    if recipe.sizes:
        return {"command": ["/bin/bash", "-c", "/opt/bin/scripts/train-script-gpu.sh"]}
    folder, program = recipe.example.split("/")
    program = f"{program}_checkpointless"
    words = [
        *("hyperpodrun", f"--nproc_per_node={gpus}", "--log_dir=$LOGDIR", "--tee=3", "--redirect=3"),
        *("--inprocess-restart", f"/opt/amazon/examples/{folder}/{program}.py"),
        *(f"--config-path=/opt/amazon/examples/{folder}/config/", f"--config-name={program}.yaml"),
        *(f"trainer.devices={gpus}", f"trainer.num_nodes={job.first_size}"),
        f"data.global_batch_size={job.global_batch_size or recipe.global_batch_size}",
        *(f"++callbacks.3.test_fault_config.fault_prob_{each}=0" for each in _FAULTS),
        *([f"dataset.dataset_path={job.dataset_path}"] if job.dataset_path else []),
        *([f"resume.restore_config.path={job.weights_path}"] if job.weights_path else []),
        *job.arguments,
    ]
    line = " ".join(word if "$" in word else shlex.quote(word) for word in words)
    return {"command": ["/bin/bash", "-ec", _PREPARE + line]}
