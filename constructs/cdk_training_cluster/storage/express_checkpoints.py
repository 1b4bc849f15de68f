"""A directory bucket of S3 Express One Zone in the nodes' own zone."""

import re
from collections.abc import Mapping
from typing import Annotated

from aws_cdk import Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3express as s3express
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.retention import keep
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.storage.checkpoint_store import (
    ABANDONED_UPLOADS,
    DEFAULT_MAX_WORK,
    CheckpointStore,
    Days,
    MaxWork,
)
from cdk_training_cluster.validation.bounds import Form
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.checkpoints import URL_VARIABLE, CheckpointPlace

# The zones by region, as AWS listed them when this was written; the list grows.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/endpoint-directory-buckets-AZ.html
EXPRESS_ZONES: Mapping[str, tuple[str, ...]] = {
    "us-east-1": ("use1-az4", "use1-az5", "use1-az6"),
    "us-east-2": ("use2-az1", "use2-az2"),
    "us-west-2": ("usw2-az1", "usw2-az3", "usw2-az4"),
    "ap-south-1": ("aps1-az1", "aps1-az3"),
    "ap-northeast-1": ("apne1-az1", "apne1-az4"),
    "eu-west-1": ("euw1-az1", "euw1-az3"),
    "eu-north-1": ("eun1-az1", "eun1-az2", "eun1-az3"),
}
_ZONE_ID = re.compile(r"[a-z]+[0-9]+-az[0-9]+")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html
_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?--([a-z]+[0-9]+-az[0-9]+)--x-s3")
_FIND_ID = "aws ec2 describe-availability-zones --query 'AvailabilityZones[].[ZoneName,ZoneId]' --output text"

ZONE_ID = Form(
    pattern=_ZONE_ID,
    wanted="the id of a zone, such as 'use1-az4', and not its name, such as 'us-east-1b', which stands for another "
    f"zone in each account: `{_FIND_ID}` prints the ids",
)
BUCKET_NAME = Form(
    pattern=_BUCKET,
    wanted="the name of a directory bucket, <base>--<zone id>--x-s3 with at most 63 lower-case letters, digits and "
    "hyphens, such as 'runs--use1-az4--x-s3'",
)


