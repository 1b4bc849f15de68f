"""What AWS bills beside instances, by the unit; `cluster_contract.listings` has its names in the AWS Price List."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Describes something that AWS bills by the unit.

    Attributes:
        unit: What a price is for, such as `GB-month`.
        what: What it is, as text.
    """

    unit: str
    what: str


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
    **{
        f"fsx-persistent-2-{tier}": Unit(unit="GB-month", what=f"FSx for Lustre PERSISTENT_2 SSD at {tier} MB/s/TiB")
        for tier in (125, 250, 500, 1000)
    },
    **{name: Unit(unit="GB-month", what=f"FSx for Lustre {which}") for name, which in _OTHER_FILE_SYSTEMS.items()},
    "fsx-intelligent-tiering-mbps": Unit(
        unit="MBps-month", what="throughput capacity of FSx for Lustre Intelligent-Tiering"
    ),
    "fsx-metadata-iops": Unit(
        unit="IOPS-month", what="metadata IOPS of FSx for Lustre beyond those that its capacity brings along"
    ),
    "s3-standard": Unit(unit="GB-month", what="S3 Standard"),
    "s3-express-one-zone": Unit(unit="GB-month", what="S3 Express One Zone"),
    "ebs-gp3": Unit(unit="GB-month", what="EBS gp3 volumes"),
    "nat-gateway": Unit(unit="hour", what="NAT gateways"),
    "nat-gateway-data": Unit(unit="GB", what="data through a NAT gateway"),
    "public-ipv4": Unit(unit="hour", what="public IPv4 addresses"),
    "zone-to-zone": Unit(unit="GB", what="data between Availability Zones, each way"),
    "cloudwatch-metric": Unit(unit="month", what="CloudWatch custom metrics, the first 10,000"),
    "cloudwatch-alarm": Unit(unit="month", what="metrics of CloudWatch alarms"),
    "cloudwatch-dashboard": Unit(unit="month", what="CloudWatch dashboards, from the fourth of an account on"),
    "cloudwatch-get-metric-data": Unit(unit="metric", what="metrics that GetMetricData reads"),
    "cloudwatch-request": Unit(unit="request", what="PutMetricData"),
    "lambda-request": Unit(unit="request", what="Lambda requests on arm64"),
    "lambda-gb-second": Unit(unit="GB-second", what="Lambda on arm64"),
    "dynamodb-write": Unit(unit="write request unit", what="DynamoDB on-demand writes"),
    "dynamodb-read": Unit(unit="read request unit", what="DynamoDB on-demand reads"),
    "eks-control-plane": Unit(unit="hour", what="an EKS control plane"),
    "eks-extended-support": Unit(unit="hour", what="extended support of an EKS control plane, beside its price"),
    "prometheus-sample": Unit(unit="sample", what="samples of Amazon Managed Service for Prometheus"),
    "sns-email": Unit(unit="notification", what="SNS e-mails"),
    # What AWS asks for these is on https://aws.amazon.com/pcs/pricing/ alone, and no copy of it is at hand.
    **{
        f"aws-pcs-{part}-{size}": Unit(unit="hour", what=f"{size} {what} of AWS PCS")
        for part, what in (("controller", "controller"), ("accounting", "Slurm accounting"))
        for size in ("small", "medium", "large")
    },
    "aws-pcs-node": Unit(unit="hour", what="node management of AWS PCS"),
}
"""Each item by its name in the price book and in `training-cluster plan --price`."""
