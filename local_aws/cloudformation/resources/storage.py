"""S3 buckets and their policies."""

import json
import re
from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    changed,
    picked,
)


class Bucket(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3-bucket.html."""

    type = "AWS::S3::Bucket"
    carries_out = frozenset(
        {
            "AccessControl",
            "BucketEncryption",
            "BucketName",
            "LifecycleConfiguration",
            "LoggingConfiguration",
            "NotificationConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
            "Tags",
            "VersioningConfiguration",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("BucketName") or call.physical_name(63, lower=True)
        s3 = call.client("s3")
        if name in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
            raise HandlerError(f"{name} already exists", "AlreadyExists")
        location = {} if call.region == "us-east-1" else {"LocationConstraint": call.region}
        s3.create_bucket(Bucket=name, **({"CreateBucketConfiguration": location} if location else {}))
        call.made(name)
        for prop in sorted(properties):
            self._set(call, prop, properties)
        return {
            "Arn": f"arn:{call.partition}:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{call.region}.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{call.region}.amazonaws.com",
            "WebsiteURL": f"http://{name}.s3-website-{call.region}.amazonaws.com",
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = changed(properties, before)
        dropped = {name for name in names if name not in properties}
        if dropped - {"Tags", "LifecycleConfiguration"}:
            raise self.cannot_change(dropped)
        if "Tags" in dropped:
            call.client("s3").delete_bucket_tagging(Bucket=call.physical_id)
        if "LifecycleConfiguration" in dropped:
            call.client("s3").delete_bucket_lifecycle(Bucket=call.physical_id)
        for prop in sorted(names - dropped):
            self._set(call, prop, properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("s3").delete_bucket(Bucket=call.physical_id)

    def _set(self, call: Call, prop: str, properties: Properties) -> None:
        """Carry one property out with the S3 action that is made for it."""
        s3, bucket, value = call.client("s3"), call.physical_id, properties[prop]
        if prop == "AccessControl":
            acl = re.sub(r"(?<!^)(?=[A-Z])", "-", value).lower()
            s3.put_bucket_acl(Bucket=bucket, ACL=acl)
        elif prop == "BucketEncryption":
            rules = [
                {
                    "ApplyServerSideEncryptionByDefault": rule["ServerSideEncryptionByDefault"],
                    **picked(rule, "BucketKeyEnabled"),
                }
                for rule in value["ServerSideEncryptionConfiguration"]
            ]
            s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
        elif prop == "LifecycleConfiguration":
            rules = [_lifecycle_rule(rule) for rule in value["Rules"]]
            s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
        elif prop == "LoggingConfiguration":
            target = {
                "TargetBucket": value.get("DestinationBucketName", bucket),
                "TargetPrefix": value.get("LogFilePrefix", ""),
            }
            s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={"LoggingEnabled": target})
        elif prop == "NotificationConfiguration":
            if set(value) != {"EventBridgeConfiguration"}:
                raise HandlerError("the local AWS carries out bucket notifications to EventBridge only")
            s3.put_bucket_notification_configuration(
                Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
            )
        elif prop == "OwnershipControls":
            s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=value)
        elif prop == "PublicAccessBlockConfiguration":
            s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=value)
        elif prop == "Tags":
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": value})
        elif prop == "VersioningConfiguration":
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": value["Status"]})


def _lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lifecycle rule of a template in the words of S3's action."""
    result: dict[str, Any] = {
        **picked(rule, "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"),
        "Status": rule["Status"],
        "Filter": {"Prefix": rule.get("Prefix", "")},
    }
    if "Id" in rule:
        result["ID"] = rule["Id"]
    expiration = {
        api: rule[name]
        for name, api in (
            ("ExpirationInDays", "Days"),
            ("ExpirationDate", "Date"),
            ("ExpiredObjectDeleteMarker", "ExpiredObjectDeleteMarker"),
        )
        if name in rule
    }
    if expiration:
        result["Expiration"] = expiration
    if "Transitions" in rule:
        result["Transitions"] = [
            {"Days": transition["TransitionInDays"], "StorageClass": transition["StorageClass"]}
            for transition in rule["Transitions"]
        ]
    known = {
        "AbortIncompleteMultipartUpload",
        "ExpirationDate",
        "ExpirationInDays",
        "ExpiredObjectDeleteMarker",
        "Id",
        "NoncurrentVersionExpiration",
        "Prefix",
        "Status",
        "Transitions",
    }
    if set(rule) - known:
        raise HandlerError(f"the local AWS does not carry out {sorted(set(rule) - known)} of a lifecycle rule")
    return result


class BucketPolicy(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3-bucketpolicy.html."""

    type = "AWS::S3::BucketPolicy"
    carries_out = frozenset({"Bucket", "PolicyDocument"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        self._put(call, properties)
        call.made(properties["Bucket"])
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "PolicyDocument")
        self._put(call, properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("s3").delete_bucket_policy(Bucket=call.properties["Bucket"])

    @staticmethod
    def _put(call: Call, properties: Properties) -> None:
        document = json.dumps(properties["PolicyDocument"])
        call.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=document)


HANDLERS: tuple[Handler, ...] = (Bucket(), BucketPolicy())