class ExpressCheckpoints(CheckpointStore):
    """Keep checkpoints in S3 Express One Zone, beside the nodes, with the VPC endpoint that leads there for free.

    Training writes to the bucket that `CHECKPOINT_URL` names, with a client of S3 such as s3torchconnector.
    Everything is in one Availability Zone: what destroys the zone destroys the checkpoints. S3 Express has no
    versions and no replication: what is overwritten or deleted is gone.

    Resources: `AWS::S3Express::DirectoryBucket` and its `AWS::S3Express::BucketPolicy`, which are kept when the stack
    goes (CloudFormation could delete the bucket only when it is empty), and `AWS::EC2::VPCEndpoint`.

    Attributes:
        bucket_name: The bucket's name, `<base>--<zone id>--x-s3`.
        bucket_arn: Its ARN.

    Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-one-zone.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-networking.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ClusterNetwork,
        zone_id: Annotated[str, ZONE_ID] | None = None,
        bucket_name: Annotated[str, BUCKET_NAME] | None = None,
        expire_after: Days | None = None,
        max_work_without_checkpoint: MaxWork | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the bucket and the endpoint.

        Args:
            scope: The parent construct.
            id: The construct's id.
            network: The network that the nodes are in; the bucket is made in its zone.
            zone_id: The zone's id, such as `use1-az4`; checked against the zones that AWS lists.
                Default: - the subnet's own at deployment, which CDK does not know of an imported subnet.
            bucket_name: An existing directory bucket, such as one that an earlier stack kept. Default: - one is made,
                and CloudFormation names it.
            expire_after: After how many days S3 deletes an object, also the newest. Default: - never.
            max_work_without_checkpoint: How long accelerators may work without a new checkpoint until an
                alarm goes off. Default: - 60 minutes.
            encryption_key: The KMS key that encrypts the bucket; a directory bucket never takes another one.
                Default: - S3's own keys.

        Raises:
            ValueError: A zone's name is given in place of its id, the zone is in another region or is not known, the
                name is not one of a directory bucket, or a setting of the bucket is given beside one that exists.

        Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3express-directorybucket.html
        """
        super().__init__(scope, id)
        self.max_work_without_checkpoint: Duration = max_work_without_checkpoint or to_duration(DEFAULT_MAX_WORK)
        self._key = encryption_key
        self.zone_id: str | None = _zone(zone_id, bucket_name)
        self._check_zone(self.zone_id)
        if bucket_name is not None:
            if expire_after is not None:
                raise ValueError(
                    "bucket_name must not be given with expire_after: nothing here changes a bucket that exists; "
                    "leave out bucket_name, or set a lifecycle on the bucket itself"
                )
            self.bucket_name: str = bucket_name
            self.bucket_arn: str = HERE.arn("s3express", f"bucket/{bucket_name}")
        else:
            bucket = self._make_bucket(self.zone_id or _zone_of(network), expire_after)
            self.bucket_name = bucket.ref
            self.bucket_arn = bucket.attr_arn
        self._make_endpoint(network)
        self.place: CheckpointPlace = CheckpointPlace(bucket=self.bucket_name)
        self.environment: dict[str, str] = {URL_VARIABLE: f"s3://{self.bucket_name}/"}

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_read`."""
        return self._grant(grantee, "ReadOnly")

    def grant_list(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_list`; a session that lists may read too."""
        return self._grant(grantee, "ReadOnly")

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_read_write`."""
        return self._grant(grantee)

    def _grant(self, grantee: iam.IGrantable, mode: str | None = None) -> iam.Grant:
        """Let a principal open sessions; a client that asks for no mode gets ReadWrite if it may, else ReadOnly.

        Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-security-iam-identity-policies.html
        and https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-UsingKMSEncryption.html
        """
        condition = None if mode is None else {"StringEquals": {"s3express:SessionMode": mode}}
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3express:CreateSession"],
            resource_arns=[self.bucket_arn],
            conditions=condition,
        )
        if self._key is None:
            return grant
        return grant.combine(self._key.grant(grantee, "kms:Decrypt", *([] if mode else ["kms:GenerateDataKey"])))

    def _make_bucket(self, zone_id: str, expire_after: Duration | None) -> s3express.CfnDirectoryBucket:
        directory = s3express.CfnDirectoryBucket
        default = directory.ServerSideEncryptionByDefaultProperty(
            sse_algorithm="AES256" if self._key is None else "aws:kms",
            kms_master_key_id=None if self._key is None else self._key.key_arn,
        )
        rule = directory.ServerSideEncryptionRuleProperty(
            server_side_encryption_by_default=default, bucket_key_enabled=None if self._key is None else True
        )
        rules = [
            directory.RuleProperty(
                id="abandoned-uploads",
                status="Enabled",
                abort_incomplete_multipart_upload=directory.AbortIncompleteMultipartUploadProperty(
                    days_after_initiation=ABANDONED_UPLOADS.days
                ),
            )
        ]
        if expire_after is not None:
            days = int(expire_after.to_days())
            rules.append(directory.RuleProperty(id="expired", status="Enabled", expiration_in_days=days))
        bucket = directory(
            self,
            "Bucket",
            location_name=zone_id,
            data_redundancy="SingleAvailabilityZone",
            bucket_encryption=directory.BucketEncryptionProperty(server_side_encryption_configuration=[rule]),
            lifecycle_configuration=directory.LifecycleConfigurationProperty(rules=rules),
        )
        keep(bucket)
        self._let_lifecycle_delete(bucket)
        return bucket

    def _let_lifecycle_delete(self, bucket: s3express.CfnDirectoryBucket) -> None:
        """Let S3 Lifecycle open sessions, without which it deletes nothing from a directory bucket.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-lifecycle.html
        """
        statement = iam.PolicyStatement(
            principals=[iam.ServicePrincipal("lifecycle.s3.amazonaws.com")],
            actions=["s3express:CreateSession"],
            resources=[bucket.attr_arn],
            conditions={"StringEquals": {"s3express:SessionMode": "ReadWrite"}},
        )
        document = iam.PolicyDocument(statements=[statement])
        # The bucket stays when the stack goes, and so does what its lifecycle needs.
        keep(s3express.CfnBucketPolicy(self, "BucketPolicy", bucket=bucket.ref, policy_document=document))

    def _make_endpoint(self, network: ClusterNetwork) -> None:
        """Make the gateway endpoint, without which every byte goes through the NAT gateway and is billed there."""
        tables = _route_tables(network)
        if not tables:
            warn(
                self,
                "expressEndpoint",
                "the route table of an imported subnet is not known: make a gateway endpoint for "
                f"com.amazonaws.{Stack.of(self).region}.s3express in its VPC, or checkpoints go through the NAT "
                "gateway, which bills each GB.",
            )
            return
        ec2.CfnVPCEndpoint(
            self,
            "Endpoint",
            vpc_id=network.vpc.vpc_id,
            service_name=f"com.amazonaws.{HERE.region}.s3express",
            vpc_endpoint_type="Gateway",
            route_table_ids=tables,
        )

    def _check_zone(self, zone_id: str | None) -> None:
        region = Stack.of(self).region
        if is_unknown(region):
            return
        known = EXPRESS_ZONES.get(region, ())
        others = {zone.partition("-")[0] for each, zones in EXPRESS_ZONES.items() if each != region for zone in zones}
        if zone_id is not None and zone_id.partition("-")[0] in others:
            raise ValueError(
                f"zone_id must be of {region}, the stack's region, got {shown(zone_id)}: name the id of the zone "
                "that the nodes are in, or leave it out"
            )
        if not known or (zone_id is not None and zone_id not in known):
            where = f"the zones {', '.join(known)} of {region} only" if known else f"no zone of {region}"
            warn(
                self,
                "expressZone",
                f"AWS listed S3 Express One Zone in {where} when this library was released: look whether "
                "https://docs.aws.amazon.com/AmazonS3/latest/userguide/endpoint-directory-buckets-AZ.html has the "
                "nodes' zone by now, or the deployment fails at the bucket.",
            )


