"""One key for all that is stored, and what its policy lets AWS's services do."""

import json
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from cdk_training_cluster import Capacity, ClusterNetwork, Dataset, NodeGroup, TrainingCluster, TrainingFileSystem
from synthesis import ZONE, new_stack, only, resources, warnings

_ARN = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"
_ENCRYPTED = {
    "AWS::SNS::Topic": "KmsMasterKeyId",
    "AWS::SQS::Queue": "KmsMasterKeyId",
    "AWS::Logs::LogGroup": "KmsKeyId",
    "AWS::Lambda::Function": "KmsKeyArn",
}


def _cluster(stack: Stack, key: kms.IKey, capacity: Capacity | None = None) -> None:
    bucket = s3.Bucket(stack, "Corpus", encryption=s3.BucketEncryption.KMS, encryption_key=key)
    group = NodeGroup("workers", instance_types=["g6.48xlarge"], count=2, capacity=capacity or Capacity.on_demand())
    TrainingCluster(
        stack,
        "Pod",
        availability_zone=ZONE,
        node_groups=[group],
        datasets=[Dataset(bucket=bucket, file_system_path="/data")],
        encryption_key=key,
    )


def _statements(stack: Stack) -> dict[str, Any]:
    statements = only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
    return {statement["Sid"]: statement for statement in statements if "Sid" in statement}


def test_everything_that_is_stored_is_encrypted_with_the_key() -> None:
    stack = new_stack()

    _cluster(stack, kms.Key.from_key_arn(stack, "Key", _ARN))

    for kind, name in _ENCRYPTED.items():
        found = resources(stack, kind)
        assert found
        assert {resource["Properties"].get(name) for resource in found.values()} == {_ARN}, kind
    encrypted = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": _ARN}
    tables = resources(stack, "AWS::DynamoDB::Table").values()
    assert [table["Properties"]["SSESpecification"] for table in tables] == [encrypted] * 2
    for template in resources(stack, "AWS::EC2::LaunchTemplate").values():
        for device in template["Properties"]["LaunchTemplateData"]["BlockDeviceMappings"]:
            assert (device["Ebs"]["Encrypted"], device["Ebs"]["KmsKeyId"]) == (True, _ARN)
    # Of the rest, nothing holds data: a new type that does belongs into the table above.
    kinds = {each["Type"] for each in Template.from_stack(stack).to_json()["Resources"].values()}
    assert not kinds & {"AWS::EC2::Volume", "AWS::EFS::FileSystem"}


def test_without_a_key_nothing_names_one() -> None:
    stack = new_stack()
    TrainingCluster(
        stack,
        "Pod",
        availability_zone=ZONE,
        node_groups=[NodeGroup("workers", instance_types=["g6.48xlarge"], count=2)],
    )
    assert "kms" not in json.dumps(Template.from_stack(stack).to_json()).lower()


def test_a_key_made_here_lets_in_who_works_in_its_own_name() -> None:
    stack = new_stack(account="111122223333")

    _cluster(stack, kms.Key(stack, "Key"))

    statements = _statements(stack)
    assert sorted(statements) == [
        *("Alarms", "AutoScalingVolumeGrants", "AutoScalingVolumes", "LinkedBuckets", "LogGroups"),
        "UndeliveredEvents",
    ]
    assert statements["Alarms"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statements["Alarms"]["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert "kms:EncryptionContext:aws:logs:arn" in statements["LogGroups"]["Condition"]["ArnLike"]
    assert "AWSServiceRoleForAutoScaling" in json.dumps(statements["AutoScalingVolumes"]["Principal"])
    assert statements["AutoScalingVolumeGrants"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    assert not [text for text in warnings(stack) if "encryptionKeyPolicy" in text]


@pytest.mark.parametrize(
    ("capacity", "roles"),
    [
        (Capacity.spot(), {"AutoScaling", "EC2Spot"}),
        (Capacity.spot_fleet(), {"EC2Spot", "EC2SpotFleet"}),
    ],
    ids=["spot", "spot fleet"],
)
def test_who_launches_the_nodes_may_use_the_key_of_their_volumes(capacity: Capacity, roles: set[str]) -> None:
    stack = new_stack()
    _cluster(stack, kms.Key(stack, "Key"), capacity)
    volumes = {sid.removesuffix("Volumes") for sid in _statements(stack) if sid.endswith("Volumes")}
    assert volumes == roles


def test_of_a_key_made_elsewhere_people_are_warned_once_a_stack() -> None:
    stack = new_stack()
    _cluster(stack, kms.Key.from_key_arn(stack, "Key", _ARN))
    ids = [text.partition("[ack: ")[2].rstrip("]") for text in warnings(stack)]
    assert ids.count("cdk-training-cluster:encryptionKeyPolicy") == 1


def test_a_file_system_has_a_key_of_its_own_alone() -> None:
    systems = []
    for cluster_key, own_key in ((None, None), (_ARN, None), (None, _ARN)):
        stack = new_stack()
        keys = [arn and kms.Key.from_key_arn(stack, f"Key{at}", arn) for at, arn in enumerate((cluster_key, own_key))]
        network = ClusterNetwork(stack, "Network", availability_zone=ZONE, encryption_key=keys[0] or None)
        system = own_key and TrainingFileSystem(stack, "FileSystem", network=network, encryption_key=keys[1] or None)
        TrainingCluster(
            stack,
            "Pod",
            network=network,
            node_groups=[NodeGroup("workers", instance_types=["g6.48xlarge"], count=2)],
            file_system=system or None,
            datasets=[Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data")],
            encryption_key=keys[0] or None,
        )
        systems.append(only(stack, "AWS::FSx::FileSystem"))
    assert systems[0] == systems[1]
    assert systems[2]["Properties"]["KmsKeyId"] == _ARN


def test_a_dataset_s_key_made_elsewhere_is_no_key_of_the_cluster() -> None:
    stack = new_stack(account="111122223333")
    key = kms.Key.from_key_arn(stack, "Key", _ARN)
    bucket = s3.Bucket.from_bucket_attributes(stack, "Corpus", bucket_name="corpus", encryption_key=key)
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    datasets = [Dataset(bucket=bucket, file_system_path="/data")]

    TrainingFileSystem(stack, "FileSystem", network=network, datasets=datasets)

    (text,) = (text for text in warnings(stack) if "KeyPolicy" in text)
    assert text.startswith(
        "dataset bucket Test/Corpus: its key's policy is managed outside this app and must let FSx read"
    )
    assert '"Sid": "LinkedBuckets"' in text
    assert '"kms:CallerAccount": "111122223333", "kms:ViaService": "s3.us-east-1.amazonaws.com"' in text
    # Of a bucket with a bucket key the context is the bucket, of any other the object.
    assert '"kms:EncryptionContext:aws:s3:arn": ["arn:aws:s3:::corpus", "arn:aws:s3:::corpus/*"]' in text
    assert "[ack: cdk-training-cluster:datasetKeyPolicy]" in text
