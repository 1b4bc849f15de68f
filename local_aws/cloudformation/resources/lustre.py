"""FSx for Lustre file systems and their links to S3."""

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Regular


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


HANDLERS: tuple[Handler, ...] = (
    Regular(
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
