"""Asking AWS side by side: what answers come together, and what one refusal leaves of the others."""

from decimal import Decimal
from typing import Any

import pytest

from cdk_training_cluster.prices import ByRegion, Price, PriceBook, Source
from cdk_training_cluster_stacks.live.asking import LiveAnswer, Nodes, ask
from fake_live_prices import NOW, FakeSession


def asked(session: FakeSession, known: PriceBook | None = None) -> LiveAnswer:
    nodes = [Nodes(group="workers", instance_types=("p5.48xlarge",), count=8)]
    anything: Any = session
    return ask(anything, "us-east-1", nodes, known or PriceBook(), now=NOW, advance=lambda *_: None)


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


def test_a_defect_is_no_refusal() -> None:
    session = FakeSession(("us-east-1",))
    session.ec2["us-east-1"].before_next("GetSpotPlacementScores", "", lambda: None)
    session.ec2["us-east-1"].record = lambda *_, **__: 1 / 0  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        asked(session)
