"""The add-ons of EKS that a training cluster has or may have, and what each may do in the account."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum


class Installed(Enum):
    """The condition under which an add-on is installed."""

    ALWAYS = "always"
    """Without it nodes do not join, or pods get no addresses, names or permissions."""

    WITH_FILE_SYSTEM = "with a file system"
    """It mounts the cluster's file system into pods."""

    BY_CHOICE = "by choice"
    """`EksSettings.add_ons` names it."""


@dataclass(frozen=True, kw_only=True)
class AddOn:
    """What an add-on is for, and what it needs.

    Attributes:
        purpose: What it does.
        wanted: When a cluster has it.
        runs_on_every_node: Whether it is made before the nodes. Others run on the system nodes, and EKS would call
            them degraded until there are some.
        service_account: The Kubernetes service account that gets an IAM role. Default: - it calls nothing of AWS's.
        policy: The managed policy of that role. Default: - the role has what the cluster allows it.
        configuration: Its configuration values, in JSON. Default: - its own defaults.
    """

    purpose: str
    wanted: Installed = Installed.BY_CHOICE
    runs_on_every_node: bool = False
    service_account: str = ""
    policy: str = ""
    configuration: str | None = None


MIN_POD_ADDRESSES = 16
"""How many addresses of the subnet every node keeps for pods, beside its own; a GPU node runs a dozen pods."""

VPC_CNI, POD_IDENTITY, FSX_CSI = "vpc-cni", "eks-pod-identity-agent", "aws-fsx-csi-driver"

# https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
# https://docs.aws.amazon.com/eks/latest/userguide/community-addons.html
# https://docs.aws.amazon.com/eks/latest/userguide/retreive-iam-info.html (service accounts and policies)
ADD_ONS: Mapping[str, AddOn] = {
    VPC_CNI: AddOn(
        purpose="gives pods addresses of the nodes' subnet",
        wanted=Installed.ALWAYS,
        runs_on_every_node=True,
        service_account="aws-node",
        policy="AmazonEKS_CNI_Policy",
        # Of itself a large node keeps two interfaces full of addresses, a hundred of them: some nodes empty a /24.
        # https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/eni-and-ip-target.md
        configuration=f'{{"env": {{"MINIMUM_IP_TARGET": "{MIN_POD_ADDRESSES}", "WARM_IP_TARGET": "4"}}}}',
    ),
    "kube-proxy": AddOn(purpose="routes to services", wanted=Installed.ALWAYS, runs_on_every_node=True),
    POD_IDENTITY: AddOn(purpose="gives pods IAM roles", wanted=Installed.ALWAYS, runs_on_every_node=True),
    "coredns": AddOn(purpose="resolves names of services", wanted=Installed.ALWAYS),
    "eks-node-monitoring-agent": AddOn(
        purpose="reports Xid errors and other faults of nodes, which node repair acts on",
        wanted=Installed.ALWAYS,
        runs_on_every_node=True,
        # Its DCGM tolerates nothing of itself, and without it the agent sees no Xid error and calls the GPUs broken.
        # https://github.com/aws/containers-roadmap/issues/2567
        configuration='{"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}',
    ),
    "metrics-server": AddOn(purpose="answers kubectl top and horizontal autoscalers", wanted=Installed.ALWAYS),
    FSX_CSI: AddOn(
        purpose="mounts FSx for Lustre into pods",
        wanted=Installed.WITH_FILE_SYSTEM,
        service_account="fsx-csi-controller-sa",
    ),
    "aws-mountpoint-s3-csi-driver": AddOn(purpose="mounts S3 buckets into pods", service_account="s3-csi-driver-sa"),
    "aws-ebs-csi-driver": AddOn(
        purpose="makes EBS volumes for pods",
        service_account="ebs-csi-controller-sa",
        policy="service-role/AmazonEBSCSIDriverPolicy",
    ),
    "amazon-cloudwatch-observability": AddOn(
        purpose="sends Container Insights and logs of pods to CloudWatch",
        service_account="cloudwatch-agent",
        policy="CloudWatchAgentServerPolicy",
    ),
    "cert-manager": AddOn(purpose="issues certificates, which operators' webhooks need"),
    "external-dns": AddOn(purpose="keeps names of services in Route 53", service_account="external-dns"),
    "fluent-bit": AddOn(
        purpose="sends logs of pods to CloudWatch Logs",
        service_account="fluent-bit",
        policy="CloudWatchAgentServerPolicy",
    ),
    "kube-state-metrics": AddOn(purpose="tells Prometheus of pods, jobs and nodes"),
    "prometheus-node-exporter": AddOn(
        purpose="tells Prometheus of the operating system of nodes", runs_on_every_node=True
    ),
}
"""The add-ons, in the order in which they are made."""

# They need a HyperPod cluster on the EKS cluster.
# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
HYPERPOD_ADD_ONS: Mapping[str, AddOn] = {
    "amazon-sagemaker-hyperpod-training-operator": AddOn(
        purpose="runs HyperPodPyTorchJob",
        service_account="hp-training-operator-controller-manager",
        policy="AmazonSageMakerHyperPodTrainingOperatorAccess",
    ),
    "amazon-sagemaker-hyperpod-taskgovernance": AddOn(purpose="queues HyperPod tasks by teams and priorities"),
    "amazon-sagemaker-hyperpod-observability": AddOn(purpose="sends HyperPod's metrics to Prometheus"),
}
"""The add-ons of HyperPod, which an EKS cluster without HyperPod has no use for."""


def add_ons_without_policy(names: Collection[str]) -> list[str]:
    """Return the add-ons among some that call AWS, and whose role nothing but the user gives a policy.

    Args:
        names: Those that were chosen.
    """
    return [
        name
        for name, each in ADD_ONS.items()
        if name in names and each.wanted is Installed.BY_CHOICE and each.service_account and not each.policy
    ]


def chosen_add_ons(names: Collection[str], *, file_system: bool) -> Mapping[str, AddOn]:
    """Return the add-ons of a cluster.

    Args:
        names: Those that were chosen.
        file_system: Whether the cluster has a file system.
    """
    wanted = {Installed.ALWAYS, *([Installed.WITH_FILE_SYSTEM] if file_system else [])}
    return {name: add_on for name, add_on in ADD_ONS.items() if add_on.wanted in wanted or name in names}
