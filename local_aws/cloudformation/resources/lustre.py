"""FSx for Lustre file systems and their links to S3."""

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, changed, picked
from local_aws.cloudformation.resources.regular import Regular
from local_aws.cloudformation.resources.tags import retag


class _Link(Regular):
    """A link, which CloudFormation waits for; its contents it does not."""

    def create(self, call: Call, properties: Properties) -> Attributes:
        attributes = super().create(call, properties)
        _wait(call)
        return attributes

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        attributes = super().update(call, properties, before)
        _wait(call)
        return attributes


def _wait(call: Call) -> None:
    (link,) = call.client("fsx").describe_data_repository_associations(AssociationIds=[call.physical_id])[
        "Associations"
    ]
    if link["Lifecycle"] != "AVAILABLE":
        message = link.get("FailureDetails", {}).get("Message", "")
        raise HandlerError(f"{call.physical_id} is {link['Lifecycle']}. {message}".strip(), "NotStabilized")


class _FileSystem(Regular):
    """A file system, of which a property that UpdateFileSystem does not take is ignored when it changes.

    Those are EfaEnabled and DriveCacheType, which "No interruption" stands beside:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-fsx-filesystem-lustreconfiguration.html
    """

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "StorageCapacity", "LustreConfiguration", "Tags")
        client = call.client("fsx")
        taken = client.meta.service_model.shape_for("UpdateFileSystemLustreConfiguration").members
        new, old = (each.get("LustreConfiguration") or {} for each in (properties, before))
        lustre = {name: new[name] for name in changed(new, old) if name in taken and name in new}
        request = picked(properties, "StorageCapacity") if "StorageCapacity" in names else {}
        if lustre:
            request["LustreConfiguration"] = lustre
        if request:
            client.update_file_system(FileSystemId=call.physical_id, **request)
        retag(call, "fsx", properties, before, call.attributes["ResourceARN"])
        return {}


HANDLERS: tuple[Handler, ...] = (
    _FileSystem(
        type="AWS::FSx::FileSystem",
        service="fsx",
        create_with=Action(
            "create_file_system",
            "FileSystemType FileSystemTypeVersion KmsKeyId LustreConfiguration SecurityGroupIds StorageCapacity "
            "StorageType SubnetIds",
        ),
        delete_with=Action("delete_file_system", id="FileSystemId"),
        made="FileSystem",
        id="FileSystemId",
        attributes={"Id": "{id}", "LustreMountName": "LustreConfiguration.MountName"},
        tag_by="ResourceARN",
    ),
    _Link(
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
