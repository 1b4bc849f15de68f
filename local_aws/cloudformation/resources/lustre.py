"""FSx for Lustre file systems and their links to S3."""

from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    picked,
)
from local_aws.cloudformation.resources.regular import Regular
from local_aws.cloudformation.resources.tags import retag


class FileSystem(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-filesystem.html."""

    type = "AWS::FSx::FileSystem"
    carries_out = frozenset(
        {
            "FileSystemType",
            "FileSystemTypeVersion",
            "KmsKeyId",
            "LustreConfiguration",
            "SecurityGroupIds",
            "StorageCapacity",
            "StorageType",
            "SubnetIds",
            "Tags",
        }
    )
    # What UpdateFileSystem takes; EfaEnabled is not among it, and CloudFormation would leave it as it was.
    _changeable = frozenset(
        {
            "AutomaticBackupRetentionDays",
            "DailyAutomaticBackupStartTime",
            "DataCompressionType",
            "DataReadCacheConfiguration",
            "LogConfiguration",
            "MetadataConfiguration",
            "PerUnitStorageThroughput",
            "RootSquashConfiguration",
            "ThroughputCapacity",
            "WeeklyMaintenanceStartTime",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        file_system = call.client("fsx").create_file_system(**properties)["FileSystem"]
        call.made(file_system["FileSystemId"])
        return {
            "Id": file_system["FileSystemId"],
            "DNSName": file_system["DNSName"],
            "LustreMountName": file_system["LustreConfiguration"]["MountName"],
            "ResourceARN": file_system["ResourceARN"],
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "LustreConfiguration", "StorageCapacity", "Tags")
        new, old = properties.get("LustreConfiguration", {}), before.get("LustreConfiguration", {})
        inner = {name for name in {*new, *old} if new.get(name) != old.get(name)}
        if inner - self._changeable:
            raise self.cannot_change(f"LustreConfiguration.{name}" for name in inner - self._changeable)
        request: dict[str, Any] = {"LustreConfiguration": picked(new, *inner)} if inner else {}
        if "StorageCapacity" in names:
            request["StorageCapacity"] = properties["StorageCapacity"]
        if request:
            call.client("fsx").update_file_system(FileSystemId=call.physical_id, **request)
        retag(call, "fsx", properties, before, call.attributes["ResourceARN"])
        return {}

    def delete(self, call: Call) -> None:
        call.client("fsx").delete_file_system(FileSystemId=call.physical_id)


HANDLERS: tuple[Handler, ...] = (
    FileSystem(),
    Regular(
        type="AWS::FSx::DataRepositoryAssociation",
        service="fsx",
        create_with=Action(
            "create_data_repository_association",
            "BatchImportMetaDataOnCreate DataRepositoryPath FileSystemId FileSystemPath ImportedFileChunkSize S3",
        ),
        updates=(Action("update_data_repository_association", "ImportedFileChunkSize S3", id="AssociationId"),),
        delete_with=Action("delete_data_repository_association", id="AssociationId"),
        made="Association",
        id="AssociationId",
        tag_by="ResourceARN",
    ),
)
