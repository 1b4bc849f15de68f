"""Data repository associations: links of a directory of a Lustre file system to a prefix of an S3 bucket.

A link goes on with each describe call: the first finds it AVAILABLE, and each brings what has changed in the
bucket to the files, and what has changed in the files to the bucket, as far as its policies say.
https://docs.aws.amazon.com/fsx/latest/LustreGuide/dra-lifecycles.html
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from moto.s3.models import Notification, NotificationConfiguration, s3_backends

from local_aws.policies import Call, as_list, is_allowed
from local_aws.services import keys
from local_aws.services.lustre import LustreFileSystem
from local_aws.services.lustre_files import LinkedFiles

_NOTIFICATION = "FSx"
_NOTIFIED = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:ListBucket")
# As it is quoted in https://github.com/aws-samples/amazon-eks-machine-learning-with-terraform-and-kubeflow/issues/91
NO_ACCESS = (
    "Amazon FSx is unable to validate access to the S3 bucket. Ensure the IAM role or user you are using has "
    "s3:Get*, s3:List* and s3:PutObject permissions to the S3 bucket prefix."
)


@dataclass
class Link:
    """One association.

    Attributes:
        described: What DescribeDataRepositoryAssociations says of it, but for its tags.
        files: Its files.
        role: The ARN of the role that FSx reads and writes the bucket with.
        imports_first: Whether a task shall import what is there, as soon as the link is available.
    """

    described: dict[str, Any]
    files: LinkedFiles
    role: str
    imports_first: bool = False

    def events(self, policy: str) -> list[str]:
        """Return the events of `AutoImportPolicy` or `AutoExportPolicy`."""
        events: list[str] = (self.described["S3"].get(policy) or {}).get("Events") or []
        return events

    @property
    def is_available(self) -> bool:
        """Whether it imports and exports."""
        return bool(self.described["Lifecycle"] == "AVAILABLE")


LOCK = RLock()
"""What changes files or links holds it: requests are answered in parallel."""

FATES: dict[str, tuple[str, str]] = {}
"""The lifecycles of links that a test has ordered, with their messages, by the directories of the file system."""


def links_of(file_system: LustreFileSystem) -> list[Link]:
    """Return a file system's links."""
    return list(file_system.associations.values())


def settle(file_system: LustreFileSystem) -> None:
    """Let each link of a file system be what FSx finds of it, and bring changes to the other side."""
    with LOCK:
        for link in links_of(file_system):
            _settle(file_system, link)


def _settle(file_system: LustreFileSystem, link: Link) -> None:
    described = link.described
    if described["Lifecycle"] == "FAILED":
        return
    trouble = FATES.get(described["FileSystemPath"]) or trouble_of(file_system, link)
    described["Lifecycle"], message = trouble or ("AVAILABLE", "")
    described.pop("FailureDetails", None)
    if message:
        described["FailureDetails"] = {"Message": message[:256]}
    if link.is_available:
        link.files.import_events(link.events("AutoImportPolicy"))
        s3 = s3_backends[file_system.account][file_system.partition]
        exported = link.events("AutoExportPolicy")
        if exported:
            link.files.export(s3, exported)


def trouble_of(file_system: LustreFileSystem, link: Link) -> tuple[str, str] | None:
    """Return the lifecycle that a link has if something keeps it from its work, and FSx's message."""
    bucket = link.files.bucket
    if s3_backends[file_system.account][file_system.partition].buckets.get(bucket.name) is not bucket:
        return "FAILED", f"The S3 bucket {bucket.name} does not exist."
    if not link.files.files.is_dir():
        return "FAILED", f"The file system path {link.described['FileSystemPath']} does not exist."
    if is_denied(bucket, link.role):
        return "MISCONFIGURED", NO_ACCESS
    key = keys.unusable_key(file_system, link.role, bucket)
    if key is not None:
        return "MISCONFIGURED", f"Amazon FSx is unable to access the KMS key {key} of the linked S3 bucket."
    if link.events("AutoImportPolicy") and not any(one.id == _NOTIFICATION for one in _notifications(bucket)):
        return (
            "MISCONFIGURED",
            f"Amazon FSx cannot automatically import updates: the {_NOTIFICATION} event notification configuration "
            f"of the S3 bucket {bucket.name} was deleted or changed, or overlaps with another one.",
        )
    return None


def is_denied(bucket: Any, role: str) -> bool:
    """Tell whether the bucket's policy denies FSx what its role allows it."""
    statements = as_list(json.loads(bucket.policy)["Statement"]) if bucket.policy else []
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Principal": "*"}
    context = {"aws:SecureTransport": "true", "aws:PrincipalArn": role}
    arns = {action: bucket.arn if action == "s3:ListBucket" else f"{bucket.arn}/object" for action in _ACTIONS}
    return not all(
        is_allowed([allowed, *statements], Call(action=action, resource=arn, context=context, principal=role))
        for action, arn in arns.items()
    )


def _notifications(bucket: Any) -> list[Any]:
    configuration = bucket.notification_configuration
    if configuration is None:
        return []
    return [*configuration.topic, *configuration.queue, *configuration.cloud_function]


def notify(file_system: LustreFileSystem, link: Link) -> None:
    """Put the event notification onto the bucket, unless others of the same events are there.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoimport-data-repo-dra.html
    """
    bucket, kinds = link.files.bucket, {event.rpartition(":")[0] for event in _NOTIFIED}
    others = [event for one in _notifications(bucket) for event in one.events]
    if not link.events("AutoImportPolicy") or any(event.rpartition(":")[0] in kinds for event in others):
        return
    if bucket.notification_configuration is None:
        bucket.notification_configuration = NotificationConfiguration()
    arn = f"arn:{file_system.partition}:sns:{file_system.region}:{file_system.account}:{_NOTIFICATION}"
    bucket.notification_configuration.topic.append(Notification(arn, _NOTIFIED, notification_id=_NOTIFICATION))


def notify_no_more(link: Link, others: Iterable[Link]) -> None:
    bucket = link.files.bucket
    if any(other.files.bucket is bucket and other.events("AutoImportPolicy") for other in others):
        return
    if bucket.notification_configuration is not None:
        topics = bucket.notification_configuration.topic
        topics[:] = [one for one in topics if one.id != _NOTIFICATION]
