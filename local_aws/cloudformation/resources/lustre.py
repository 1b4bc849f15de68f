"""FSx for Lustre file systems and their links to S3."""

from typing import Any

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    picked,
    tag_changes,
)


def _retag(call: Call, arn: str, properties: Properties, before: Properties) -> None:
    put, removed = tag_changes(properties, before)
    if put:
        call.client("fsx").tag_resource(ResourceARN=arn, Tags=as_tags(put))
    if removed:
        call.client("fsx").untag_resource(ResourceARN=arn, TagKeys=removed)


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
        fsx = call.client("fsx")
        request: dict[str, Any] = {"LustreConfiguration": picked(new, *inner)} if inner else {}
        if "StorageCapacity" in names:
            request["StorageCapacity"] = properties["StorageCapacity"]
        if request:
            fsx.update_file_system(FileSystemId=call.physical_id, **request)
        if "Tags" in names:
            answer = fsx.describe_file_systems(FileSystemIds=[call.physical_id])
            _retag(call, answer["FileSystems"][0]["ResourceARN"], properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("fsx").delete_file_system(FileSystemId=call.physical_id)


class DataRepositoryAssociation(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-datarepositoryassociation.html."""

    type = "AWS::FSx::DataRepositoryAssociation"
    carries_out = frozenset(
        {
            "BatchImportMetaDataOnCreate",
            "DataRepositoryPath",
            "FileSystemId",
            "FileSystemPath",
            "ImportedFileChunkSize",
            "S3",
            "Tags",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        answer = call.client("fsx").create_data_repository_association(**properties)["Association"]
        call.made(answer["AssociationId"])
        return {"AssociationId": answer["AssociationId"], "ResourceARN": answer["ResourceARN"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "ImportedFileChunkSize", "S3", "Tags")
        answer = call.client("fsx").update_data_repository_association(
            AssociationId=call.physical_id, **picked(properties, "ImportedFileChunkSize", "S3")
        )["Association"]
        _retag(call, answer["ResourceARN"], properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("fsx").delete_data_repository_association(AssociationId=call.physical_id)


HANDLERS: tuple[Handler, ...] = (FileSystem(), DataRepositoryAssociation())
