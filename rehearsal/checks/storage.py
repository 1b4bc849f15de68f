"""The file system, and the data sets that it shows."""

from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.templates import of_type


def _file_systems(deployment: Deployment) -> Facts:
    return {
        one.id: {
            "lifecycle": "AVAILABLE",
            "type": one.properties["FileSystemType"],
            "deployment_type": one.properties["LustreConfiguration"]["DeploymentType"],
            "data_compression": one.properties["LustreConfiguration"]["DataCompressionType"],
            "storage_capacity_gib": one.properties["StorageCapacity"],
            "throughput_mbps_per_tib": one.properties["LustreConfiguration"]["PerUnitStorageThroughput"],
            "subnet_count": len(one.properties["SubnetIds"]),
        }
        for one in of_type(deployment.resources, "AWS::FSx::FileSystem")
    }


def _datasets(deployment: Deployment) -> Facts:
    return {
        link.properties["FileSystemPath"]: {
            "data_repository_path": link.properties["DataRepositoryPath"],
            "lifecycle": "AVAILABLE",
            # What training writes to may be empty yet.
            **({} if "AutoExportPolicy" in link.properties.get("S3", {}) else {"is_empty": False}),
        }
        for link in of_type(deployment.resources, "AWS::FSx::DataRepositoryAssociation")
    }


FILE_SYSTEM = Check(
    "file system",
    _file_systems,
    lambda deployment: {
        system["id"]: {**system, "subnet_count": len(system["subnet_ids"])}
        for system in [deployment.found["file_system"]]
        if system
    },
)
DATASETS = Check(
    "data set",
    _datasets,
    lambda deployment: {
        link["file_system_path"]: {**link, "is_empty": not link["objects"]} for link in deployment.found["datasets"]
    },
)
