"""The actions of FSx on data repository associations, and how a test steers them.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
"""

import json
import time
from collections.abc import Iterator, Mapping
from secrets import token_hex
from typing import Any

from moto.fsx.models import fsx_backends
from moto.s3.models import s3_backends

from local_aws.refusal import Refusal
from local_aws.services import keys, lustre_links, lustre_rules
from local_aws.services.lustre import LustreFileSystem, body_of, found_file_system
from local_aws.services.lustre_files import LinkedFiles


def _check_policies(request: Mapping[str, Any], bucket: Any, region: str) -> None:
    imported = ((request.get("S3") or {}).get("AutoImportPolicy") or {}).get("Events")
    if imported and bucket.region_name != region:
        raise Refusal(
            "BadRequest",
            f"Automatic import is not supported for the S3 bucket {bucket.name}: it is in {bucket.region_name}, the "
            f"file system in {region}.",
        )


def create_data_repository_association(response: Any) -> str:
    """Answer CreateDataRepositoryAssociation."""
    request = body_of(response)
    file_system = found_file_system(response, request["FileSystemId"])
    others = [link.described for link in lustre_links.links_of(file_system)]
    lustre_rules.check_association(request, file_system.configuration, others)
    name, _, prefix = request["DataRepositoryPath"].removeprefix("s3://").partition("/")
    bucket = s3_backends[file_system.account][file_system.partition].buckets.get(name)
    if bucket is None:
        raise Refusal("BadRequest", f"The S3 bucket {name} does not exist or cannot be read by Amazon FSx.")
    _check_policies(request, bucket, response.region)
    role = (
        f"arn:{file_system.partition}:iam::{file_system.account}:role/aws-service-role/"
        f"s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_{file_system.file_system_id}"
    )
    if lustre_links.is_denied(bucket, role):
        raise Refusal("BadRequest", lustre_links.NO_ACCESS)
    keys.check_linked_bucket(file_system, role, bucket)
    association_id, directory = f"dra-0{token_hex(8)}", request["FileSystemPath"].strip("/")
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    described = {
        "AssociationId": association_id,
        "ResourceARN": file_system.arn("association", association_id),
        "FileSystemId": file_system.file_system_id,
        "Lifecycle": "CREATING",
        "FileSystemPath": request["FileSystemPath"],
        "DataRepositoryPath": request["DataRepositoryPath"],
        "BatchImportMetaDataOnCreate": request.get("BatchImportMetaDataOnCreate", False),
        "ImportedFileChunkSize": request.get("ImportedFileChunkSize", 1024),
        "S3": request.get("S3", {}),
        "CreationTime": time.time(),
    }
    link = lustre_links.Link(described, LinkedFiles(file_system.directory, directory, bucket, prefix), role)
    link.imports_first = described["BatchImportMetaDataOnCreate"]
    with lustre_links.LOCK:
        link.files.begin()
        lustre_links.notify(file_system, link)
        file_system.associations[association_id] = link
    if request.get("Tags"):
        response.fsx_backend.tagger.tag_resource(described["ResourceARN"], request["Tags"])
    return _answer(response, link)


def update_data_repository_association(response: Any) -> str:
    """Answer UpdateDataRepositoryAssociation; one that is misconfigured is tried again at once."""
    request = body_of(response)
    file_system, link = _found(response, request["AssociationId"])
    _check_policies(request, link.files.bucket, response.region)
    with lustre_links.LOCK:
        link.described |= {name: request[name] for name in ("ImportedFileChunkSize", "S3") if name in request}
        if link.described["Lifecycle"] != "FAILED":
            lustre_links.notify_no_more(link, lustre_links.links_of(file_system))
            lustre_links.notify(file_system, link)
            link.described["Lifecycle"] = "UPDATING"
    return _answer(response, link)


def describe_data_repository_associations(response: Any) -> str:
    """Answer DescribeDataRepositoryAssociations."""
    request = body_of(response)
    for file_system in _file_systems(response):
        lustre_links.settle(file_system)
    wanted = request.get("AssociationIds")
    links = [_found(response, one)[1] for one in wanted] if wanted else [link for _, link in _all(response)]
    for condition in request.get("Filters") or []:
        if condition["Name"] != "file-system-id":
            raise NotImplementedError(f"the filter {condition['Name']}")
        links = [link for link in links if link.described["FileSystemId"] in condition["Values"]]
    return json.dumps({"Associations": [_described(response, link) for link in links]})


def delete_data_repository_association(response: Any) -> str:
    """Answer DeleteDataRepositoryAssociation: the files stay, unless the request says otherwise."""
    request = body_of(response)
    file_system, link = _found(response, request["AssociationId"])
    delete_files = bool(request.get("DeleteDataInFileSystem"))
    with lustre_links.LOCK:
        lustre_links.settle(file_system)
        del file_system.associations[request["AssociationId"]]
        lustre_links.notify_no_more(link, lustre_links.links_of(file_system))
        link.files.forget(delete_files=delete_files)
    said = {"AssociationId": request["AssociationId"], "Lifecycle": "DELETING"}
    return json.dumps({**said, "DeleteDataInFileSystem": delete_files})


def _file_systems(response: Any) -> list[LustreFileSystem]:
    return list(response.fsx_backend.file_systems.values())


def _all(response: Any) -> Iterator[tuple[LustreFileSystem, lustre_links.Link]]:
    for file_system in _file_systems(response):
        for link in lustre_links.links_of(file_system):
            yield file_system, link


def _found(response: Any, association_id: str) -> tuple[LustreFileSystem, lustre_links.Link]:
    for file_system, link in _all(response):
        if link.described["AssociationId"] == association_id:
            return file_system, link
    raise Refusal(
        "DataRepositoryAssociationNotFound",
        f"Data repository association '{association_id}' does not exist.",
    )


def _described(response: Any, link: lustre_links.Link) -> dict[str, Any]:
    tags = response.fsx_backend.list_tags_for_resource(link.described["ResourceARN"])
    return {**link.described, "Tags": tags}


def _answer(response: Any, link: lustre_links.Link) -> str:
    return json.dumps({"Association": _described(response, link)})


def set_fate(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Order the lifecycle of the links of a directory of file systems, or take the order back."""
    path, lifecycle = str(request["file_system_path"]), request.get("lifecycle")
    if lifecycle is None:
        lustre_links.FATES.pop(path, None)
    else:
        lustre_links.FATES[path] = str(lifecycle), str(request.get("message") or "")
    return {}


def directory(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settle a file system, and tell the directory that it is."""
    file_system_id = str(request["file_system_id"])
    file_systems = fsx_backends[request["account"]][request["region"]].file_systems
    if file_system_id not in file_systems:
        raise ValueError(f"there is no file system {file_system_id}")
    lustre_links.settle(file_systems[file_system_id])
    return {"directory": str(file_systems[file_system_id].directory)}
