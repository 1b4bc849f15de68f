"""Prices: what EC2 says of Spot Instances, and the Price List of everything else; moto has one Spot price for all.

There are no prices but those that a control request has set: the local AWS invents none.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.calls import Call
from local_aws.launch_facts import Ec2Refusal
from local_aws.refusal import Refusal
from local_aws.services.answers import naive, page

_SPOT_PAGE, _PRODUCT_PAGE = 1000, 100
_KEPT = timedelta(days=90)
_LINUX = frozenset({"Linux/UNIX", "Linux/UNIX (Amazon VPC)"})
# https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
_PRICE_LIST_REGIONS = ("ap-south-1", "eu-central-1", "us-east-1")


@dataclass(frozen=True, kw_only=True)
class _SpotPrice:
    """What a Spot Instance of a type has cost in a zone since a moment, which EC2 tells in whole seconds."""

    region: str
    instance_type: str
    zone: str
    zone_id: str
    usd: str
    since: datetime = field(default_factory=lambda: utcnow().replace(microsecond=0))

    def described(self) -> dict[str, Any]:
        """Return the price as DescribeSpotPriceHistory shows it."""
        return {
            "AvailabilityZone": self.zone,
            "AvailabilityZoneId": self.zone_id,
            "InstanceType": self.instance_type,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": self.usd,
            "Timestamp": self.since,
        }


@dataclass(frozen=True, kw_only=True)
class _Product:
    """Something that AWS sells, at one price."""

    service_code: str
    attributes: Mapping[str, str]
    usd: str
    unit: str
    sku: str = field(default_factory=lambda: f"SKU{token_hex(6).upper()}")

    def listed(self) -> str:
        """Return the product with its On-Demand term as the Price List writes it.

        https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-bulk-api.html
        """
        offer, rate = f"{self.sku}.JRTCKXETXF", f"{self.sku}.JRTCKXETXF.6YS6EN2CT7"
        dimension = {
            "rateCode": rate,
            "unit": self.unit,
            "beginRange": "0",
            "endRange": "Inf",
            "pricePerUnit": {"USD": self.usd},
        }
        product = {
            "product": {"sku": self.sku, "attributes": {**self.attributes, "servicecode": self.service_code}},
            "serviceCode": self.service_code,
            "terms": {"OnDemand": {offer: {"sku": self.sku, "priceDimensions": {rate: dimension}}}},
            "publicationDate": f"{utcnow():%Y-%m-%dT00:00:00Z}",
        }
        return json.dumps(product)


# The fields of a service's products, as far as they are published; a product of another service, or with other
# fields, would be one that AWS is not known to have.
# https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api-find-products.html
_OF_ALL = frozenset({"location", "locationType", "operation", "regionCode", "servicename", "usagetype"})
_FIELDS: Mapping[str, frozenset[str]] = {
    "AmazonEC2": _OF_ALL
    | {"capacitystatus", "instanceType", "marketoption", "operatingSystem", "preInstalledSw", "tenancy"},
    "AmazonEKS": _OF_ALL | {"tiertype"},
    "AmazonSageMaker": _OF_ALL | {"component", "computeType", "instanceName", "instanceType"},
}

_spot_prices: list[_SpotPrice] = []
_products: list[_Product] = []


def set_spot_price(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a Spot price change now."""
    region, name, instance_type = (str(request[key]) for key in ("region", "availability_zone", "instance_type"))
    zone = ec2_backends[str(request["account"])][region].get_zone_by_name(name)
    if zone is None:
        raise ValueError(f"there is no zone {name} in {region}")
    _spot_prices.append(
        _SpotPrice(
            region=region, instance_type=instance_type, zone=name, zone_id=zone.zone_id, usd=f"{request['usd']:.6f}"
        )
    )
    return {}


