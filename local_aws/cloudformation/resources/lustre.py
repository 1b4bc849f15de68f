"""FSx for Lustre file systems and their links to S3."""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Handler
from local_aws.cloudformation.resources.regular import Regular

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
    Regular(
        type="AWS::FSx::DataRepositoryAssociation",
        service="fsx",
        create_with=Action(
            "create_data_repository_association",
            "BatchImportMetaDataOnCreate DataRepositoryPath FileSystemId FileSystemPath ImportedFileChunkSize S3",
        ),
        delete_with=Action("delete_data_repository_association", id="AssociationId"),
        made="Association",
        id="AssociationId",
        tag_by="ResourceARN",
    ),
)
