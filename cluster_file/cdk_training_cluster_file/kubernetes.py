"""What `training-cluster manifests` generates: `kubernetes:` of a cluster file's orchestrator on EKS."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from cdk_training_cluster_file import fields
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.forms import Text
from cdk_training_cluster_file.model_base import Settings

DEFAULT_TEAM = "training"
"""The team of a file that names none."""

# https://github.com/aws/sagemaker-hyperpod-cli/blob/v3.9.0/src/sagemaker/hyperpod/cli/constants/command_constants.py
_GOVERNED_PREFIX = "hyperpod-ns-"

_MAX_TEAM = 50
_TeamName = Annotated[
    str,
    Text(
        pattern=r"[a-z](?:[a-z0-9-]*[a-z0-9])?",
        must="be lower-case letters, digits and hyphens, with a letter first and none of the hyphens last",
        longest=_MAX_TEAM,
        because="names of Kubernetes objects are made of it",
    ),
]
_Url = Annotated[str, Text(pattern=r"https?://[^\s/]+(?:/\S*)?", must="be an address, such as https://example.com/x")]
_Image = Annotated[
    str,
    Text(
        pattern=r"[a-z0-9][\w.:/@-]+", must="be a container image, such as public.ecr.aws/my/image:1.0", longest=512
    ),
]


class TeamSettings(Settings):
    """A team: a namespace, a queue and its part of the nodes."""

    name: _TeamName = Field(examples=["research"])
    """The team's name, which is its namespace too."""

    nodes: dict[fields.NodeGroupName, fields.Whole] | None = Field(default=None, examples=[{"workers": 4}])
    """How many nodes of each node group are the team's own. Left out: an equal part of what the other teams leave,
    rounded down."""

    borrow: Flag = True
    """Whether its jobs may use nodes that other teams leave idle; they are preempted when these want them back."""


class ArgoCdSettings(Settings):
    """The Git repository from which Argo CD applies the folder."""

    repository: _Url = Field(examples=["https://github.com/example/clusters.git"])
    """The repository's address."""

    path: Annotated[str, Text(pattern=r"[\w.-]+(?:/[\w.-]+)*", must="be a path, such as clusters/llama")] = Field(
        examples=["clusters/llama"]
    )
    """Where the generated folder lies in it."""

    revision: Annotated[str, Text(pattern=r"[\w./-]+", must="be a branch, tag or commit")] = "main"
    """The branch, tag or commit."""


class KubernetesSettings(Settings):
    """What is installed on the EKS cluster and how teams share it. `training-cluster manifests` writes it."""

    teams: tuple[TeamSettings, ...] = Field(default=(), examples=[[{"name": "research"}, {"name": "products"}]])
    """The teams that share the nodes. Left out: one, `training`, has them all."""

    queues: Literal["kueue", "volcano"] = "kueue"
    """What admits jobs: Kueue, with quotas and fair sharing over Kubernetes' own scheduler, or Volcano, a scheduler
    of its own with gangs."""

    image: _Image | None = Field(
        default=None, examples=["111122223333.dkr.ecr.us-east-1.amazonaws.com/train:2026-11"]
    )
    """The container image of the training jobs, with EFA's libraries. Left out: AWS's Deep Learning Container with
    PyTorch for NVIDIA GPUs; nodes with Neuron devices have jobs only with an image."""

    karpenter: Flag = False
    """Whether Karpenter launches nodes as pods need them, beside the node groups that the power function owns."""

    prometheus_url: _Url | None = Field(default=None, examples=["http://prometheus.monitoring:9090"])
    """A Prometheus in reach of the cluster's pods, which OpenCost reads. Left out: OpenCost is not installed."""

    job_queue_url: _Url | None = Field(
        default=None, examples=["https://sqs.us-east-1.amazonaws.com/111122223333/jobs"]
    )
    """An SQS queue of which KEDA makes a job a message, and none without messages. Left out: KEDA is not
    installed."""

    argocd: ArgoCdSettings | None = Field(
        default=None, examples=[{"repository": "https://github.com/example/clusters.git", "path": "clusters/llama"}]
    )
    """Argo CD applies the folder. Left out: helmfile and kubectl do."""

    def namespaces(self, *, governed: bool = False) -> Mapping[str, str]:
        """Return the namespace of each team, by its name.

        Args:
            governed: Whether HyperPod's task governance makes them. Default: - the folder does.
        """
        names = [each.name for each in self.teams] or [DEFAULT_TEAM]
        return {name: f"{_GOVERNED_PREFIX if governed else ''}{name}" for name in names}
