"""What a cluster file takes for granted is put there first, and a look at the account sees all that happens to it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster_file import ClusterFile, read_cluster_file
from local_aws import LocalAws, LocalAwsError
from rehearsal.inventory import Inventory, take_inventory
from rehearsal.preparation import prepare

_VPC, _SUBNET, _IMAGE = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "ami-0a1b2c3d4e5f67890"
_RESERVATION, _BLOCK = "cr-0a1b2c3d4e5f67890", "cr-0fedcba9876543210"
_LAYER = "arn:aws:lambda:eu-west-1:111122223333:layer:powertools:1"
_FILE = f"""
name: pod
availability_zone: eu-west-1-par-1a
account: "444455556666"
network: {{vpc_id: {_VPC}, subnet_id: {_SUBNET}}}
file_system: {{}}
powertools_layer_arn: {_LAYER}
datasets:
  - {{bucket: corpus, prefix: tokens/, file_system_path: /tokens}}
  - {{bucket: corpus, prefix: images/, file_system_path: /images}}
  - {{bucket: others, file_system_path: /others}}
node_groups:
  - {{name: arm, instance_types: [g5g.xlarge], count: 1, image: {_IMAGE}, root_device_name: /dev/sda1}}
  - {{name: gaudi, instance_types: [dl1.24xlarge], count: 1, image: ami-0fedcba9876543210}}
  - name: reserved
    instance_types: [p5.48xlarge]
    count: 2
    image: latest
    capacity: {{from_reservation: {{id: {_RESERVATION}, placement_group: mine, instance_count: 3}}}}
  - name: block
    instance_types: [p5.48xlarge]
    count: 2
    image: latest
    capacity: {{capacity_block: {{id: {_BLOCK}}}}}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> ClusterFile:
    file = tmp_path_factory.mktemp("cluster") / "pod.yaml"
    file.write_text(_FILE)
    return read_cluster_file(file)


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def aws(cluster: ClusterFile, notes: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    log = tmp_path_factory.mktemp("aws") / "log.txt"
    with LocalAws(log, region=cluster.region, account=str(cluster.account)) as running:
        notes += prepare(cluster, running)
        yield running


def test_everything_is_in_the_file_s_account_and_region(aws: LocalAws) -> None:
    identity = aws.client("sts").get_caller_identity()
    assert identity["Account"] == "444455556666"
    (vpc,) = aws.client("ec2").describe_vpcs(VpcIds=[_VPC])["Vpcs"]
    assert vpc["OwnerId"] == "444455556666"
    assert aws.client("s3").get_bucket_location(Bucket="corpus")["LocationConstraint"] == "eu-west-1"


def test_each_bucket_is_made_once_and_holds_objects_under_every_prefix(aws: LocalAws) -> None:
    buckets = take_inventory(aws.client)["buckets"]
    assert set(buckets) == {"corpus", "others"}
    assert {key.split("/")[0] for key in buckets["corpus"]["objects"]} == {"tokens", "images"}
    assert len(buckets["corpus"]["objects"]) == 48


def test_the_subnet_has_its_id_and_zone_and_a_way_out(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    (subnet,) = ec2.describe_subnets(SubnetIds=[_SUBNET])["Subnets"]
    assert (subnet["VpcId"], subnet["AvailabilityZone"]) == (_VPC, "eu-west-1-par-1a")
    (table,) = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [_SUBNET]}])[
        "RouteTables"
    ]
    (way_out,) = [route for route in table["Routes"] if route["DestinationCidrBlock"] == "0.0.0.0/0"]
    (gateway,) = ec2.describe_nat_gateways(NatGatewayIds=[way_out["NatGatewayId"]])["NatGateways"]
    assert gateway["State"] == "available"
    assert gateway["SubnetId"] != _SUBNET


def test_a_pinned_image_fits_the_type_and_the_group_s_root_device(aws: LocalAws) -> None:
    images = aws.client("ec2").describe_images(ImageIds=[_IMAGE, "ami-0fedcba9876543210"])["Images"]
    assert {image["ImageId"]: (image["Architecture"], image["RootDeviceName"]) for image in images} == {
        _IMAGE: ("arm64", "/dev/sda1"),
        "ami-0fedcba9876543210": ("x86_64", "/dev/xvda"),
    }


def test_reservations_and_blocks_can_be_launched_into(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    described = ec2.describe_capacity_reservations(CapacityReservationIds=[_RESERVATION, _BLOCK])
    reservation, block = described["CapacityReservations"]
    for given, count, kind in ((reservation, 3, "default"), (block, 2, "capacity-block")):
        assert (given["InstanceType"], given["AvailabilityZone"]) == ("p5.48xlarge", "eu-west-1-par-1a")
        assert (given["TotalInstanceCount"], given["AvailableInstanceCount"]) == (count, count)
        assert (given["State"], given["ReservationType"], given["InstanceMatchCriteria"]) == (
            *("active", kind, "targeted"),
        )
    assert reservation["PlacementGroupArn"].endswith(":placement-group/mine")
    assert "PlacementGroupArn" not in block
    # Time enough for a rehearsal: EC2 begins to empty a block half an hour before its end.
    assert block["EndDate"] - datetime.now(UTC) > timedelta(hours=1)


def test_a_type_that_ec2_lacks_can_be_launched_and_is_told(aws: LocalAws, notes: list[str]) -> None:
    described = {
        "ImageId": "ami-0fedcba9876543210",
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": "dl1.24xlarge",
        "SubnetId": _SUBNET,
    }
    (instance,) = aws.client("ec2").run_instances(**described)["Instances"]
    assert instance["InstanceType"] == "dl1.24xlarge"
    aws.client("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        aws.client("ec2").run_instances(**{**described, "InstanceType": "dl9.24xlarge"})
    assert len(notes) == 1
    assert notes[0].startswith("The local AWS knows dl1.24xlarge from this library or the file alone")


def test_there_is_no_such_region(tmp_path: Path) -> None:
    with pytest.raises(LocalAwsError, match=r"^the local AWS has no region eusc-de-east-1: nothing can be rehearsed"):
        LocalAws(tmp_path / "log.txt", region="eusc-de-east-1")


def _differing(before: Inventory, after: Inventory) -> set[str]:
    return {kind for kind in before if before[kind] != after[kind]}


def test_an_inventory_sees_what_changes(aws: LocalAws) -> None:
    """Last, since it takes apart what the other tests look at."""
    ec2, s3 = aws.client("ec2"), aws.client("s3")
    before = take_inventory(aws.client)
    assert _differing(before, take_inventory(aws.client)) == set()

    s3.put_object(Bucket="others", Key="shard-00000.bin", Body=b"other contents")
    assert _differing(before, take_inventory(aws.client)) == {"buckets"}

    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=_VPC)["GroupId"]
    with_group = take_inventory(aws.client)
    assert group in with_group["security groups"]
    rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    assert _differing(with_group, take_inventory(aws.client)) == {"security groups"}

    (table,) = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [_SUBNET]}])[
        "RouteTables"
    ]
    with_routes = take_inventory(aws.client)
    ec2.delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0")
    assert _differing(with_routes, take_inventory(aws.client)) == {"route tables"}

    (gateway,) = with_routes["NAT gateways"]
    ec2.delete_nat_gateway(NatGatewayId=gateway)
    assert "NAT gateways" in _differing(with_routes, take_inventory(aws.client))
