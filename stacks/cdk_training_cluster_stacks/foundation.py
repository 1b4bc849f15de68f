"""The stack that keeps: network, security groups and their rules, file system, bucket and state table."""

from aws_cdk import Annotations, CfnOutput, Duration, Environment, Stack, Tags, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_training_cluster import (
    CheckpointStore,
    ClusterNetwork,
    ClusterState,
    Dataset,
    ExportedCheckpoints,
    ExpressCheckpoints,
    TrainingFileSystem,
)
from cdk_training_cluster.core.acknowledgements import acknowledge, warn
from cdk_training_cluster.storage.buckets import kept_bucket
from cdk_training_cluster.validation.words import IN_A_FILE, WORDS_CONTEXT
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.checkpoints import CheckpointSettings, ExpressSettings, ReplicaSettings
from cdk_training_cluster_file.model import AccessLogSettings, FileSystemSettings
from cluster_contract.tags import CLUSTER_TAG

_OLD_VERSIONS_KEPT = Duration.days(90)


class FoundationStack(Stack):
    """Make what outlives the nodes of a cluster file.

    Deleting it keeps the file system with the network it lives in, the bucket and the state table; see
    `ClusterNetwork.retain`.
    """

    network: ClusterNetwork
    state: ClusterState
    file_system: TrainingFileSystem | None
    dataset_bucket: s3.Bucket | None
    checkpoints: CheckpointStore | None

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
        speak_as_a_file(self, cluster)
        self._encryption_key = encryption_key(self, cluster)
        self.network = self._network(cluster)
        self.state = ClusterState(self, "State", encryption_key=self._encryption_key)
        self.dataset_bucket = None
        self.file_system = None
        if cluster.file_system is not None:
            datasets = [
                settings.for_constructs(bucket=self._bucket(settings.bucket, cluster.access_logs))
                for settings in cluster.datasets
            ]
            self.file_system = self._file_system(
                cluster.file_system, datasets, names_network=cluster.network is not None
            )
            CfnOutput(self, "FileSystemId", value=self.file_system.file_system_id)
        self.checkpoints = None if cluster.checkpoints is None else self._checkpoints(cluster.checkpoints)
        self._keep_exports()
        CfnOutput(self, "StateTableName", value=self.state.table_name)
        CfnOutput(self, "VpcId", value=self.network.vpc.vpc_id)
        CfnOutput(self, "NodeSecurityGroupId", value=self.network.security_group.security_group_id)
        CfnOutput(self, "NodeSubnetId", value=self.network.node_subnet.subnet_id)
        Tags.of(self).add(CLUSTER_TAG, cluster.name)
        for key, value in cluster.tags.items():
            Tags.of(self).add(key, value)

    def _keep_exports(self) -> None:
        """Export all that a cluster stack can import, whether one does or not.

        The foundation is deployed before the cluster: an export that went with its last import would have to go while
        the deployed cluster still imports it, which CloudFormation refuses.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
        """
        system = self.file_system
        values = [self.network.node_subnet.subnet_id, self.network.security_group.security_group_id]
        # The control plane of an EKS cluster has a subnet of its own in the VPC.
        values.append(self.network.vpc.vpc_id)
        values += [self.state.table_name, self.state.table_arn]
        # The names of an existing one are in the cluster file.
        values += (
            []
            if system is None or system.settings is None
            else [system.file_system_id, system.dns_name, system.mount_name]
        )
        if self.checkpoints is not None and self.checkpoints.node.try_find_child("Bucket") is not None:
            values += [self.checkpoints.place.bucket, self.checkpoints.bucket_arn]
        for value in values:
            if Token.is_unresolved(value):  # the id of an imported subnet is written as it is
                self.export_value(value)

    def _network(self, cluster: ClusterFile) -> ClusterNetwork:
        existing = cluster.network
        if existing is None:
            return ClusterNetwork(
                self,
                "Network",
                availability_zone=cluster.availability_zone,
                cidr=cluster.vpc_cidr,
                encryption_key=self._encryption_key,
            )
        # Nothing here changes the routes of an imported network.
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

    def _file_system(
        self, settings: FileSystemSettings, datasets: list[Dataset], *, names_network: bool
    ) -> TrainingFileSystem:
        existing, key, log = settings.existing, settings.encryption_key, settings.log_group
        if existing is None:
            return TrainingFileSystem(
                self,
                "FileSystem",
                network=self.network,
                **settings.model_dump(exclude={"existing", "encryption_key", "log_group"}),
                encryption_key=None if key is None else kms.Key.from_key_arn(self, "FileSystemKey", key),
                log_group=None if log is None else logs.LogGroup.from_log_group_name(self, "FileSystemLog", log),
                datasets=datasets,
            )
        group = existing.security_group_id
        if group is None and not names_network:
            warn(
                self,
                "existingFileSystemAccess",
                f"{existing.file_system_id} gets no security_group_id and no network is named: nodes can mount it "
                "only where this stack made it once and its groups let them in; or else give both.",
            )
        return TrainingFileSystem.from_attributes(
            self,
            "FileSystem",
            network=self.network,
            file_system_id=existing.file_system_id,
            mount_name=existing.mount_name,
            security_group=(
                None if group is None else ec2.SecurityGroup.from_security_group_id(self, "FileSystemGroup", group)
            ),
            efa_enabled=settings.efa_enabled,
            datasets=datasets,
            mount_point=settings.mount_point,
        )

    def _checkpoints(self, settings: CheckpointSettings) -> CheckpointStore:
        max_work = Duration.minutes(settings.max_minutes_without_checkpoint)
        exported, express = settings.directory_settings, settings.express or ExpressSettings()
        if exported is None:
            return ExpressCheckpoints(
                self,
                "ExpressCheckpoints",
                network=self.network,
                zone_id=express.zone_id,
                bucket_name=express.bucket,
                expire_after=_days(express.expire_after_days),
                max_work_without_checkpoint=max_work,
                encryption_key=self._express_key(express),
            )
        if self.file_system is None:
            raise ValueError("checkpoints: an exported directory needs a file_system")
        return ExportedCheckpoints(
            self,
            "Checkpoints",
            file_system=self.file_system,
            file_system_path=exported.file_system_path,
            bucket=None if exported.bucket is None else self._bucket(exported.bucket, None),
            prefix=exported.prefix,
            keep_versions=exported.keep_versions,
            keep_deleted=_days(exported.keep_deleted_days),
            expire_after=_days(exported.expire_after_days),
            replicate_to=None if exported.replicate_to is None else self._replica(exported.replicate_to),
            max_work_without_checkpoint=max_work,
            encryption_key=self._encryption_key if exported.bucket is None else None,
        )

    def _express_key(self, settings: ExpressSettings) -> kms.IKey | None:
        """Return the key of a directory bucket, which never changes: an existing one need not have the cluster's."""
        if settings.encryption_key is not None:
            return kms.Key.from_key_arn(self, "ExpressKey", settings.encryption_key)
        return self._encryption_key if settings.bucket is None else None

    def _replica(self, settings: ReplicaSettings) -> s3.IBucket:
        key = settings.encryption_key
        return s3.Bucket.from_bucket_attributes(
            self,
            "Replica",
            bucket_name=settings.bucket,
            region=settings.region,
            encryption_key=None if key is None else kms.Key.from_key_arn(self, "ReplicaKey", key),
        )

    def _bucket(self, name: str | None, access_logs: AccessLogSettings | None) -> s3.IBucket:
        if name is not None:
            child = self.node.try_find_child(f"Bucket-{name}")
            return (
                s3.Bucket.from_bucket_name(self, f"Bucket-{name}", name) if child is None else child  # type: ignore[return-value]  # made in the line above for an earlier data set
            )
        if self.dataset_bucket is None:
            self.dataset_bucket = self._make_bucket(access_logs)
        return self.dataset_bucket

    def _make_bucket(self, access_logs: AccessLogSettings | None) -> s3.Bucket:
        bucket = kept_bucket(
            self,
            "Datasets",
            encryption_key=self._encryption_key,
            # What was overwritten or deleted can be brought back for a while, and does not bill for ever.
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="old-versions",
                    noncurrent_version_expiration=_OLD_VERSIONS_KEPT,
                    abort_incomplete_multipart_upload_after=Duration.days(7),
                )
            ],
            access_logs_bucket=(
                None if access_logs is None else s3.Bucket.from_bucket_name(self, "AccessLogs", access_logs.bucket)
            ),
            access_logs_prefix=None if access_logs is None else access_logs.prefix,
        )
        if access_logs is not None:
            # CDK says so of any bucket that it does not make, without saying how the policy has to be.
            Annotations.of(bucket).acknowledge_warning("@aws-cdk/aws-s3:accessLogsPolicyNotAdded")
            warn(
                bucket,
                "accessLogsPolicy",
                f"the policy of the bucket {access_logs.bucket} must let logging.s3.amazonaws.com put objects, or S3 "
                "refuses to write access logs into it: see docs/security.md for the statement.",
            )
        else:
            acknowledge(
                bucket,
                "AwsSolutions-S1",
                "Reads of training data come from FSx, file by file; who may ask for an audit of that turns on "
                "CloudTrail data events, which unlike access logs are complete.",
            )
        CfnOutput(self, "DatasetBucketName", value=bucket.bucket_name)
        return bucket


def _days(days: int | None) -> Duration | None:
    return None if days is None else Duration.days(days)


def speak_as_a_file(stack: Stack, cluster: ClusterFile) -> None:
    """Let what is said about a stack use the words of a cluster file, without the warnings that the file accepts.

    Args:
        stack: The stack, before anything is made in it.
        cluster: What the file says.
    """
    stack.node.set_context(WORDS_CONTEXT, IN_A_FILE)
    for rule, reason in cluster.acknowledge.items():
        Annotations.of(stack).acknowledge_warning(f"cdk-training-cluster:{rule}", reason)


def encryption_key(stack: Stack, cluster: ClusterFile) -> kms.IKey | None:
    """Return the key that a cluster file names, for one of its stacks.

    Args:
        stack: The stack.
        cluster: What the file says.
    """
    arn = cluster.encryption_key
    return None if arn is None else kms.Key.from_key_arn(stack, "EncryptionKey", arn)
