"""`ExportedCheckpoints` and `ExpressCheckpoints`: what is kept, what is refused, and who may do what."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    ClusterNetwork,
    Dataset,
    ExportedCheckpoints,
    ExpressCheckpoints,
    NodeGroup,
    TrainingCluster,
)
from checkpoint_scene import exported_checkpoints, file_system
from synthesis import ZONE, new_stack, only, resources, warnings

_KEY = "arn:aws:kms:us-west-2:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"


def _replica(stack: Stack, key: str | None = None) -> s3.IBucket:
    return s3.Bucket.from_bucket_attributes(
        stack,
        "Replica",
        bucket_arn="arn:aws:s3:::replica",
        region="us-west-2",
        encryption_key=None if key is None else kms.Key.from_key_arn(stack, "ReplicaKey", key),
    )


def _express(stack: Stack, **settings: Any) -> ExpressCheckpoints:
    return ExpressCheckpoints(
        stack, "Express", network=ClusterNetwork(stack, "Net", availability_zone=ZONE), **settings
    )


def _imported(stack: Stack) -> ClusterNetwork:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=[ZONE])
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id="subnet-1", availability_zone=ZONE)
    return ClusterNetwork.from_subnet(stack, "Net", vpc=vpc, subnet=subnet)


def test_an_exported_directory_goes_to_a_kept_bucket_and_nothing_comes_back() -> None:
    stack = new_stack()
    store = exported_checkpoints(stack)
    bucket = only(stack, "AWS::S3::Bucket", {"VersioningConfiguration": {"Status": "Enabled"}})
    assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert bucket["Properties"]["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "deleted-files",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
            "ExpiredObjectDeleteMarker": True,
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        },
        {
            "Id": "older-versions",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NewerNoncurrentVersions": 3, "NoncurrentDays": 1},
        },
    ]
    link = {
        "FileSystemPath": "/checkpoints",
        "S3": {"AutoExportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}, "AutoImportPolicy": Match.absent()},
    }
    only(stack, "AWS::FSx::DataRepositoryAssociation", link)
    assert store.environment == {"CHECKPOINT_DIR": "/fsx/checkpoints"}


def test_only_who_asks_for_it_has_current_checkpoints_deleted() -> None:
    stack = new_stack()
    ExportedCheckpoints(stack, "C", file_system=file_system(stack), expire_after=Duration.days(90))
    _express(stack, expire_after=Duration.days(7))
    rule = {"Id": "expired", "Status": "Enabled"}
    for kind, days in (("AWS::S3::Bucket", 90), ("AWS::S3Express::DirectoryBucket", 7)):
        only(
            stack,
            kind,
            {"LifecycleConfiguration": {"Rules": Match.array_with([{**rule, "ExpirationInDays": days}])}},
        )


@pytest.mark.parametrize("own_key", [True, False])
def test_replication_copies_all_but_deletions_as_a_role_that_stays_with_the_bucket(*, own_key: bool) -> None:
    stack = new_stack()
    key = kms.Key(stack, "Key") if own_key else None
    replica = _replica(stack, _KEY)
    ExportedCheckpoints(stack, "C", file_system=file_system(stack), replicate_to=replica, encryption_key=key)
    rule = {
        "Id": "checkpoints",
        "Status": "Enabled",
        "Priority": 1,
        "Filter": {"Prefix": ""},
        "DeleteMarkerReplication": {"Status": "Disabled"},
        "SourceSelectionCriteria": {"SseKmsEncryptedObjects": {"Status": "Enabled"}},
        "Destination": {"Bucket": "arn:aws:s3:::replica", "EncryptionConfiguration": {"ReplicaKmsKeyID": _KEY}},
    }
    only(stack, "AWS::S3::Bucket", {"ReplicationConfiguration": {"Rules": [rule]}})
    (policy,) = [each for name, each in resources(stack, "AWS::IAM::Policy").items() if "Replication" in name]
    assert policy["DeletionPolicy"] == "RetainExceptOnCreate"
    said = policy["Properties"]["PolicyDocument"]["Statement"]
    assert [statement["Action"] for statement in said][2:] == [
        ["s3:ReplicateObject", "s3:ReplicateTags"],
        *["kms:Decrypt"] * own_key,
        "kms:Encrypt",
    ]
    trusted = {"Statement": [{"Principal": {"Service": "s3.amazonaws.com"}}]}
    role = only(stack, "AWS::IAM::Role", {"AssumeRolePolicyDocument": trusted, "RoleName": Match.absent()})
    assert role["DeletionPolicy"] == "RetainExceptOnCreate"


def test_an_express_bucket_is_in_the_nodes_zone_and_reached_through_its_own_endpoint() -> None:
    stack = new_stack()
    store = _express(stack, encryption_key=kms.Key.from_key_arn(stack, "Key", _KEY))
    store.grant_read_write(iam.Role(stack, "Job", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com")))
    bucket = only(stack, "AWS::S3Express::DirectoryBucket")
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert bucket["Properties"]["LocationName"]["Fn::GetAtt"][1] == "AvailabilityZoneId"
    assert "BucketName" not in bucket["Properties"]
    policy = only(stack, "AWS::S3Express::BucketPolicy")
    assert policy["DeletionPolicy"] == "RetainExceptOnCreate"
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"Service": "lifecycle.s3.amazonaws.com"},
        "Action": "s3express:CreateSession",
        "Condition": {"StringEquals": {"s3express:SessionMode": "ReadWrite"}},
        "Resource": {"Fn::GetAtt": [policy["Properties"]["Bucket"]["Ref"], "Arn"]},
    }
    service = {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3express"]]}
    endpoint = only(stack, "AWS::EC2::VPCEndpoint", {"ServiceName": service})
    assert len(endpoint["Properties"]["RouteTableIds"]) == 1
    assert list(store.environment) == ["CHECKPOINT_URL"]
    (policy,) = [each for name, each in resources(stack, "AWS::IAM::Policy").items() if name.startswith("Job")]
    said = [(each["Action"], each.get("Condition")) for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    assert said == [("s3express:CreateSession", None), (["kms:Decrypt", "kms:GenerateDataKey"], None)]
    assert warnings(stack) == []


@pytest.mark.parametrize(
    ("region", "settings", "warns"),
    [
        ("us-east-1", {"zone_id": "use1-az4"}, False),
        ("us-east-1", {"zone_id": "use1-az1"}, True),
        ("us-east-1", {"bucket_name": "runs--use1-az2--x-s3"}, True),
        ("eu-central-1", {}, True),
        (None, {"zone_id": "use1-az1"}, False),
    ],
)
def test_a_zone_that_aws_does_not_list_is_a_warning_since_the_list_grows(
    region: str | None, settings: dict[str, Any], *, warns: bool
) -> None:
    stack = new_stack(region=region)
    network = ClusterNetwork(stack, "Net", availability_zone=f"{region or 'us-east-1'}b")
    ExpressCheckpoints(stack, "Express", network=network, **settings)
    assert [text[:37] for text in warnings(stack) if "listed" in text] == [
        "AWS listed S3 Express One Zone in the" if region == "us-east-1" else "AWS listed S3 Express One Zone in no "
    ] * warns


def test_an_imported_subnet_needs_the_zones_id_and_an_endpoint_of_its_owner() -> None:
    with pytest.raises(ValueError, match=r"^zone_id is required for an imported subnet, .* beside us-east-1b$"):
        ExpressCheckpoints(stack := new_stack(), "Express", network=_imported(stack))
    stack = new_stack()
    ExpressCheckpoints(stack, "Express", network=_imported(stack), zone_id="use1-az4")
    assert resources(stack, "AWS::EC2::VPCEndpoint") == {}
    assert "make a gateway endpoint for com.amazonaws.us-east-1.s3express" in str(warnings(stack))


_REFUSED: list[tuple[Callable[[Stack], object], str]] = [
    (
        lambda stack: _express(stack, zone_id="us-east-1b"),
        "zone_id must be the id of a zone, such as 'use1-az4', and",
    ),
    (
        lambda stack: _express(stack, zone_id="usw2-az1"),
        "zone_id must be of us-east-1, the stack's region, got 'usw2",
    ),
    (
        lambda stack: _express(stack, bucket_name="runs"),
        "bucket_name must be the name of a directory bucket, <base>--",
    ),
    (
        lambda stack: _express(stack, bucket_name="Runs--use1-az4--x-s3"),
        "bucket_name must be the name of a directory",
    ),
    (lambda stack: _express(stack, bucket_name=f"{'r' * 48}--use1-az4--x-s3"), "bucket_name must be the name of a "),
    (
        lambda stack: _express(stack, bucket_name="runs--use1-az4--x-s3", zone_id="use1-az5"),
        "bucket_name must be of the zone use1-az5, got 'runs--use1-az4--x-s3'",
    ),
    (
        lambda stack: _express(stack, bucket_name="runs--use1-az4--x-s3", expire_after=Duration.days(1)),
        "bucket_name must not be given with expire_after",
    ),
    (
        lambda stack: ExportedCheckpoints(
            stack, "C", file_system=file_system(stack), bucket=_replica(stack), keep_versions=1
        ),
        "bucket must not be given with keep_versions",
    ),
    (
        lambda stack: ExportedCheckpoints(
            stack,
            "C",
            file_system=file_system(stack),
            replicate_to=_replica(stack),
            encryption_key=kms.Key(stack, "Key"),
        ),
        "replicate_to must be a bucket with its encryption_key where encryption_key is given",
    ),
    (
        lambda stack: ExportedCheckpoints(stack, "C", file_system=file_system(stack), keep_versions=101),
        "keep_versions must be at most 100, got 101",
    ),
    (
        lambda stack: ExportedCheckpoints(stack, "C", file_system=file_system(stack), keep_deleted=Duration.hours(5)),
        "keep_deleted must be from 1 day to 3650 days, in steps of 1440 minutes, got 5 hours",
    ),
]


@pytest.mark.parametrize(("make", "message"), _REFUSED)
def test_what_aws_could_not_carry_out_is_refused(make: Callable[[Stack], object], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the beginning of the text is compared
        make(new_stack())
    assert str(refused.value).startswith(message)


def test_a_directory_that_overlaps_with_a_data_set_is_refused() -> None:
    stack = new_stack()
    system = file_system(stack)
    system.add_dataset(Dataset(bucket=s3.Bucket.from_bucket_name(stack, "B", "data"), file_system_path="/"))
    with pytest.raises(ValueError, match="the datasets at / and /checkpoints overlap"):
        ExportedCheckpoints(stack, "C", file_system=system)


def _cluster(stack: Stack, **settings: Any) -> TrainingCluster:
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1, environment=settings.pop("environment", {}))
    return TrainingCluster(stack, "Cluster", cluster_name="pod", node_groups=[group], **settings)


def test_a_cluster_mounts_the_stores_file_system_and_tells_its_nodes_where_it_is() -> None:
    stack = new_stack()
    store = exported_checkpoints(stack)
    cluster = _cluster(stack, network=store.file_system.network, checkpoints=store)
    assert cluster.file_system is store.file_system
    template = str(Template.from_stack(stack).to_json())
    assert "CHECKPOINT_DIR=/fsx/checkpoints" in template
    place = only(stack, "AWS::SSM::Parameter", {"Name": "/training-cluster/pod/checkpoints"})["Properties"]["Value"]
    assert place["Fn::Join"][1][2] == '","directory":"/fsx/checkpoints"}'
    # Jobs write to the file system: nothing of the bucket is theirs.
    policies = resources(stack, "AWS::IAM::Policy").items()
    own = [each for name, each in policies if name.startswith(("ClusterNodeRole", "ClusterJobRole"))]
    assert len(own) == 2
    assert "Checkpoints" not in str(own)
    only(stack, "AWS::CloudWatch::Alarm", {"MetricName": "MinutesOfWorkWithoutCheckpoint", "Threshold": 60})
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "AWS/FSx",
            "MetricName": "AgeOfOldestQueuedMessage",
            "Dimensions": [
                {"Name": "FileSystemId", "Value": Match.any_value()},
                {"Name": "Publisher", "Value": "AutoExport"},
            ],
            "Threshold": 900,
        },
    )


def test_a_node_groups_own_variable_goes_before_the_stores() -> None:
    stack = new_stack()
    store = exported_checkpoints(stack)
    own = {"CHECKPOINT_DIR": "/fsx/checkpoints/run-7"}
    _cluster(stack, network=store.file_system.network, checkpoints=store, environment=own)
    template = str(Template.from_stack(stack).to_json())
    assert [template.count(f"CHECKPOINT_DIR=/fsx/checkpoints{end}") for end in ("/run-7", "")] == [1, 1]


def test_a_store_of_another_file_system_is_refused() -> None:
    stack = new_stack()
    store = exported_checkpoints(stack)
    other = file_system(Stack(stack, "Other"))
    with pytest.raises(ValueError, match=r"^checkpoints must be exported from the cluster's file_system"):
        _cluster(stack, network=other.network, file_system=other, checkpoints=store)


def test_the_nodes_of_a_cluster_write_to_a_directory_bucket_and_its_function_only_reads() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Net", availability_zone=ZONE)
    _cluster(stack, network=network, checkpoints=ExpressCheckpoints(stack, "Express", network=network))
    modes = {
        name.partition("Role")[0].removeprefix("Cluster"): statement.get("Condition")
        for name, policy in resources(stack, "AWS::IAM::Policy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "s3express:CreateSession"
    }
    assert modes == {
        "Job": None,
        "CheckpointWatchFunction": {"StringEquals": {"s3express:SessionMode": "ReadOnly"}},
    }
