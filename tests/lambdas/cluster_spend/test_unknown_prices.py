"""What has no known price: named, and counted as soon as it has one."""

from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.errors import PartialFailureError
from spend_scene import P5, SpendScene


def test_what_has_no_price_is_named_and_counted_as_soon_as_it_has_one() -> None:
    scene = SpendScene()
    scene.add_spot(None)
    scene.add(instance_type="p9.48xlarge")
    scene.add()
    scene.tick(0)
    told = scene.tick(60)
    assert told["unknown_prices"] == ["on-demand p9.48xlarge", "spot p5.48xlarge us-east-1b"]
    assert told["month_to_date_usd"] == told["usd_per_hour"] == P5
    scene.ec2.spot_prices["p5.48xlarge", "us-east-1b"] = "10"
    scene.details["prices"] = {"p9.48xlarge": 100.0}
    told = scene.tick(60)
    assert told["unknown_prices"] == []
    assert told["month_to_date_usd"] == pytest.approx(2 * (P5 + 10 + 100))


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("on-demand p9.48xlarge", {}),
        ("spot p5.48xlarge us-east-1b", {}),
        ("fsx-persistent-2-500", {"file-system": {"fsx-persistent-2-500": 1.0}}),
        ("file system whose size", {"file-system": {"file system whose size": 1.0}}),
    ],
)
def test_what_is_no_longer_billed_is_counted_at_the_price_that_is_stated_under_its_name(
    name: str, fixed: dict[str, dict[str, float]]
) -> None:
    scene = SpendScene(details={"fixed": fixed})
    if name.startswith("spot"):
        scene.add_spot(None)
    elif not fixed:
        scene.add(instance_type="p9.48xlarge")
    scene.tick(0)
    assert scene.tick(60)["unknown_prices"] == [name]
    scene.ec2.nodes.clear()
    scene.details = {"prices": {name: 10.0}}
    told = scene.tick(60)
    assert (told["unknown_prices"], told["month_to_date_usd"]) == ([], 10)


@pytest.mark.parametrize("spot", [True, False])
def test_aws_is_asked_for_the_price_of_what_is_no_longer_listed(spot: bool) -> None:
    scene = SpendScene()
    scene.tick(0)
    scene.now += timedelta(minutes=1)
    (node,) = scene.add_spot(None) if spot else scene.add(instance_type="p9.48xlarge")
    scene.now += timedelta(minutes=3)
    scene.end(node)
    scene.pricing.fail_next("GetProducts", "ThrottlingException")
    assert scene.tick(1)["month_to_date_usd"] == 0
    scene.ec2.nodes.clear()
    scene.ec2.spot_prices["p5.48xlarge", "us-east-1b"] = "100"
    scene.pricing.usd["p9.48xlarge"] = ("100",)
    assert scene.tick(60)["month_to_date_usd"] == 5


def test_what_had_no_price_when_its_month_ended_is_counted_in_that_month_when_it_has_one() -> None:
    scene = SpendScene(now=datetime(2026, 11, 30, 22, 0, tzinfo=UTC))
    (node,) = scene.add(instance_type="p9.48xlarge")
    scene.tick(0)
    scene.tick(60)
    scene.end(node)
    assert scene.tick(90)["unknown_prices"] == ["on-demand p9.48xlarge"]
    scene.details["prices"] = {"p9.48xlarge": 100.0}
    assert scene.tick()["unknown_prices"] == []
    assert (scene.spent("2026-11"), scene.spent("2026-12")) == (100, 0)


def test_a_stated_price_counts_before_the_list() -> None:
    scene = SpendScene(details={"prices": {"p5.48xlarge": 31.5}})
    scene.add()
    told = scene.tick(0)
    assert told["prices"]["on-demand p5.48xlarge"] == {
        "usd": "31.5",
        "source": "stated in the budget's prices",
        "as_of": None,
    }
    assert told["usd_per_hour"] == 31.5


def test_spot_prices_that_cannot_be_read_fail_the_run_and_lose_nothing() -> None:
    scene = SpendScene()
    scene.add_spot("10")
    scene.add()
    scene.tick(0)
    scene.ec2.fail_next("DescribeSpotPriceHistory", "RequestLimitExceeded")
    with pytest.raises(PartialFailureError, match="Spot prices could not be read"):
        scene.tick(30)
    assert scene.spent() == pytest.approx(P5 / 2)
    assert scene.tick(30)["month_to_date_usd"] == pytest.approx(P5 + 10)
