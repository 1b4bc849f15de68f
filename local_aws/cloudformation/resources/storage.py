"""S3 buckets and their policies."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    picked,
)
from local_aws.cloudformation.resources.regular import Regular
from local_aws.sessions import DIRECTORY_BUCKETS


class _Bucket(Regular):
    """A bucket whose name must be new, and lower-case."""

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("BucketName") or call.physical_name(63, lower=True)
        if name in [bucket["Name"] for bucket in call.client("s3").list_buckets()["Buckets"]]:
            raise HandlerError(f"{name} already exists", "AlreadyExists")
        return super().create(call, {**properties, "BucketName": name})


def _in_the_words_of_s3(call: Call, properties: Properties) -> Properties:
    """Return a bucket's properties as S3's actions take them."""
    said = dict(properties)
    if call.region != "us-east-1":
        said["_Location"] = {"LocationConstraint": call.region}
    if "AccessControl" in said:
        said["AccessControl"] = re.sub(r"(?<!^)(?=[A-Z])", "-", said["AccessControl"]).lower()
    if "BucketEncryption" in said:
        rules = [
            {
                "ApplyServerSideEncryptionByDefault": rule["ServerSideEncryptionByDefault"],
                **picked(rule, "BucketKeyEnabled"),
            }
            for rule in said["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        ]
        said["BucketEncryption"] = {"Rules": rules}
    if "LifecycleConfiguration" in said:
        rules = [_lifecycle_rule(rule) for rule in said["LifecycleConfiguration"]["Rules"]]
        said["LifecycleConfiguration"] = {"Rules": rules}
    if "LoggingConfiguration" in said:
        logging = said["LoggingConfiguration"]
        target = {
            "TargetBucket": logging.get("DestinationBucketName", said.get("BucketName", call.physical_id)),
            "TargetPrefix": logging.get("LogFilePrefix", ""),
        }
        said["LoggingConfiguration"] = {"LoggingEnabled": target}
    if "ReplicationConfiguration" in said:
        said["ReplicationConfiguration"] = _replication(call, said["ReplicationConfiguration"])
    if "Tags" in said:
        said["Tags"] = {"TagSet": said["Tags"]}
    return said


_LIFECYCLE = ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration", "Status")
_EXPIRATION = {"ExpirationInDays": "Days", "ExpiredObjectDeleteMarker": "ExpiredObjectDeleteMarker"}
_MAX_VERSIONS = 100
_NO_CRITERION = "SseKmsEncryptedObjects must be specified if EncryptionConfiguration is present"
_MALFORMED = "The XML you provided was not well-formed or did not validate against our published schema"


def _lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lifecycle rule of a template in the words of S3's action, and refuse what S3 refuses of it.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html
    """
    others = sorted(set(rule) - {"Id", *_LIFECYCLE, *_EXPIRATION})
    if others:
        raise HandlerError(f"the local AWS does not support {', '.join(others)} of a lifecycle rule")
    named = {"ID": rule["Id"]} if "Id" in rule else {}
    expiration = {_EXPIRATION[name]: value for name, value in rule.items() if name in _EXPIRATION}
    versions = rule.get("NoncurrentVersionExpiration", {}).get("NewerNoncurrentVersions", 1)
    if len(expiration) > 1 or not 1 <= int(versions) <= _MAX_VERSIONS:
        raise HandlerError(_MALFORMED)
    more = {"Expiration": expiration} if expiration else {}
    return {**named, **picked(rule, *_LIFECYCLE), **more, "Filter": {"Prefix": ""}}


