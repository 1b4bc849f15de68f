"""Prices that AWS is asked for: recorded answers in real clients, which botocore checks against its models."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster.prices.book import document_of
from cdk_training_cluster_cli.money.prices.cache import cache_file, keep_prices, kept_prices
from cdk_training_cluster_cli.money.prices.price_list import on_demand_prices, unit_prices
from cdk_training_cluster_cli.money.prices.spot_market import placement_scores, spot_market

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _client(service: Any) -> Any:
    return boto3.client(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106


@pytest.fixture
def pricing() -> Iterator[tuple[Any, Stubber]]:
    client = _client("pricing")
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def ec2() -> Iterator[tuple[Any, Stubber]]:
    client = _client("ec2")
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


def product(region: str, usd: str, *, first: str = "0", currency: str = "USD", **attributes: str) -> str:
    """Return a product as the Price List writes it."""
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute Instance",
                "attributes": {"regionCode": region, "locationType": "AWS Region"} | attributes,
                "sku": "ABC",
            },
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {
                    "ABC.JRTCKXETXF": {
                        "priceDimensions": {
                            "ABC.JRTCKXETXF.6YS6EN2CT7": {
                                "unit": "Hrs",
                                "beginRange": first,
                                "endRange": "Inf",
                                "pricePerUnit": {currency: usd},
                            }
                        }
                    }
                }
            },
            "publicationDate": "2026-11-20T20:20:20Z",
        }
    )


_FILTERS = [
    {"Type": "TERM_MATCH", "Field": field, "Value": value}
    for field, value in {
        "instanceType": "p5.48xlarge",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "tenancy": "Shared",
        "capacitystatus": "Used",
    }.items()
]


def test_on_demand_prices_are_those_of_regions_by_their_codes_on_all_pages(pricing: tuple[Any, Stubber]) -> None:
    client, stubber = pricing
    request = {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": _FILTERS}
    stubber.add_response(
        "get_products",
        {
            "PriceList": [
                product("us-east-1", "55.0400000000", marketoption="OnDemand"),
                product("us-east-1", "11.0000000000", marketoption="CapacityBlock"),
                product("us-east-1-atl-2", "66.0000000000", locationType="AWS Local Zone"),
                product("eu-north-1", "0.0000000000"),
                product("cn-north-1", "400.0000000000", currency="CNY"),
            ],
            "NextToken": "more",
        },
        request,
    )
    stubber.add_response(
        "get_products",
        {"PriceList": [product("us-west-2", "55.04"), product("eu-west-2", "70"), product("eu-west-2", "71.552")]},
        {**request, "NextToken": "more"},
    )
    found = on_demand_prices(client, ["p5.48xlarge"])
    assert found.several == (("p5.48xlarge", "eu-west-2"),)
    assert {(name, price.region, price.usd) for name, price in found.prices.items()} == {
        ("p5.48xlarge", "us-east-1", Decimal("55.04")),
        ("p5.48xlarge", "us-west-2", Decimal("55.04")),
    }
    assert {(price.source.as_of, price.unit) for _, price in found.prices.items()} == {
        (date(2026, 11, 20), "instance-hour")
    }


def test_a_unit_is_found_by_its_usage_type_whatever_the_region_s_prefix(pricing: tuple[Any, Stubber]) -> None:
    client, stubber = pricing
    stubber.add_response(
        "get_products",
        {
            "PriceList": [
                product("us-east-1", "0.0000006250", usagetype="WriteRequestUnits"),
                product("us-east-1", "0.0000007800", usagetype="IA-WriteRequestUnits"),
                product("us-west-2", "0.0000006250", usagetype="USW2-WriteRequestUnits"),
                product("eu-west-1", "0.0000007050", usagetype="EU-WriteRequestUnits"),
                product("eu-west-1", "0.0000001000", usagetype="EU-WriteRequestUnits", first="1000"),
            ]
        },
        {
            "ServiceCode": "AmazonDynamoDB",
            "FormatVersion": "aws_v1",
            "Filters": [{"Type": "CONTAINS", "Field": "usagetype", "Value": "WriteRequestUnits"}],
        },
    )
    assert {(price.region, price.usd) for _, price in unit_prices(client, "dynamodb-write").prices.items()} == {
        ("us-east-1", Decimal("0.000000625")),
        ("us-west-2", Decimal("0.000000625")),
        ("eu-west-1", Decimal("0.000000705")),
    }


def test_a_transfer_is_priced_in_the_region_that_it_leaves(pricing: tuple[Any, Stubber]) -> None:
    client, stubber = pricing
    left = {"fromLocationType": "AWS Region", "fromRegionCode": "us-west-2"}
    left["usagetype"] = "USW2-DataTransfer-Regional-Bytes"
    stubber.add_response(
        "get_products",
        {
            "PriceList": [
                product("", "0.01", locationType="", **left),
                product("us-west-2", "9", usagetype="DataTransfer-Regional-Bytes", locationType="AWS Local Zone"),
            ]
        },
    )
    assert [(each.region, each.usd) for _, each in unit_prices(client, "zone-to-zone").prices.items()] == [
        ("us-west-2", Decimal("0.01"))
    ]


def test_what_the_library_cannot_find_in_the_list_is_not_asked_for(pricing: tuple[Any, Stubber]) -> None:
    assert unit_prices(pricing[0], "s3-express-one-zone").prices.items() == ()


def _entry(zone: str, usd: str, *, minutes: int = 0, name: str = "p5.48xlarge") -> dict[str, Any]:
    return {
        "AvailabilityZone": zone,
        "AvailabilityZoneId": f"id-{zone}",
        "InstanceType": name,
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": usd,
        "Timestamp": NOW - timedelta(minutes=minutes),
    }


def test_spot_prices_are_the_latest_of_each_zone_without_local_zones(ec2: tuple[Any, Stubber]) -> None:
    client, stubber = ec2
    request = {
        "InstanceTypes": ["p5.48xlarge"],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": NOW,
        "EndTime": NOW,
    }
    first = [_entry("us-east-1b", "30.1", minutes=9), _entry("us-east-1-atl-2a", "10.2397")]
    stubber.add_response("describe_spot_price_history", {"SpotPriceHistory": first, "NextToken": "more"}, request)
    second = [
        _entry("us-east-1b", "31.5", minutes=1),
        _entry("us-east-1a", "17.63"),
        _entry("us-east-1a", "99", minutes=5),
    ]
    stubber.add_response(
        "describe_spot_price_history", {"SpotPriceHistory": second}, {**request, "NextToken": "more"}
    )
    market = spot_market(client, "us-east-1", ["p5.48xlarge"], NOW)
    assert [(each.zone, each.usd) for each in market.zones] == [
        ("us-east-1a", Decimal("17.63")),
        ("us-east-1b", Decimal("31.5")),
    ]
    found = market.ranges.get("p5.48xlarge", "us-east-1")
    assert found is not None
    assert (found.low, found.high, found.zones) == (
        Decimal("17.63"),
        Decimal("31.5"),
        ("id-us-east-1a", "id-us-east-1b"),
    )
    assert found.source.as_of == date(2026, 11, 22)


def test_a_region_without_spot_prices_has_none(ec2: tuple[Any, Stubber]) -> None:
    client, stubber = ec2
    stubber.add_response("describe_spot_price_history", {"SpotPriceHistory": []})
    market = spot_market(client, "us-east-1", ["p5.48xlarge"], NOW)
    assert (market.zones, market.ranges.items()) == ((), ())


def test_placement_scores_are_of_zones_the_likeliest_first(ec2: tuple[Any, Stubber]) -> None:
    client, stubber = ec2
    stubber.add_response(
        "get_spot_placement_scores",
        {
            "SpotPlacementScores": [
                {"Region": "us-east-1", "AvailabilityZoneId": "use1-az1", "Score": 1},
                {"Region": "us-west-2", "AvailabilityZoneId": "usw2-az3", "Score": 9},
            ]
        },
        {
            "InstanceTypes": ["p5.48xlarge"],
            "TargetCapacity": 8,
            "TargetCapacityUnitType": "units",
            "SingleAvailabilityZone": True,
            "RegionNames": ["us-east-1", "us-west-2"],
        },
    )
    scores = placement_scores(client, ["us-east-1", "us-west-2"], ["p5.48xlarge"], 8)
    assert [(each.region, each.zone_id, each.score) for each in scores] == [
        ("us-west-2", "usw2-az3", 9),
        ("us-east-1", "use1-az1", 1),
    ]


def test_the_cache_keeps_prices_with_source_and_date(tmp_path: Path) -> None:
    file = cache_file({"XDG_CACHE_HOME": str(tmp_path)})
    assert file is not None
    assert kept_prices(file).on_demand.items() == ()
    keep_prices(file, committed_prices())
    assert document_of(kept_prices(file)) == document_of(committed_prices())
    assert [each.name for each in file.parent.iterdir()] == ["prices.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"units": [{}]}', '{"spot": [{"source": "", "prices": {"a": {"b": [1]}}}]}']
)
def test_a_cache_that_is_no_price_book_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="is no price book; delete it, and ask again with --live"):
        kept_prices(file)


@pytest.mark.parametrize("given", ["", "relative"])
def test_the_cache_is_in_the_user_s_own_directory(given: str) -> None:
    assert cache_file({"XDG_CACHE_HOME": given}) == Path.home() / ".cache/cdk-training-cluster/prices.json"


def test_an_empty_book_is_kept_too(tmp_path: Path) -> None:
    keep_prices(tmp_path / "a" / "prices.json", PriceBook())
    assert kept_prices(tmp_path / "a" / "prices.json").units.items() == ()
