"""How the AWS Price List names what clusters are billed for: one place for functions, plans and `make prices`.

Its `usagetype` is the name of an item in a region, with a prefix for the region, such as `USW2-NatGateway-Hours`;
some items of us-east-1 have none.
https://docs.aws.amazon.com/cur/latest/userguide/Lineitem-columns.html#Lineitem-details-U
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cluster_contract.bill import without_region
from cluster_contract.price_list import attributes, first_tiers, is_on_demand, products_of_regions
from cluster_contract.prices import on_demand_type, unit_price

# What a Linux instance of the user's own costs without software of AWS's; `Used`: neither a reservation that nothing
# runs in nor one that something does.
_LINUX = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
}
_SAGEMAKER = "ml."


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The name of an item in the Price List.

    Attributes:
        service_code: Its service.
        usage_type: Its `usagetype` without the region's prefix. Empty: its attributes say which it is.
        attributes: What else the list says of it, by the names of its fields.
        region_field: The field with the region that its price is of.
    """

    service_code: str
    usage_type: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    region_field: str = "regionCode"

    def request(self, region: str | None = None) -> dict[str, Any]:
        """Return the parameters of GetProducts.

        Args:
            region: The one region that is asked for. Default: - all.
        """
        wanted = [*self.attributes, *([(self.region_field, region)] if region else [])]
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted]
        if self.usage_type:
            filters.append({"Type": "CONTAINS", "Field": "usagetype", "Value": self.usage_type})
        return {"ServiceCode": self.service_code, "FormatVersion": "aws_v1", "Filters": filters}

    def prices(self, texts: Iterable[str]) -> Iterator[tuple[str, Decimal, Any]]:
        """Yield region, price and date of the item's products.

        Args:
            texts: Products as the API writes them.
        """
        for product in products_of_regions(texts):
            named = without_region(attributes(product).get("usagetype", "")) == self.usage_type
            if is_on_demand(product) and (named or not self.usage_type):
                yield from first_tiers(product)


def _file_system(tier: int) -> Listing:
    # No document of AWS's names these fields; programs that read the list use them. Where the list has no such
    # product, or several, the price stays as it is.
    fields = (("fileSystemType", "Lustre"), ("storageType", "SSD"), ("throughputCapacity", str(tier)))
    return Listing(service_code="AmazonFSx", attributes=fields)


UNIT_LISTINGS: Mapping[str, Listing] = {
    **{f"fsx-persistent-2-{tier}": _file_system(tier) for tier in (125, 250, 500, 1000)},
    "s3-standard": Listing(service_code="AmazonS3", usage_type="TimedStorage-ByteHrs"),
    "ebs-gp3": Listing(service_code="AmazonEC2", usage_type="EBS:VolumeUsage.gp3"),
    "nat-gateway": Listing(service_code="AmazonEC2", usage_type="NatGateway-Hours"),
    "nat-gateway-data": Listing(service_code="AmazonEC2", usage_type="NatGateway-Bytes"),
    "public-ipv4": Listing(service_code="AmazonVPC", usage_type="PublicIPv4:InUseAddress"),
    "zone-to-zone": Listing(
        service_code="AWSDataTransfer", usage_type="DataTransfer-Regional-Bytes", region_field="fromRegionCode"
    ),
    "cloudwatch-metric": Listing(service_code="AmazonCloudWatch", usage_type="CW:MetricMonitorUsage"),
    "cloudwatch-alarm": Listing(service_code="AmazonCloudWatch", usage_type="CW:AlarmMonitorUsage"),
    "cloudwatch-get-metric-data": Listing(service_code="AmazonCloudWatch", usage_type="CW:GMD-Metrics"),
    "cloudwatch-request": Listing(service_code="AmazonCloudWatch", usage_type="CW:Requests"),
    "lambda-request": Listing(service_code="AWSLambda", usage_type="Request-ARM"),
    "lambda-gb-second": Listing(service_code="AWSLambda", usage_type="Lambda-GB-Second-ARM"),
    "dynamodb-write": Listing(service_code="AmazonDynamoDB", usage_type="WriteRequestUnits"),
    "dynamodb-read": Listing(service_code="AmazonDynamoDB", usage_type="ReadRequestUnits"),
    "sns-email": Listing(service_code="AmazonSNS", usage_type="DeliveryAttempts-SMTP"),
    # Its item in the bill, also in us-east-1: `USE1-AmazonEKS-Hours:perCluster`.
    # https://github.com/infracost/infracost/blob/master/internal/resources/aws/eks_cluster.go
    "eks-control-plane": Listing(service_code="AmazonEKS", usage_type="AmazonEKS-Hours:perCluster"),
    "eks-extended-support": Listing(service_code="AmazonEKS", usage_type="AmazonEKS-Hours:extendedSupport"),
}
"""Each unit of the price book that the list is known to have; no source names the items of AWS PCS."""


def on_demand_listing(instance_type: str) -> Listing:
    """Return the name of an On-Demand instance.

    SageMaker bills HyperPod's nodes at prices of its own, as `USE1-Cluster:ml.p5.48xlarge`.
    https://awslabs.github.io/ai-on-sagemaker-hyperpod/

    Args:
        instance_type: Its type, such as `p5.48xlarge` or `ml.p5.48xlarge`.
    """
    if instance_type.startswith(_SAGEMAKER):
        return Listing(service_code="AmazonSageMaker", usage_type=f"Cluster:{instance_type}")
    return Listing(service_code="AmazonEC2", attributes=(("instanceType", instance_type), *_LINUX.items()))


def listing_of(price: str) -> Listing | None:
    """Return the name of what a price is of. None: the list is not known to have it.

    Args:
        price: The name of a price, such as `eks-control-plane` or `on-demand m7i.large`.
    """
    instance_type = on_demand_type(price)
    return UNIT_LISTINGS.get(price) if instance_type is None else on_demand_listing(instance_type)


def has_source(price: str, region: str) -> bool:
    """Say whether a price can become known without its user: from the Price List or from the price book.

    Args:
        price: The name of a price.
        region: The region.
    """
    return listing_of(price) is not None or unit_price(price, region) is not None