def set_product_price(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put a product on the Price List, or another price on one with the same attributes."""
    code = str(request["service_code"])
    unknown = sorted(set(request["attributes"]) - _FIELDS.get(code, frozenset()))
    if unknown:
        raise ValueError(f"no product of {code} is known to have the field {unknown[0]}")
    made = _Product(
        service_code=code,
        attributes=dict(request["attributes"]),
        usd=f"{request['usd']:.10f}",
        unit=str(request["unit"]),
    )
    same = (made.service_code, made.attributes)
    _products[:] = [each for each in _products if (each.service_code, each.attributes) != same] + [made]
    return {}


def describe_spot_price_history(response: Any) -> ActionResult:
    """Answer DescribeSpotPriceHistory: the changes between two times, and the price at the first; newest first.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
    """
    params = response._get_params()
    response.error_on_dryrun()
    filters = response._filters_from_querystring()
    types = params.get("InstanceTypes") or filters.pop("instance-type", None)
    unknown = sorted(set(types or ()) - set(INSTANCE_TYPES))
    if unknown:
        raise Ec2Refusal("InvalidParameterValue", f"Invalid value '{unknown[0]}' for instanceType.")
    zones = [params["AvailabilityZone"]] if "AvailabilityZone" in params else filters.pop("availability-zone", None)
    systems = params.get("ProductDescriptions") or filters.pop("product-description", None)
    if filters:
        raise NotImplementedError(f"the filter {', '.join(sorted(filters))} of DescribeSpotPriceHistory")
    end = params.get("EndTime") or utcnow()
    start = params.get("StartTime") or end - _KEPT
    wanted = [
        each
        for each in _spot_prices
        if each.region == response.region
        and (not types or each.instance_type in types)
        and (not zones or each.zone in zones)
        and (not systems or _LINUX & set(systems))
    ]
    in_force = list(_in_force(wanted, naive(start), naive(end)))
    # Of one second the later change comes first.
    in_force.reverse()
    found = sorted(in_force, key=lambda each: each.since, reverse=True)
    some, token = page(found, params.get("NextToken"), params.get("MaxResults") or _SPOT_PAGE)
    return ActionResult({"SpotPriceHistory": [each.described() for each in some], "NextToken": token or ""})


def _in_force(prices: Sequence[_SpotPrice], start: datetime, end: datetime) -> Iterator[_SpotPrice]:
    """Yield the changes in a time, and of each type and zone the last one before it."""
    before = {(each.instance_type, each.zone): each for each in prices if each.since <= start}
    yield from before.values()
    yield from (each for each in prices if start < each.since <= end)


# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_Filter.html
_MATCHES: Mapping[str, Callable[[str, str], bool]] = {
    "TERM_MATCH": lambda has, wanted: has == wanted,
    "EQUALS": lambda has, wanted: has == wanted,
    "CONTAINS": lambda has, wanted: wanted in has,
    "ANY_OF": lambda has, wanted: has in wanted.split(","),
    "NONE_OF": lambda has, wanted: has not in wanted.split(","),
}


def get_products(call: Call, region: str) -> Mapping[str, Any]:
    """Answer the Price List's GetProducts, a service that moto lacks.

    https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
    """
    if region not in _PRICE_LIST_REGIONS:
        raise NotImplementedError(f"the Price List in {region}: AWS has it in {', '.join(_PRICE_LIST_REGIONS)} alone")
    params = call.parameters()
    size = int(params.get("MaxResults") or _PRODUCT_PAGE)
    if not 1 <= size <= _PRODUCT_PAGE:
        raise Refusal("InvalidParameterException", f"MaxResults must be between 1 and {_PRODUCT_PAGE}, got {size}")
    conditions = params.get("Filters") or []
    found = [
        each.listed()
        for each in _products
        if each.service_code == params["ServiceCode"]
        and all(
            one["Field"] in each.attributes and _MATCHES[one["Type"]](each.attributes[one["Field"]], one["Value"])
            for one in conditions
        )
    ]
    some, token = page(found, params.get("NextToken"), size)
    return {"FormatVersion": "aws_v1", "PriceList": some, **({"NextToken": token} if token else {})}
