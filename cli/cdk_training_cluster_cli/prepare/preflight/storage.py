"""Buckets, keys and file systems that the cluster file names, and the quotas of a file system that is made."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdk_training_cluster_cli.files.key_policy import key_policy_texts
from cdk_training_cluster_cli.prepare.preflight.checks import (
    Aws,
    Check,
    Verdict,
    failed,
    found,
    passed,
    tags_of,
    unknown,
)
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_cli.prepare.preflight.quotas import Demand, Quota, judge_quota
from cdk_training_cluster_file.model import ExistingFileSystem
from cluster_contract.tags import CLUSTER_TAG

_NOT_FOUND = ("404", "NoSuchBucket")


@dataclass(frozen=True, kw_only=True)
class BucketNeed:
    """What the cluster file wants of an existing bucket.

    Attributes:
        name: Its name.
        setting: The setting that names it.
        region: The region that it has to be in. None: any.
        versioned: Whether its versioning has to be enabled.
    """

    name: str
    setting: str
    region: str | None
    versioned: bool = False


def bucket_needs(needs: Needs) -> Iterator[BucketNeed]:
    """Yield the existing general purpose buckets of a cluster file.

    Args:
        needs: What the cluster needs.
    """
    cluster, region = needs.cluster, needs.region
    for dataset in cluster.datasets:
        if dataset.bucket is not None:
            # FSx imports changes from a bucket of its own region only.
            wanted = region if dataset.import_events or dataset.export_events else None
            setting = f"datasets: {dataset.directory}"
            yield BucketNeed(name=dataset.bucket, setting=setting, region=wanted)
    if cluster.access_logs is not None:
        yield BucketNeed(name=cluster.access_logs.bucket, setting="access_logs", region=region)
    exported = None if cluster.checkpoints is None else cluster.checkpoints.directory_settings
    if exported is not None and exported.bucket is not None:
        yield BucketNeed(name=exported.bucket, setting="checkpoints.exported", region=region)
    if exported is not None and exported.replicate_to is not None:
        replica = exported.replicate_to
        setting = "checkpoints.exported.replicate_to"
        yield BucketNeed(name=replica.bucket, setting=setting, region=replica.region, versioned=True)


def judge_bucket(need: BucketNeed, answer: tuple[str, bool] | None) -> Verdict:
    """Say whether a bucket can be used.

    Args:
        need: What the cluster file wants of it.
        answer: Its region, and whether its versioning is enabled. None: there is no such bucket.
    """
    if answer is None:
        mend = f"aws s3 mb s3://{need.name}" + ("" if need.region is None else f" --region {need.region}")
        return failed(f"there is no bucket {need.name}, which {need.setting} names", mend)
    region, versioned = answer
    if need.region not in (None, region):
        return failed(
            f"{need.name} is in {region}; {need.setting} needs a bucket in {need.region}",
            f"name a bucket in {need.region}",
        )
    if need.versioned and not versioned:
        mend = f"aws s3api put-bucket-versioning --bucket {need.name} --versioning-configuration Status=Enabled"
        return failed(f"versioning of {need.name} is not enabled, and replication needs it", mend)
    return passed(f"{need.name} is in {region}{' and has versioning' if need.versioned else ''}")


def judge_directory_bucket(name: str, region: str, names: Sequence[str]) -> Verdict:
    """Say whether a directory bucket exists.

    Args:
        name: Its name.
        region: The region.
        names: The account's directory buckets in the region.
    """
    if name in names:
        return passed(f"{name} is a directory bucket of {region}")
    return failed(
        f"the account has no directory bucket {name} in {region}",
        "correct checkpoints.express.bucket, or leave it out: the foundation makes one",
    )


def judge_key(arn: str, metadata: Mapping[str, Any] | None) -> Verdict:
    """Say whether a key can encrypt what the cluster stores.

    https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html

    Args:
        arn: Its ARN.
        metadata: What KMS says of it. None: there is none.
    """
    if metadata is None:
        return failed(f"there is no key {arn}", "correct encryption_key, or check AWS_PROFILE")
    state, key_id = metadata["KeyState"], metadata["KeyId"]
    if state == "PendingDeletion":
        mend = f"aws kms cancel-key-deletion --key-id {arn}; aws kms enable-key --key-id {arn}"
        return failed(f"the key {key_id} is to be deleted", mend)
    if state != "Enabled":
        return failed(f"the key {key_id} is {state}", f"aws kms enable-key --key-id {arn}")
    if (metadata.get("KeyUsage"), metadata.get("KeySpec")) != ("ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"):
        spec = f"{metadata.get('KeySpec')} for {metadata.get('KeyUsage')}"
        return failed(f"the key {key_id} is {spec}: only symmetric encryption keys are taken", "name another key")
    return passed(f"the key {key_id} is enabled")


def judge_key_policy(file: str, wanted: Sequence[Mapping[str, Any]], policy: str | None) -> Verdict:
    """Say whether a key's policy has the statements that the cluster's services need.

    Args:
        file: The path of the cluster file.
        wanted: The statements that `training-cluster key-policy` prints.
        policy: The key's policy. None: there is no such key.
    """
    if policy is None:
        return unknown("there is no such key, and no policy")
    have = [{**each, "Sid": None} for each in json.loads(policy)["Statement"]]
    missing = [str(each.get("Sid")) for each in wanted if {**each, "Sid": None} not in have]
    if not missing:
        return passed(f"the key's policy has the {len(wanted)} statements that training-cluster key-policy prints")
    # Other statements may allow the same: only AWS's services could prove it.
    return unknown(
        f"the key's policy lacks {' and '.join(missing)} as training-cluster key-policy prints them",
        f"training-cluster key-policy {file}",
    )


def judge_file_system(existing: ExistingFileSystem, described: Mapping[str, Any] | None) -> Verdict:
    """Say whether an existing file system can be mounted.

    Args:
        existing: What the cluster file says of it.
        described: What FSx says of it. None: there is none.
    """
    system = existing.file_system_id
    if described is None:
        return failed(f"there is no file system {system}", "correct file_system.existing, or check AWS_PROFILE")
    kind, state = described["FileSystemType"], described["Lifecycle"]
    if kind != "LUSTRE":
        return failed(f"{system} is of type {kind}", "name an FSx for Lustre file system")
    mount = described["LustreConfiguration"]["MountName"]
    if mount != existing.mount_name:
        return failed(f"{system} has the mount name {mount}, not {existing.mount_name}", f"write mount_name: {mount}")
    if state == "UPDATING":
        return passed(f"{system} is UPDATING, and can be mounted")
    if state != "AVAILABLE":
        return failed(f"{system} is {state}", f"aws fsx describe-file-systems --file-system-ids {system}")
    return passed(f"{system} is AVAILABLE in {described['VpcId']}")


def _fsx(code: str, name: str, unit: str) -> Quota:
    return Quota(service="fsx", code=code, name=f"Lustre {name}", unit=unit)


# https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html
_KINDS = {
    "PERSISTENT_2": ("Persistent_2", "L-FD6F2F22", "L-8F1B9C74"),
    "PERSISTENT_1": ("Persistent_1", "L-9AFA1F09", "L-C8640C82"),
    "SCRATCH_2": ("Scratch", "L-C48231E5", "L-AD2FC696"),
    "SCRATCH_1": ("Scratch", "L-C48231E5", "L-AD2FC696"),
}
_HDD_SIZE = _fsx("L-736F3D6F", "Persistent HDD storage capacity (per file system)", "GiB")
_TIERED = _fsx("L-0CD18A5D", "Persistent Intelligent-Tiering throughput capacity", "MB/s")


def file_system_quotas(needs: Needs) -> Iterator[tuple[Quota, float, str]]:
    """Yield the quotas of a file system that is made, what it takes of each, and what is counted of the others.

    Args:
        needs: What the cluster needs.
    """
    made = needs.cluster.file_system
    if made is None or made.existing is not None:
        return
    name, of_systems, of_storage = _KINDS[made.deployment_type]
    yield _fsx(of_systems, f"{name} file systems", "of them"), 1, ""
    settings = made.to_settings()
    if made.storage_type == "HDD":
        yield _HDD_SIZE, float(settings.capacity_gib or 0), "none"
    elif settings.capacity_gib is not None:
        yield _fsx(of_storage, f"{name} storage capacity", "GiB"), float(settings.capacity_gib), "StorageCapacity"
    else:
        yield _TIERED, float(settings.total_mbps or 0), "ThroughputCapacity"


def in_use(kind: str, counted: str, cluster: str, systems: Sequence[Mapping[str, Any]]) -> float:
    """Return what other file systems take of a quota.

    Args:
        kind: The deployment type.
        counted: What is added up; empty: file systems. `none`: nothing, since the quota is one of each file system.
        cluster: The cluster, whose own file system does not count.
        systems: The account's file systems, as FSx describes them.
    """
    total = 0.0
    for each in systems:
        lustre = each.get("LustreConfiguration") or {}
        same = _KINDS.get(lustre.get("DeploymentType", ""), ("",))[0] == _KINDS[kind][0]
        if not same or tags_of(each).get(CLUSTER_TAG) == cluster or counted == "none":
            continue
        if not counted:
            total += 1
        elif counted == "ThroughputCapacity":
            total += lustre.get(counted) or 0
        elif each.get("StorageType", "SSD") == "SSD":
            total += each.get(counted) or 0
    return total


def storage_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of buckets, keys and file systems.

    Args:
        needs: What the cluster needs.
    """
    cluster, files = needs.cluster, needs.cluster.file_system
    for need in dict.fromkeys(bucket_needs(needs)):
        yield Check(name=f"bucket {need.name}", ask=partial(_bucket, need), judge=partial(judge_bucket, need))
    express = None if cluster.checkpoints is None else cluster.checkpoints.express
    if express is not None and express.bucket is not None:
        yield Check(
            name=f"bucket {express.bucket}",
            ask=_directory_buckets,
            judge=partial(judge_directory_bucket, express.bucket, needs.region),
        )
    for arn in cluster.encryption_keys:
        yield Check(name=f"key {arn.rpartition('/')[2]}", ask=partial(_key, arn), judge=partial(judge_key, arn))
    if cluster.encryption_key is not None:
        wanted = json.loads(key_policy_texts(cluster).statements)
        yield Check(
            name="policy of encryption_key",
            ask=partial(_key_policy, cluster.encryption_key),
            judge=partial(judge_key_policy, needs.file, wanted),
        )
    if files is not None and files.existing is not None:
        yield Check(
            name=f"file system {files.existing.file_system_id}",
            ask=partial(_file_system, files.existing.file_system_id),
            judge=partial(judge_file_system, files.existing),
        )
    for quota, takes, counted in file_system_quotas(needs):
        kind = "" if files is None else files.deployment_type
        yield Check(
            name=f"quota {quota.code}, {quota.name}",
            ask=partial(_used, quota, kind, counted, cluster.name),
            judge=partial(judge_quota, quota, Demand(least=takes, most=takes), needs.region),
        )