def _zone(zone_id: str | None, bucket_name: str | None) -> str | None:
    """Return the zone's id as far as it is known."""
    found = None if bucket_name is None else _BUCKET.fullmatch(bucket_name)
    if found is None:
        return None if zone_id is None or is_unknown(zone_id) else zone_id
    if zone_id is not None and not is_unknown(zone_id) and found[1] != zone_id:
        raise ValueError(
            f"bucket_name must be of the zone {zone_id}, got {shown(bucket_name)}: name a bucket of the nodes' zone, "
            "or leave out zone_id"
        )
    return found[1]


def _zone_of(network: ClusterNetwork) -> str:
    """Return the id of the network's zone, which is known at deployment.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-subnet.html
    """
    subnet = network.node_subnet.node.default_child
    if not isinstance(subnet, ec2.CfnSubnet):
        raise ValueError(  # noqa: TRY004 (it is a setting that is missing)
            f"zone_id is required for an imported subnet, whose zone id CDK does not know: `{_FIND_ID}` prints it "
            f"beside {network.availability_zone}"
        )
    return subnet.attr_availability_zone_id


def _route_tables(network: ClusterNetwork) -> list[str]:
    subnet = network.node_subnet
    return [subnet.route_table.route_table_id] if isinstance(subnet, ec2.Subnet) else []
