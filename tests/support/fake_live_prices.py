"""Fakes of the Price List and of EC2's Spot market, and a session with these behind it."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from fake_service import FakePaginator, FakeService

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


class FakePricing(FakeService):
    """A Price List with one price for p5.48xlarge in each region."""

    def __init__(self, regions: Sequence[str]) -> None:
        super().__init__("pricing")
        self._regions = regions
        self.price: Callable[[], str] = lambda: "50.00"

    def get_paginator(self, operation: str) -> FakePaginator:
        assert operation == "get_products"
        return FakePaginator(self._products)

    def _products(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        wanted = {each["Field"]: each["Value"] for each in parameters["Filters"]}
        self.record("GetProducts", parameters, names=tuple(wanted.values()))
        regions = self._regions if wanted.get("instanceType") == "p5.48xlarge" else ()
        yield {"PriceList": [self._product(region) for region in regions]}

    def _product(self, region: str) -> str:
        dimension = {"beginRange": "0", "pricePerUnit": {"USD": self.price()}}
        return json.dumps(
            {
                "product": {"attributes": {"regionCode": region, "locationType": "AWS Region"}},
                "terms": {"OnDemand": {"offer": {"priceDimensions": {"rate": dimension}}}},
                "publicationDate": "2026-11-20T00:00:00Z",
            }
        )


class FakeSpot(FakeService):
    """EC2 in a region: one Spot price in its zone a, and a score for each region that is asked for."""

    def __init__(self, region: str) -> None:
        super().__init__("ec2")
        self._region = region
        self.enabled: Sequence[str] = ()

    def get_paginator(self, operation: str) -> FakePaginator:
        return FakePaginator(
            {"describe_spot_price_history": self._history, "get_spot_placement_scores": self._scores}[operation]
        )

    def describe_regions(self) -> dict[str, Any]:
        """Name the enabled regions."""
        self.record("DescribeRegions", {})
        return {"Regions": [{"RegionName": region} for region in self.enabled]}

    def _history(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.record("DescribeSpotPriceHistory", parameters)
        yield {
            "SpotPriceHistory": [
                {
                    "AvailabilityZone": f"{self._region}a",
                    "AvailabilityZoneId": f"{self._region}-id",
                    "InstanceType": name,
                    "SpotPrice": "20.5",
                    "Timestamp": NOW,
                }
                for name in parameters["InstanceTypes"]
            ]
        }

    def _scores(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.record("GetSpotPlacementScores", parameters)
        yield {
            "SpotPlacementScores": [
                {"Region": region, "AvailabilityZoneId": f"{region}-id", "Score": 1 + len(region) % 9}
                for region in parameters["RegionNames"]
            ]
        }


class FakeSession:
    """A session of boto3 with fakes behind it."""

    def __init__(self, regions: Sequence[str]) -> None:
        self.pricing = FakePricing(regions)
        self.ec2 = {region: FakeSpot(region) for region in {*regions, "us-east-1"}}
        for client in self.ec2.values():
            client.enabled = sorted(self.ec2)

    def get_credentials(self) -> object:
        return object()

    def client(self, service: str, *, region_name: str) -> FakeService:
        return self.pricing if service == "pricing" else self.ec2[region_name]