def _bucket(need: BucketNeed, aws: Aws) -> tuple[str, bool] | None:
    # boto3 asks again in the bucket's own region where the first one redirects:
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
    s3 = aws.client("s3", need.region)
    head = found(partial(s3.head_bucket, Bucket=need.name), *_NOT_FOUND)
    if head is None:
        return None
    headers = head["ResponseMetadata"]["HTTPHeaders"]
    region = head.get("BucketRegion") or headers.get("x-amz-bucket-region") or need.region or aws.region
    versioned = need.versioned and s3.get_bucket_versioning(Bucket=need.name).get("Status") == "Enabled"
    return str(region), versioned


def _directory_buckets(aws: Aws) -> list[str]:
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListDirectoryBuckets.html
    pages = aws.client("s3").get_paginator("list_directory_buckets").paginate()
    return [str(each["Name"]) for each in pages.search("Buckets[]")]


def _key(arn: str, aws: Aws) -> Mapping[str, Any] | None:
    said = found(partial(aws.client("kms").describe_key, KeyId=arn), "NotFoundException")
    return None if said is None else said["KeyMetadata"]


def _key_policy(arn: str, aws: Aws) -> str | None:
    # https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html
    said = found(partial(aws.client("kms").get_key_policy, KeyId=arn, PolicyName="default"), "NotFoundException")
    return None if said is None else str(said["Policy"])


def _file_system(file_system_id: str, aws: Aws) -> Mapping[str, Any] | None:
    said = found(
        partial(aws.client("fsx").describe_file_systems, FileSystemIds=[file_system_id]), "FileSystemNotFound"
    )
    return None if said is None else said["FileSystems"][0]


def _used(quota: Quota, kind: str, counted: str, cluster: str, aws: Aws) -> tuple[float | None, float]:
    systems = aws.client("fsx").get_paginator("describe_file_systems").paginate().search("FileSystems[]")
    return quota.ask(aws), in_use(kind, counted, cluster, list(systems))
