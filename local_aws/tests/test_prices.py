"""Prices on order: the Spot prices of a zone as they change, and products of the Price List."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

TYPE = "p5.48xlarge"


def _spot(aws: LocalAws, **more: Any) -> list[tuple[str, str]]:
    pages = aws.client("ec2").get_paginator("describe_spot_price_history").paginate(InstanceTypes=[TYPE], **more)
    return [(one["AvailabilityZone"][-1], one["SpotPrice"]) for page in pages for one in page["SpotPriceHistory"]]


def test_a_spot_price_holds_in_its_zone_until_it_changes(aws: LocalAws) -> None:
    assert _spot(aws) == []
    aws.set_spot_price(TYPE, "us-east-1a", 20)
    aws.set_spot_price(TYPE, "us-east-1b", 31.5)
    aws.set_spot_price(TYPE, "us-east-1a", 22.25)
    assert _spot(aws, PaginationConfig={"PageSize": 1}) == [
        ("a", "22.250000"),
        ("b", "31.500000"),
        ("a", "20.000000"),
    ]
    later = datetime.now(UTC) + timedelta(hours=1)
    assert sorted(_spot(aws, StartTime=later, EndTime=later)) == [("a", "22.250000"), ("b", "31.500000")]
    assert _spot(aws, ProductDescriptions=["Windows"]) == []
    in_b = [{"Name": "availability-zone", "Values": ["us-east-1b"]}]
    assert _spot(aws, ProductDescriptions=["Linux/UNIX"], Filters=in_b) == [("b", "31.500000")]


def _products(aws: LocalAws, *conditions: tuple[str, str, str], region: str = "us-east-1") -> list[Any]:
    filters = [dict(zip(("Type", "Field", "Value"), each, strict=True)) for each in conditions]
    pages = (
        aws.client("pricing", region)
        .get_paginator("get_products")
        .paginate(ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": 1})
    )
    return [json.loads(text) for page in pages for text in page["PriceList"]]


def test_products_are_found_by_their_attributes_and_a_new_price_takes_the_old_ones_place(aws: LocalAws) -> None:
    for usd, region in ((98.32, "us-east-1"), (113.07, "us-west-2"), (55.04, "us-east-1")):
        aws.set_product_price("AmazonEC2", {"instanceType": TYPE, "regionCode": region}, usd)
    assert len(_products(aws, ("TERM_MATCH", "instanceType", TYPE))) == 2
    assert _products(aws, ("EQUALS", "instanceType", "p4d.24xlarge")) == []
    (here,) = _products(aws, ("CONTAINS", "instanceType", "p5"), ("NONE_OF", "regionCode", "us-west-2,us-west-1"))
    (offer,) = here["terms"]["OnDemand"].values()
    (dimension,) = offer["priceDimensions"].values()
    assert (here["product"]["attributes"]["regionCode"], dimension["pricePerUnit"]["USD"]) == (
        "us-east-1",
        "55.0400000000",
    )


def test_a_field_that_a_product_lacks_finds_none_and_unpublished_products_are_refused(aws: LocalAws) -> None:
    aws.set_product_price("AmazonEC2", {"instanceType": TYPE, "regionCode": "us-east-1"}, 55.04)
    for kind, value in (("TERM_MATCH", "x"), ("CONTAINS", "x"), ("NONE_OF", "x")):
        assert _products(aws, (kind, "controllerSize", value)) == []
    for service, field in (("AmazonEKS", "clusterSize"), ("AWSPCS", "usagetype")):
        with pytest.raises(Exception, match=f"no product of {service} is known to have the field {field}"):
            aws.set_product_price(service, {field: "x"}, 1)


def test_the_price_list_is_in_few_regions(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match="the Price List in eu-west-1"):
        _products(aws, region="eu-west-1")


def test_the_end_of_an_instance_is_said_in_gmt(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]["ImageId"]
    launched = ec2.run_instances(ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1)["Instances"]
    ids = [launched[0]["InstanceId"]]
    ec2.terminate_instances(InstanceIds=ids)
    (instance,) = ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"]
    assert instance["State"]["Name"] == "terminated"
    assert re.fullmatch(r"User initiated \(20[\d-]{8} [\d:]{8} GMT\)", instance["StateTransitionReason"])
