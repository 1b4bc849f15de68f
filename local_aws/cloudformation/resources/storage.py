"""S3 buckets and their policies."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    if "Tags" in said:
        said["Tags"] = {"TagSet": said["Tags"]}
    return said


_LIFECYCLE = ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration", "Status")


def _lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lifecycle rule of a template in the words of S3's action."""
    others = sorted(set(rule) - {"Id", *_LIFECYCLE})
    if others:
        raise HandlerError(f"the local AWS does not carry out {', '.join(others)} of a lifecycle rule")
    named = {"ID": rule["Id"]} if "Id" in rule else {}
    return {**named, **picked(rule, *_LIFECYCLE), "Filter": {"Prefix": ""}}


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
    ):
        without = {"LifecycleConfiguration": "delete_bucket_lifecycle", "Tags": "delete_bucket_tagging"}.get(name, "")
        yield Action(operation, f"{name}:{parameter}", id="Bucket", without=without)


HANDLERS: tuple[Handler, ...] = (
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
    Regular(
        type="AWS::S3::BucketPolicy",
        service="s3",
        create_with=Action("put_bucket_policy", "Bucket PolicyDocument:Policy"),
        updates=(Action("put_bucket_policy", "Bucket PolicyDocument:Policy"),),
        delete_with=Action("delete_bucket_policy", "Bucket"),
        id="{Bucket}",
        can_tag=False,
    ),
)
