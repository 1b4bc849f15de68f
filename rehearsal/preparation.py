"""What the account holds before the cluster comes: all that the cluster file names as already there."""

import json
from collections.abc import Mapping
from typing import Any

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.images import pcs_image, public_image
from cdk_training_cluster.orchestrators.eks.add_ons import POD_IDENTITY
from cdk_training_cluster.orchestrators.hyperpod.settings import TASK_GOVERNANCE
from cdk_training_cluster_cli.files.key_policy import key_policy_texts
from cdk_training_cluster_file import ClusterFile, NetworkSettings
from cdk_training_cluster_file.capacity import ExistingReservationSettings, ReservationSettings
from local_aws import LocalAws
from local_aws.defaults import ACCOUNT
from rehearsal.given_capacity import prepare_capacity
from rehearsal.instance_types import description

LATEST = "latest"
# More than a usual cluster has nodes, so that each restores some.
_SAMPLE_OBJECTS = (*(f"shard-{number:05}.bin" for number in range(23)), "more/a name with spaces.bin")
_USUAL_ROOT_DEVICE = "/dev/xvda"
_PUBLIC_RANGE, _SECOND_RANGE = "10.0.0.0/24", "10.0.1.0/24"


def account_of(cluster: ClusterFile) -> str:
    """Return the account that a cluster file is for: the one that it names, that of its EKS cluster, or any.

    Args:
        cluster: The cluster file.
    """
    hyperpod = cluster.orchestrator.hyperpod
    arn = None if hyperpod is None else hyperpod.eks_cluster_arn
    return cluster.account or (ACCOUNT if arn is None else arn.split(":")[4])


def prepare(cluster: ClusterFile, aws: LocalAws) -> list[str]:
    """Put into the local AWS what the file takes for granted, and say what is worth knowing of it.

    That is its zone, its instance types, the images it pins, and the reservations, Capacity Blocks, layer, network
    and buckets it names.

    Args:
        cluster: The cluster file.
        aws: The local AWS.
    """
    aws.add_zone(cluster.availability_zone)
    added = [info.name for info in instance_types(cluster) if aws.add_instance_type(description(info))]
    _add_images(cluster, aws)
    prepare_capacity(cluster, aws)
    for key in cluster.encryption_keys:
        aws.add_key(key, key_policy_texts(cluster).whole)
    if cluster.powertools_layer_arn is not None:
        aws.add_layer(cluster.powertools_layer_arn)
    if cluster.network is not None:
        _add_network(cluster.network, cluster.availability_zone, aws)
        _add_eks_cluster(cluster, cluster.network, aws)
    s3 = aws.client("s3")
    # S3 takes the location of every region but its first.
    location: dict[str, Any] = (
        {} if aws.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": aws.region}}
    )
    if cluster.access_logs is not None:
        _add_log_bucket(cluster.access_logs.bucket, aws, location)
    for bucket in named_buckets(cluster):
        s3.create_bucket(Bucket=bucket, **location)
    for settings in cluster.datasets:
        if settings.bucket is not None:
            put_objects(aws, settings.bucket, settings.prefix)
    return [
        f"The local AWS knows {name} from this library or the file alone: its launch is checked against the facts "
        "that it was made from."
        for name in added
    ]


def instance_types(cluster: ClusterFile) -> list[InstanceTypeInfo]:
    """Return what is known of each type that a node group names, each type once.

    Args:
        cluster: The cluster file.
    """
    facts = [entry.to_info() for entry in cluster.instance_type_facts]
    names = dict.fromkeys(name for group in cluster.node_groups for name in group.instance_types)
    return [instance_type_info(name, facts) for name in names]


def named_buckets(cluster: ClusterFile) -> list[str]:
    """Return the buckets that the file names, each once.

    Args:
        cluster: The cluster file.
    """
    exported = None if cluster.checkpoints is None else cluster.checkpoints.directory_settings
    names = [one.bucket for one in cluster.datasets] + ([] if exported is None else [exported.bucket])
    return list(dict.fromkeys(name for name in names if name is not None))


