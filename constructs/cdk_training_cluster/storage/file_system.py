"""The file system that the nodes share, fed from S3."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import jsii
from aws_cdk import Annotations, CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.checks import is_unknown, shown
from cdk_training_cluster.encryption import allow_dataset
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import MountPoint
from cdk_training_cluster.retention import keep, keep_unless_replaced
from cdk_training_cluster.storage.dataset import Dataset, DatasetEvent, Link, auto_delete, link_problems, overlaps
from cdk_training_cluster.template_checks import check_templates
from cdk_training_cluster.validation.bounds import OneOf
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import SettingsError

# Both are create-only: re-wording the group's description would replace the group and, with it, the file system.
_GROUP_DESCRIPTION = "FSx for Lustre: the file system and its clients"
_DEPLOYMENT_TYPE = "PERSISTENT_2"

# S3 links need 2.12 or 2.15. https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-version-release-notes.html
_LUSTRE_VERSION = "2.15"

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
_LUSTRE_PORTS = ((988, 988), (1018, 1023))

# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html#FSx-CreateFileSystem-request-StorageCapacity
SMALLEST_GIB, STEP_GIB = 1200, 2400
# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html
THROUGHPUT = OneOf((125, 250, 500, 1000), f" for {_DEPLOYMENT_TYPE}")


def _capacity(setting: str, value: object) -> Iterator[str]:
    if is_unknown(value) or value == SMALLEST_GIB:
        return
    if not isinstance(value, int) or value <= 0 or value % STEP_GIB:
        sizes = f"{SMALLEST_GIB} or a multiple of {STEP_GIB} for {_DEPLOYMENT_TYPE}"
        yield f"{setting} must be {sizes}, got {shown(value)}"


StorageCapacityGib: TypeAlias = Annotated[int, _capacity]
"""A size that FSx has."""


@jsii.implements(ec2.IConnectable)
class TrainingFileSystem(Construct):
    """Make an FSx for Lustre file system (PERSISTENT_2, SSD, LZ4) that outlives its stack.

    It is kept when the stack is deleted and when a change would replace it, and so is what it lives in: its
    security group and the network. Data sets are linked to directories of it; see `Dataset`.

    Resources: `AWS::FSx::FileSystem`, `AWS::FSx::DataRepositoryAssociation` for each data set,
    `AWS::EC2::SecurityGroup` and the rules between it and the nodes' group.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ClusterNetwork,
        storage_capacity_gib: StorageCapacityGib = 1200,
        throughput_mbps_per_tib: Annotated[int, THROUGHPUT] = 250,
        datasets: Sequence[Dataset] = (),
        mount_point: MountPoint = "/fsx",
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the file system.

        Args:
            scope: The parent construct.
            id: The construct's id.
            network: Where it lives. Its subnet can never change: FSx would need a new, empty file system.
            storage_capacity_gib: Its size in GiB: 1200 or a multiple of 2400. It can grow later.
                Default: - 1200.
            throughput_mbps_per_tib: Throughput in MB/s for each TiB of storage: 125, 250, 500 or 1000. Some
                regions offer 125 and 250 only. Default: - 250.
            datasets: What to link. Default: - nothing; see also `add_dataset`.
            mount_point: Where the nodes mount it. Default: - `/fsx`.
            encryption_key: The KMS key that encrypts it, whatever the cluster's `encryption_key` is. It can never be
                given, changed or taken away later: CloudFormation would make a new, empty file system.
                Default: - AWS's own key for FSx.

        Raises:
            ValueError: A setting that FSx refuses; data sets that overlap.
        """
        super().__init__(scope, id)
        check_templates(self)
        self.network = network
        self.mount_point = mount_point
        self.storage_capacity_gib = storage_capacity_gib
        self.throughput_mbps_per_tib = throughput_mbps_per_tib
        group = self._make_security_group()
        rules = self._make_rules(group)
        file_system = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=_LUSTRE_VERSION,
            storage_type="SSD",
            storage_capacity=storage_capacity_gib,
            subnet_ids=[network.node_subnet.subnet_id],
            security_group_ids=[group.attr_group_id],
            kms_key_id=None if encryption_key is None else encryption_key.key_arn,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=_DEPLOYMENT_TYPE,
                per_unit_storage_throughput=throughput_mbps_per_tib,
                data_compression_type="LZ4",
                # A file system with S3 links takes no backups, and one without may be given links later.
                automatic_backup_retention_days=0,
            ),
        )
        # FSx looks for its ports in the group's rules before it makes anything.
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/cannot-create-fs.html
        file_system.node.add_dependency(*rules)
        keep(file_system)
        if encryption_key is not None:
            # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-filesystem.html
            Annotations.of(self).add_warning_v2(
                "cdk-training-cluster:fileSystemKey",
                "the encryption_key of a file system is fixed at its first deployment: to give, change or remove it "
                "later makes CloudFormation create a new, empty file system in place of the old one.",
            )
        network.retain()
        self.file_system_id = file_system.ref
        self.dns_name = file_system.attr_dns_name
        self.mount_name = file_system.attr_lustre_mount_name
        self._links = Construct(self, "Datasets")
        self._datasets: list[Dataset] = []
        for dataset in datasets:
            self.add_dataset(dataset)

    @property
    def connections(self) -> ec2.Connections:
        """What the file system lets in and out; rules may be added, the group never swapped."""
        return self._connections

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """What is linked, in the order it was added."""
        return tuple(self._datasets)

    def add_dataset(self, dataset: Dataset) -> None:
        """Link a data set: its names by an import task, and as the bucket changes; contents when they are first read.

        FSx makes the links of a file system one at a time, so each adds some minutes to a first deployment. The
        directory, bucket and prefix of a link cannot be changed, only taken away in one deployment and made anew in
        the next; the bucket loses nothing.

        Args:
            dataset: What to link and where to show it.

        Raises:
            ValueError: It overlaps with one that is linked already, there are eight, it imports from another region,
                or exports deletions to a bucket that is emptied with its stack.
        """
        link_settings = Link(dataset=dataset, region=Stack.of(self).region)
        problems = [*link_problems(link_settings), *overlaps([*self._datasets, dataset])]
        if problems:
            raise SettingsError(problems)
        self._datasets.append(dataset)
        allow_dataset(self, dataset.bucket)
        previous = self._links.node.children[-1:]
        link = fsx.CfnDataRepositoryAssociation(
            self._links,
            _link_id(dataset.directory, len(self._datasets)),
            file_system_id=self.file_system_id,
            file_system_path=dataset.directory,
            data_repository_path=dataset.data_repository_path,
            batch_import_meta_data_on_create=True,
            imported_file_chunk_size=dataset.chunk_size_mib,
            s3=_policies(dataset),
        )
        # FSx makes one at a time; of two that are asked for at once, one may fail.
        link.node.add_dependency(*previous)
        # FSx opens the bucket at once: what its policy demands must be there by then. And what empties the bucket
        # comes after the link at the end, which would pass the deletions on.
        before = (dataset.bucket.policy, auto_delete(dataset.bucket))
        link.node.add_dependency(*(each for each in before if each is not None))

    def _make_security_group(self) -> ec2.CfnSecurityGroup:
        """Make the file system's own group; rules may be added to it later, but it is never swapped for another."""
        nodes = self.network.security_group.security_group_id
        group = ec2.CfnSecurityGroup(
            self,
            "SecurityGroup",
            group_description=_GROUP_DESCRIPTION,
            vpc_id=self.network.vpc.vpc_id,
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    source_security_group_id=nodes,
                    description="Lustre from the nodes",
                )
                for first, last in _LUSTRE_PORTS
            ],
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    destination_security_group_id=nodes,
                    description="Lustre to the nodes",
                )
                for first, last in _LUSTRE_PORTS
            ],
        )
        keep(group)
        self._connections = ec2.Connections(
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(self, "Group", group.attr_group_id, allow_all_outbound=False)
            ]
        )
        return group

    def _make_rules(self, group: ec2.CfnSecurityGroup) -> list[CfnResource]:
        """Make the rules that name the group itself, or stand in the nodes' group."""
        nodes = self.network.security_group.security_group_id
        own = group.attr_group_id
        ingress, egress = ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress
        to_itself = "Lustre between the servers of the file system"
        rules: list[CfnResource] = []
        for first, last in _LUSTRE_PORTS:
            lustre: dict[str, Any] = {"ip_protocol": "tcp", "from_port": first, "to_port": last}
            own_in: dict[str, Any] = {"source_security_group_id": own, **lustre}
            own_out: dict[str, Any] = {"destination_security_group_id": own, **lustre}
            rules += [
                ingress(self, f"SelfIngress{first}", group_id=own, description=to_itself, **own_in),
                egress(self, f"SelfEgress{first}", group_id=own, description=to_itself, **own_out),
                ingress(
                    self, f"NodeIngress{first}", group_id=nodes, description="Lustre from the file system", **own_in
                ),
            ]
        for rule in rules:
            keep_unless_replaced(rule)
        return rules


def _link_id(directory: str, position: int) -> str:
    # Named for its directory, so that taking one data set away does not touch the others.
    return str(position) if is_unknown(directory) else directory.strip("/").replace("/", ".") or "root"


def _policies(dataset: Dataset) -> fsx.CfnDataRepositoryAssociation.S3Property | None:
    """Return which changes a link passes on. None: none."""
    link = fsx.CfnDataRepositoryAssociation
    imported, exported = (
        [event for event in DatasetEvent if event in events]
        for events in (dataset.import_events, dataset.export_events)
    )
    if not imported and not exported:
        return None
    return link.S3Property(
        auto_import_policy=link.AutoImportPolicyProperty(events=imported) if imported else None,
        auto_export_policy=link.AutoExportPolicyProperty(events=exported) if exported else None,
    )
