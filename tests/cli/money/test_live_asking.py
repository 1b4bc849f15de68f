"""Asking AWS side by side: what answers come together, and what one refusal leaves of the others."""

from decimal import Decimal
from typing import Any

import pytest

from cdk_training_cluster.prices import ByRegion, Price, PriceBook, Source
from cdk_training_cluster_cli.money.prices.asking import LiveAnswer, Nodes, ask
from fake_live_prices import NOW, FakeSession

_UNITS = ("fsx-persistent-2-500", "s3-express-one-zone", "zone-to-zone")


def asked(session: FakeSession, known: PriceBook | None = None) -> LiveAnswer:
    nodes = [Nodes(group="workers", instance_types=("p5.48xlarge",), count=8)]
    anything: Any = session
    known = known or PriceBook()
    return ask(anything, "us-east-1", nodes, known, units=_UNITS, now=NOW, advance=lambda *_: None)


_TWELVE = tuple(f"eu-{place}-{number}" for place in ("west", "south", "north", "central") for number in (1, 2, 3))


def test_every_region_that_sells_the_types_is_asked_and_ten_at_a_time_are_scored() -> None:
    session = FakeSession((*_TWELVE, "us-east-1"))
    answer = asked(session)
    assert answer.refusals == ()
    assert answer.book.on_demand.regions("p5.48xlarge") == tuple(sorted((*_TWELVE, "us-east-1")))
    assert answer.book.spot.regions("p5.48xlarge") == tuple(sorted((*_TWELVE, "us-east-1")))
    assert [(each.zone, each.usd) for each in answer.zones] == [("us-east-1a", Decimal("20.5"))]
    requests = [
        given for operation, given in session.ec2["us-east-1"].requests if operation == "GetSpotPlacementScores"
    ]
    assert sorted(len(given["RegionNames"]) for given in requests) == [1, 2, 10]
    assert ["us-east-1"] in [given["RegionNames"] for given in requests]
    assert answer.zones[0].zone_id == "us-east-1-id"
    assert [score.score for _, score in answer.scores] == sorted((s.score for _, s in answer.scores), reverse=True)
    assert len(answer.scores) == 13


def test_what_aws_refuses_is_told_and_the_rest_goes_on() -> None:
    session = FakeSession(("us-east-1", "us-west-2"))
    session.ec2["us-east-1"].fail_next("GetSpotPlacementScores", "UnauthorizedOperation")
    session.ec2["us-west-2"].fail_next("DescribeSpotPriceHistory", "AuthFailure")
    answer = asked(session)
    assert answer.refusals == (
        "ec2:DescribeSpotPriceHistory was not answered for us-west-2 (AuthFailure): what it says is unknown, or "
        "older",
        "ec2:GetSpotPlacementScores was not answered for workers (UnauthorizedOperation): what it says is unknown, "
        "or older",
    )
    assert answer.book.spot.regions("p5.48xlarge") == ("us-east-1",)
    assert [score.region for _, score in answer.scores] == ["us-west-2"]


def test_without_the_price_list_the_known_prices_say_where_types_are_sold() -> None:
    session = FakeSession(("us-west-2",))
    session.pricing.fail_next("GetProducts", "AccessDeniedException", group="p5.48xlarge")
    price = Price(usd=Decimal(55), unit="instance-hour", region="us-west-2", source=Source(address=""))
    answer = asked(session, PriceBook(on_demand=ByRegion([("p5.48xlarge", price)])))
    assert answer.refusals == (
        "pricing:GetProducts was not answered for p5.48xlarge (AccessDeniedException): what it says is unknown, "
        "or older",
    )
    assert answer.book.spot.regions("p5.48xlarge") == ("us-east-1", "us-west-2")


def test_only_what_is_planned_is_asked_for_and_in_the_cluster_s_region() -> None:
    session = FakeSession(("us-east-1",))
    asked(session)
    requests = [{each["Field"]: each["Value"] for each in given["Filters"]} for _, given in session.pricing.requests]
    assert sorted((wanted for wanted in requests if "instanceType" not in wanted), key=len, reverse=True) == [
        {
            "fileSystemType": "Lustre",
            "storageType": "SSD",
            "throughputCapacity": "500",
            "regionCode": "us-east-1",
        },
        {"usagetype": "DataTransfer-Regional-Bytes", "fromRegionCode": "us-east-1"},
    ]


def test_two_prices_of_one_thing_are_unknown_and_named() -> None:
    session = FakeSession(("us-east-1", "us-east-1", "us-west-2"))
    prices = iter(("50.00", "51.00", "50.00"))
    session.pricing.price = lambda: next(prices)
    answer = asked(session)
    assert answer.refusals == (
        "the AWS Price List has more than one price of p5.48xlarge in us-east-1: it is unknown which holds",
    )
    assert answer.book.on_demand.regions("p5.48xlarge") == ("us-west-2",)


def test_a_defect_is_no_refusal() -> None:
    session = FakeSession(("us-east-1",))
    session.ec2["us-east-1"].before_next("GetSpotPlacementScores", "", lambda: None)
    session.ec2["us-east-1"].record = lambda *_, **__: 1 / 0  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        asked(session)
