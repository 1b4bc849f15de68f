"""What AWS bills beside instances: the unit, and how the AWS Price List names it.

The Price List's `usagetype` is the name of an item in a region, with a prefix for every region but us-east-1:
`USW2-NatGateway-Hours`. https://docs.aws.amazon.com/cur/latest/userguide/Lineitem-columns.html#Lineitem-details-U
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Describes something that AWS bills by the unit.

    Attributes:
        unit: What a price is for, such as `GB-month`.
        what: What it is, as text.
        service_code: The service in the Price List. None: this library does not know how the list names the item, so
            that a refresh leaves its price as it is.
        usage_type: The item's `usagetype` without the region's prefix. Empty: its attributes say which it is.
        attributes: What else the list says of it, by the names of its fields.
        region_field: The field with the region that its price is of.
    """

    unit: str
    what: str
    service_code: str | None = None
    usage_type: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    region_field: str = "regionCode"


def _file_system(tier: int) -> Unit:
    # No document of AWS's names these fields; programs that read the list use them. Where the list has no such
    # product, or several, the price stays as it is.
    return Unit(
        unit="GB-month",
        what=f"FSx for Lustre PERSISTENT_2 SSD at {tier} MB/s/TiB",
        service_code="AmazonFSx",
        attributes=(("fileSystemType", "Lustre"), ("storageType", "SSD"), ("throughputCapacity", str(tier))),
    )


# How the list names these is not known.
_OTHER_FILE_SYSTEMS = {
    **{f"fsx-persistent-1-{tier}": f"PERSISTENT_1 SSD at {tier} MB/s/TiB" for tier in (50, 100, 200)},
    **{f"fsx-persistent-1-hdd-{tier}": f"PERSISTENT_1 HDD at {tier} MB/s/TiB" for tier in (12, 40)},
    **{
        f"fsx-persistent-1-hdd-{tier}-read": f"PERSISTENT_1 HDD at {tier} MB/s/TiB with an SSD cache"
        for tier in (12, 40)
    },
    "fsx-scratch-2": "SCRATCH_2",
    "fsx-scratch-1": "SCRATCH_1",
    "fsx-intelligent-tiering-read-cache": "Intelligent-Tiering's read cache",
}

UNITS = {
    **{f"fsx-persistent-2-{tier}": _file_system(tier) for tier in (125, 250, 500, 1000)},
    **{name: Unit(unit="GB-month", what=f"FSx for Lustre {which}") for name, which in _OTHER_FILE_SYSTEMS.items()},
    "fsx-intelligent-tiering-mbps": Unit(
        unit="MBps-month", what="throughput capacity of FSx for Lustre Intelligent-Tiering"
    ),
    "fsx-metadata-iops": Unit(
        unit="IOPS-month", what="metadata IOPS of FSx for Lustre beyond those that its capacity brings along"
    ),
    "s3-standard": Unit(
        unit="GB-month", what="S3 Standard", service_code="AmazonS3", usage_type="TimedStorage-ByteHrs"
    ),
    "s3-express-one-zone": Unit(unit="GB-month", what="S3 Express One Zone"),
    "ebs-gp3": Unit(
        unit="GB-month", what="EBS gp3 volumes", service_code="AmazonEC2", usage_type="EBS:VolumeUsage.gp3"
    ),
    "nat-gateway": Unit(unit="hour", what="NAT gateways", service_code="AmazonEC2", usage_type="NatGateway-Hours"),
    "nat-gateway-data": Unit(
        unit="GB", what="data through a NAT gateway", service_code="AmazonEC2", usage_type="NatGateway-Bytes"
    ),
    "public-ipv4": Unit(
        unit="hour", what="public IPv4 addresses", service_code="AmazonVPC", usage_type="PublicIPv4:InUseAddress"
    ),
    "zone-to-zone": Unit(
        unit="GB",
        what="data between Availability Zones, each way",
        service_code="AWSDataTransfer",
        usage_type="DataTransfer-Regional-Bytes",
        region_field="fromRegionCode",
    ),
    "cloudwatch-metric": Unit(
        unit="month",
        what="CloudWatch custom metrics, the first 10,000",
        service_code="AmazonCloudWatch",
        usage_type="CW:MetricMonitorUsage",
    ),
    "cloudwatch-alarm": Unit(
        unit="month",
        what="metrics of CloudWatch alarms",
        service_code="AmazonCloudWatch",
        usage_type="CW:AlarmMonitorUsage",
    ),
    "cloudwatch-dashboard": Unit(unit="month", what="CloudWatch dashboards, from the fourth of an account on"),
    "cloudwatch-get-metric-data": Unit(
        unit="metric",
        what="metrics that GetMetricData reads",
        service_code="AmazonCloudWatch",
        usage_type="CW:GMD-Metrics",
    ),
    "cloudwatch-request": Unit(
        unit="request", what="PutMetricData", service_code="AmazonCloudWatch", usage_type="CW:Requests"
    ),
    "lambda-request": Unit(
        unit="request", what="Lambda requests on arm64", service_code="AWSLambda", usage_type="Request-ARM"
    ),
    "lambda-gb-second": Unit(
        unit="GB-second",
        what="Lambda on arm64",
        service_code="AWSLambda",
        usage_type="Lambda-GB-Second-ARM",
    ),
    "dynamodb-write": Unit(
        unit="write request unit",
        what="DynamoDB on-demand writes",
        service_code="AmazonDynamoDB",
        usage_type="WriteRequestUnits",
    ),
    "dynamodb-read": Unit(
        unit="read request unit",
        what="DynamoDB on-demand reads",
        service_code="AmazonDynamoDB",
        usage_type="ReadRequestUnits",
    ),
    "eks-control-plane": Unit(unit="hour", what="an EKS control plane in standard support"),
    "eks-system-node": Unit(unit="hour", what="a system node of an EKS cluster"),
    "prometheus-sample": Unit(unit="sample", what="samples of Amazon Managed Service for Prometheus"),
    "sns-email": Unit(
        unit="notification", what="SNS e-mails", service_code="AmazonSNS", usage_type="DeliveryAttempts-SMTP"
    ),
    # What AWS asks for these is on https://aws.amazon.com/pcs/pricing/ alone, and no copy of it is at hand.
    **{
        f"aws-pcs-{part}-{size}": Unit(unit="hour", what=f"{size} {what} of AWS PCS")
        for part, what in (("controller", "controller"), ("accounting", "Slurm accounting"))
        for size in ("small", "medium", "large")
    },
    "aws-pcs-node": Unit(unit="hour", what="node management of AWS PCS"),
    "aws-pcs-login-node": Unit(unit="hour", what="login node of Slurm, its instance and volume"),
    "hyperpod-controller": Unit(unit="hour", what="controller node of Slurm on HyperPod"),
    "hyperpod-login": Unit(unit="hour", what="login node of Slurm on HyperPod"),
}
"""Each item by its name in the price book and in `training-cluster plan --price`."""