def put_objects(aws: LocalAws, bucket: str, prefix: str) -> None:
    """Put a few small objects under a prefix.

    Args:
        aws: The local AWS.
        bucket: The bucket.
        prefix: How their keys start.
    """
    for name in _SAMPLE_OBJECTS:
        aws.client("s3").put_object(Bucket=bucket, Key=f"{prefix}{name}", Body=name.encode())


def _add_log_bucket(name: str, aws: LocalAws, location: Mapping[str, Any]) -> None:
    """Make the bucket that access logs go to, with the policy that docs/security.md asks for.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html
    """
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=name, **location)
    statement = {
        "Sid": "AccessLogs",
        "Effect": "Allow",
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{name}/*",
        "Condition": {"StringEquals": {"aws:SourceAccount": aws.account}},
    }
    s3.put_bucket_policy(Bucket=name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def _add_images(cluster: ClusterFile, aws: LocalAws) -> None:
    infos = {info.name: info for info in instance_types(cluster)}
    # An image has one architecture and one root device: where groups share one, the first group's fit it. What it is
    # billed as is said by a reservation that is made for it.
    pinned: dict[str, tuple[str, str]] = {}
    platforms: dict[str, str] = {}
    for group in cluster.node_groups:
        info = infos[group.instance_types[0]]
        public = public_image(info)
        usual = _USUAL_ROOT_DEVICE if public is None else public.root_device_name
        if group.image != LATEST:
            pinned.setdefault(group.image, (info.architectures[-1], group.root_device_name or usual))
            settings = group.capacity.settings
            if isinstance(settings, ReservationSettings | ExistingReservationSettings) and settings.instance_platform:
                platforms.setdefault(group.image, settings.instance_platform)
    slurm = cluster.orchestrator.slurm
    if slurm is not None and slurm.login.image != LATEST:
        architecture = slurm.to_slurm().login.architecture
        pinned.setdefault(slurm.login.image, (architecture, pcs_image(architecture).root_device_name))
    for image_id, (architecture, root_device_name) in pinned.items():
        aws.add_image(
            image_id,
            architecture=architecture,
            root_device_name=root_device_name,
            platform=platforms.get(image_id),
        )


def _add_eks_cluster(cluster: ClusterFile, network: NetworkSettings, aws: LocalAws) -> None:
    """Make the EKS cluster that HyperPod's nodes join, in the network that the file names."""
    hyperpod = cluster.orchestrator.hyperpod
    if hyperpod is None or hyperpod.eks_cluster_arn is None or hyperpod.eks_security_group_id is None:
        return
    ec2 = aws.client("ec2")
    zones = [zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]]
    other = next(zone for zone in zones if zone != cluster.availability_zone)
    made = ec2.create_subnet(VpcId=network.vpc_id, CidrBlock=_SECOND_RANGE, AvailabilityZone=other)["Subnet"]
    aws.add_eks_cluster(
        hyperpod.eks_cluster_arn.rpartition("/")[2],
        subnet_ids=[network.subnet_id, made["SubnetId"]],
        security_group_id=hyperpod.eks_security_group_id,
        add_ons=[POD_IDENTITY, *([TASK_GOVERNANCE] if hyperpod.priority_classes else [])],
    )


def _add_network(network: NetworkSettings, zone: str, aws: LocalAws) -> None:
    """Make the network that the file names, with a way out as such networks have it: a NAT gateway beside it."""
    aws.add_network(vpc_id=network.vpc_id, subnet_id=network.subnet_id, availability_zone=zone)
    ec2 = aws.client("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network.vpc_id)
    public = ec2.create_subnet(VpcId=network.vpc_id, CidrBlock=_PUBLIC_RANGE, AvailabilityZone=zone)["Subnet"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=public["SubnetId"], AllocationId=address)["NatGateway"]
    for subnet, way_out in (
        (public["SubnetId"], {"GatewayId": gateway}),
        (network.subnet_id, {"NatGatewayId": nat["NatGatewayId"]}),
    ):
        table = ec2.create_route_table(VpcId=network.vpc_id)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **way_out)
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
