"""The stack that keeps: network, security groups and their rules, file system and bucket."""

from aws_cdk import Annotations, CfnOutput, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_training_cluster import ClusterNetwork, Dataset, TrainingFileSystem
from cdk_training_cluster.acknowledgements import acknowledge
from cdk_training_cluster.tags import CLUSTER_TAG
from cdk_training_cluster_stacks.cluster_file import ClusterFile


class FoundationStack(Stack):
    """Make what outlives the nodes of a cluster file.

    Deleting it keeps the file system with the network it lives in, and the bucket; see `ClusterNetwork.retain`.
    """

    network: ClusterNetwork
    file_system: TrainingFileSystem | None
    dataset_bucket: s3.Bucket | None

    def __init__(self, scope: Construct, id: str, *, cluster: ClusterFile) -> None:
        """Make the stack.

        Args:
            scope: The app.
            id: The construct's id.
            cluster: What the file says.

        Raises:
            ValueError: A part refuses its settings.
        """
        super().__init__(
            scope,
            id,
            stack_name=cluster.foundation_stack_name,
            description=f"What the training cluster {cluster.name} keeps: network, file system and buckets",
            env=Environment(account=cluster.account, region=cluster.region),
            termination_protection=cluster.termination_protection,
        )
        self.network = self._network(cluster)
        self.dataset_bucket = None
        self.file_system = None
        if cluster.file_system is not None:
            self.file_system = TrainingFileSystem(
                self,
                "FileSystem",
                network=self.network,
                storage_capacity_gib=cluster.file_system.storage_capacity_gib,
                throughput_mbps_per_tib=cluster.file_system.throughput_mbps_per_tib,
                mount_point=cluster.file_system.mount_point,
                datasets=[
                    Dataset(
                        bucket=self._bucket(settings.bucket),
                        prefix=settings.prefix,
                        file_system_path=settings.file_system_path,
                    )
                    for settings in cluster.datasets
                ],
            )
            CfnOutput(self, "FileSystemId", value=self.file_system.file_system_id)
        CfnOutput(self, "VpcId", value=self.network.vpc.vpc_id)
        CfnOutput(self, "NodeSubnetId", value=self.network.node_subnet.subnet_id)
        Tags.of(self).add(CLUSTER_TAG, cluster.name)
        for key, value in cluster.tags.items():
            Tags.of(self).add(key, value)

    def _network(self, cluster: ClusterFile) -> ClusterNetwork:
        existing = cluster.network
        if existing is None:
            return ClusterNetwork(self, "Network", availability_zone=cluster.availability_zone, cidr=cluster.vpc_cidr)
        # Nothing here changes the routes of a network that is somebody else's.
        Annotations.of(self).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId")
        subnet = ec2.Subnet.from_subnet_attributes(
            self, "ExistingSubnet", subnet_id=existing.subnet_id, availability_zone=cluster.availability_zone
        )
        return ClusterNetwork.from_subnet(
            self,
            "Network",
            availability_zone=cluster.availability_zone,
            vpc=ec2.Vpc.from_vpc_attributes(
                self,
                "ExistingVpc",
                vpc_id=existing.vpc_id,
                availability_zones=[cluster.availability_zone],
                private_subnet_ids=[existing.subnet_id],
            ),
            subnet=subnet,
        )

    def _bucket(self, name: str | None) -> s3.IBucket:
        if name is not None:
            child = self.node.try_find_child(f"Bucket-{name}")
            return (
                s3.Bucket.from_bucket_name(self, f"Bucket-{name}", name) if child is None else child  # type: ignore[return-value]  # made in the line above for an earlier data set
            )
        if self.dataset_bucket is None:
            self.dataset_bucket = self._make_bucket()
        return self.dataset_bucket

    def _make_bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Datasets",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if bucket.policy is not None:
            # The bucket stays when the stack goes, and so does what it demands of its readers.
            bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        acknowledge(
            bucket,
            "AwsSolutions-S1",
            "Reads of training data come from FSx, file by file; who may ask for an audit of that turns on "
            "CloudTrail data events, which unlike access logs are complete.",
        )
        CfnOutput(self, "DatasetBucketName", value=bucket.bucket_name)
        return bucket
