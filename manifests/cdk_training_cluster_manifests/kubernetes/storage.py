"""The cluster's FSx for Lustre file system in the namespaces of its teams."""

from collections.abc import Sequence

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object

CLAIM = "fsx"
"""The name of the claim in each team's namespace."""

DRIVER = "fsx.csi.aws.com"

# A claim has to name a size, which limits nothing on Lustre. It is not the file system's: that can grow, and
# Kubernetes refuses another size in a claim that exists.
# https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#persistentvolumeclaimresize
_SIZE = "1200Gi"

PLACES = ("FILE_SYSTEM_ID", "FILE_SYSTEM_DNS_NAME", "FILE_SYSTEM_MOUNT_NAME")
"""What a volume needs that exists after the deployment of the foundation only; `overlay/deployed.env` has it."""


def volumes(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return a volume and a claim to it for each team: a volume has one claim.

    Args:
        wanted: The cluster.

    Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/examples/kubernetes/static_provisioning
    """
    made = []
    for team in wanted.teams:
        name = f"{CLAIM}-{team.name}"
        made += [
            an_object(
                "PersistentVolume",
                name,
                labels={"cdk-training-cluster/file-system": "true"},
                spec={
                    "capacity": {"storage": _SIZE},
                    "volumeMode": "Filesystem",
                    "accessModes": ["ReadWriteMany"],
                    "mountOptions": ["flock", "noatime", "nosuid", "nodev"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "claimRef": {"namespace": team.namespace, "name": CLAIM},
                    "csi": {
                        "driver": DRIVER,
                        "volumeHandle": PLACES[0],
                        "volumeAttributes": {"dnsname": PLACES[1], "mountname": PLACES[2]},
                    },
                },
            ),
            an_object(
                "PersistentVolumeClaim",
                CLAIM,
                namespace=team.namespace,
                spec={
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "volumeName": name,
                    "resources": {"requests": {"storage": _SIZE}},
                },
            ),
        ]
    return made