def _replication(call: Call, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a replication configuration in the words of S3's action, and refuse what S3 refuses of it.

    Sources: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ReplicationRule.html,
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_Destination.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-requirements.html
    """
    rules = []
    for rule in said["Rules"]:
        if "Filter" in rule and not {"DeleteMarkerReplication", "Priority"} <= rule.keys():
            raise HandlerError(_MALFORMED)
        criteria = rule.get("SourceSelectionCriteria", {})
        if "EncryptionConfiguration" in rule["Destination"] and "SseKmsEncryptedObjects" not in criteria:
            raise HandlerError(_NO_CRITERION, "InvalidRequest")
        destination = rule["Destination"]["Bucket"].rpartition(":")[2]
        try:
            versioning = call.client("s3").get_bucket_versioning(Bucket=destination)
        except ClientError:
            raise HandlerError("Destination bucket must exist.") from None
        if versioning.get("Status") != "Enabled":
            raise HandlerError("Destination bucket must have versioning enabled.")
        named = {"ID": rule["Id"]} if "Id" in rule else {}
        rules.append({**named, **{key: value for key, value in rule.items() if key != "Id"}})
    return {"Role": said["Role"], "Rules": rules}


_WITHOUT = {
    "LifecycleConfiguration": "delete_bucket_lifecycle",
    "ReplicationConfiguration": "delete_bucket_replication",
    "Tags": "delete_bucket_tagging",
}
_OF_DIRECTORY_BUCKETS = {"BucketEncryption", "LifecycleConfiguration"}


def _settings() -> Iterator[Action]:
    """Yield the action for each property of a bucket."""
    for name, operation, parameter in (
        ("AccessControl", "put_bucket_acl", "ACL"),
        ("BucketEncryption", "put_bucket_encryption", "ServerSideEncryptionConfiguration"),
        ("LifecycleConfiguration", "put_bucket_lifecycle_configuration", "LifecycleConfiguration"),
        ("LoggingConfiguration", "put_bucket_logging", "BucketLoggingStatus"),
        ("PublicAccessBlockConfiguration", "put_public_access_block", "PublicAccessBlockConfiguration"),
        ("Tags", "put_bucket_tagging", "Tagging"),
        ("VersioningConfiguration", "put_bucket_versioning", "VersioningConfiguration"),
        # S3 replicates a versioned bucket only.
        ("ReplicationConfiguration", "put_bucket_replication", "ReplicationConfiguration"),
    ):
        yield Action(operation, f"{name}:{parameter}", id="Bucket", without=_WITHOUT.get(name, ""))


class _DirectoryBucket(Regular):
    """A directory bucket, which CloudFormation names for its zone."""

    def create(self, call: Call, properties: Properties) -> Attributes:
        suffix = f"--{properties['LocationName']}--x-s3"
        name = properties.get("BucketName") or call.physical_name(63 - len(suffix), lower=True) + suffix
        return super().create(call, {**properties, "BucketName": name})


def _in_the_words_of_s3_express(_: Call, properties: Properties) -> Properties:
    """Return a directory bucket's properties as S3's actions take them."""
    said = dict(properties)
    said["_Configuration"] = {
        "Location": {"Type": "AvailabilityZone", "Name": said["LocationName"]},
        "Bucket": {"Type": "Directory", "DataRedundancy": said["DataRedundancy"]},
    }
    if "BucketEncryption" in said:
        rules = [
            {"ApplyServerSideEncryptionByDefault": rule["ServerSideEncryptionByDefault"]}
            for rule in said["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        ]
        said["BucketEncryption"] = {"Rules": rules}
    if "LifecycleConfiguration" in said:
        rules = [_lifecycle_rule(rule) for rule in said["LifecycleConfiguration"]["Rules"]]
        said["LifecycleConfiguration"] = {"Rules": rules}
    return said


HANDLERS: tuple[Handler, ...] = (
    _DirectoryBucket(
        type="AWS::S3Express::DirectoryBucket",
        service=DIRECTORY_BUCKETS,
        create_with=Action("create_bucket", "_Configuration:CreateBucketConfiguration"),
        settings=tuple(each for each in _settings() if each.properties <= _OF_DIRECTORY_BUCKETS),
        delete_with=Action("delete_bucket", id="Bucket"),
        named="BucketName:Bucket",
        attributes={"Arn": "arn:{partition}:s3express:{region}:{account}:bucket/{id}"},
        can_tag=False,
        also_supported=frozenset({"DataRedundancy", "LocationName", "Tags"}),
        prepare=_in_the_words_of_s3_express,
    ),
    _Bucket(
        type="AWS::S3::Bucket",
        service="s3",
        create_with=Action("create_bucket", "_Location:CreateBucketConfiguration"),
        settings=tuple(_settings()),
        delete_with=Action("delete_bucket", id="Bucket"),
        named="BucketName:Bucket",
        attributes={
            "Arn": "arn:{partition}:s3:::{id}",
            "DomainName": "{id}.s3.amazonaws.com",
            "RegionalDomainName": "{id}.s3.{region}.amazonaws.com",
        },
        can_tag=False,
        prepare=_in_the_words_of_s3,
    ),
    *(
        Regular(
            type=f"AWS::{name}::BucketPolicy",
            service=service,
            create_with=Action("put_bucket_policy", "Bucket PolicyDocument:Policy"),
            updates=(Action("put_bucket_policy", "Bucket PolicyDocument:Policy"),),
            delete_with=Action("delete_bucket_policy", "Bucket"),
            id="{Bucket}",
            can_tag=False,
        )
        for name, service in (("S3", "s3"), ("S3Express", DIRECTORY_BUCKETS))
    ),
)
