"""The cluster's FSx for Lustre file system in the namespaces of its teams."""

from collections.abc import Sequence

from cdk_training_cluster_stacks.manifests.objects import Object, an_object
from cdk_training_cluster_stacks.manifests.wanted import FileSystem, Wanted

CLAIM = "fsx"
"""The name of the claim in each team's namespace."""

DRIVER = "fsx.csi.aws.com"

PLACES = ("FILE_SYSTEM_ID", "FILE_SYSTEM_DNS_NAME", "FILE_SYSTEM_MOUNT_NAME")
"""What a volume needs that exists after the deployment of the foundation only; `overlay/deployed.env` has it."""


def volumes(wanted: Wanted, file_system: FileSystem) -> Sequence[Object]:
    """Return a volume and a claim to it for each team: a volume has one claim.

    Args:
        wanted: The cluster.
        file_system: The file system.

    Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/examples/kubernetes/static_provisioning
    """
    made = []
    for team in wanted.teams:
        name = f"{CLAIM}-{team.name}"
        size = f"{file_system.capacity_gib}Gi"
        made += [
            an_object(
                "PersistentVolume",
                name,
                labels={"cdk-training-cluster/file-system": "true"},
                spec={
                    "capacity": {"storage": size},
                    "volumeMode": "Filesystem",
                    "accessModes": ["ReadWriteMany"],
                    "mountOptions": ["flock", "noatime"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "claimRef": {"namespace": team.name, "name": CLAIM},
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
                namespace=team.name,
                spec={
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "",
                    "volumeName": name,
                    "resources": {"requests": {"storage": size}},
                },
            ),
        ]
    return made
