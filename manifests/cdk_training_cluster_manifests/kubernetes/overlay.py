"""The part of the folder that is its user's: values of the deployed cluster, and changes to what is generated."""

from collections.abc import Mapping, Sequence
from importlib import resources

import yaml

from cdk_training_cluster_manifests.kubernetes import karpenter, storage
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.jobs import PROGRAM, WORKSPACE

_PLACES: Mapping[str, str] = {
    "FILE_SYSTEM_ID": "the output FileSystemId of the foundation's stack",
    "FILE_SYSTEM_DNS_NAME": "DNSName of: aws fsx describe-file-systems --file-system-ids <id>",
    "FILE_SYSTEM_MOUNT_NAME": "LustreConfiguration.MountName of the same answer",
    "NODE_ROLE_NAME": "what follows the last / of nodegroup.nodeRole of: aws eks describe-nodegroup --cluster-name "
    "<name> --nodegroup-name <one of aws eks list-nodegroups --cluster-name <name>, not that of the system nodes>",
    "NODE_SUBNET_ID": "the output NodeSubnetId of the foundation's stack",
    "NODE_SECURITY_GROUP_ID": "the output NodeSecurityGroupId of the foundation's stack",
    "CLUSTER_SECURITY_GROUP_ID": "clusterSecurityGroupId of: aws eks describe-cluster --name <name>",
    "IMAGE_ALIAS": "a release of EKS's image, such as al2023@v20260917, with which you have tested: "
    "https://github.com/awslabs/amazon-eks-ami/releases",
}

_FIELDS: Mapping[str, tuple[str, str]] = {
    "FILE_SYSTEM_ID": ("PersistentVolume", "spec.csi.volumeHandle"),
    "FILE_SYSTEM_DNS_NAME": ("PersistentVolume", "spec.csi.volumeAttributes.dnsname"),
    "FILE_SYSTEM_MOUNT_NAME": ("PersistentVolume", "spec.csi.volumeAttributes.mountname"),
    "NODE_ROLE_NAME": ("EC2NodeClass", "spec.role"),
    "NODE_SUBNET_ID": ("EC2NodeClass", "spec.subnetSelectorTerms.0.id"),
    "NODE_SECURITY_GROUP_ID": ("EC2NodeClass", "spec.securityGroupSelectorTerms.0.id"),
    "CLUSTER_SECURITY_GROUP_ID": ("EC2NodeClass", "spec.securityGroupSelectorTerms.1.id"),
    "IMAGE_ALIAS": ("EC2NodeClass", "spec.amiSelectorTerms.0.alias"),
}


def places(wanted: KubernetesCluster) -> Sequence[str]:
    """Return the values that exist after the deployment only.

    Args:
        wanted: The cluster.
    """
    return [
        *(storage.PLACES if wanted.file_system is not None else ()),
        *(karpenter.PLACES if wanted.settings.karpenter and any(map(karpenter.launchable, wanted.groups)) else ()),
    ]


def overlay_files(wanted: KubernetesCluster, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the overlay as it is before its user changes it, by path.

    Args:
        wanted: The cluster.
        known: Values of the deployed cluster.
    """
    names = places(wanted)
    spaces = [team.namespace for team in wanted.teams] if wanted.file_system is None else []
    files = {"overlay/kustomization.yaml": _kustomization(names, spaces)}
    if spaces:
        files[f"overlay/{PROGRAM}"] = (
            resources.files(__package__).joinpath("example_training.py").read_text(encoding="utf-8")
        )
    if names:
        files["overlay/deployed.env"] = deployed_env(names, known)
    return files


def deployed_env(names: Sequence[str], known: Mapping[str, str]) -> str:
    """Return the file with the values of the deployed cluster, and how to find those that are not known.

    Args:
        names: The values.
        known: Those that are known.
    """
    lines = [
        "# Values of the deployed cluster; training-cluster manifests --from-deployed writes those that it finds."
    ]
    for name in names:
        placeholder = f"fill-in-{name.lower().replace('_', '-')}"
        lines += [f"# {_PLACES[name]}", f"{name}={known.get(name, placeholder)}"]
    return "\n".join(lines) + "\n"


def _kustomization(names: Sequence[str], spaces: Sequence[str]) -> str:
    content: dict[str, object] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../manifests"],
    }
    values = [_config_map("deployed-values", "default", envs=["deployed.env"])] if names else []
    # A ConfigMap holds 1 MiB: https://kubernetes.io/docs/concepts/configuration/configmap/
    programs = [_config_map(WORKSPACE, each, files=[PROGRAM]) for each in spaces]
    if values or programs:
        content["configMapGenerator"] = [*values, *programs]
    if names:
        content["replacements"] = [_replacement(name) for name in names]
    head = "# Yours: it is written once. Patches of what is generated in ../manifests go here, under `patches:`.\n"
    return head + yaml.safe_dump(content, sort_keys=False, width=118)


def _config_map(name: str, namespace: str, **content: Sequence[str]) -> Mapping[str, object]:
    return {"name": name, "namespace": namespace, **content, "options": {"disableNameSuffixHash": True}}


def _replacement(name: str) -> Mapping[str, object]:
    kind, field = _FIELDS[name]
    return {
        "source": {"kind": "ConfigMap", "name": "deployed-values", "fieldPath": f"data.{name}"},
        "targets": [{"select": {"kind": kind}, "fieldPaths": [field]}],
    }
