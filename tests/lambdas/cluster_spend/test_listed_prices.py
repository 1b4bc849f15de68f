"""On-Demand prices from the Price List: asked once a day, kept, and done without where AWS does not answer."""

import pytest

from spend_scene import P5, SpendScene


@pytest.fixture
def scene() -> SpendScene:
    scene = SpendScene()
    scene.add()
    scene.pricing.usd["p5.48xlarge"] = ("50.00",)
    return scene


def asked(scene: SpendScene) -> int:
    return len(scene.pricing.calls)


def test_the_list_is_asked_once_a_day_and_counts_before_the_snapshot(scene: SpendScene) -> None:
    told = scene.tick(0)
    assert (told["usd_per_hour"], asked(scene)) == (50, 1)
    assert told["prices"]["on-demand p5.48xlarge"]["as_of"] == "2026-11-09"
    scene.pricing.usd["p5.48xlarge"] = ("51.00",)
    assert (scene.tick(23 * 60)["usd_per_hour"], asked(scene)) == (50, 1)
    assert (scene.tick(60)["usd_per_hour"], asked(scene)) == (51, 2)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "InternalErrorException"])
def test_a_failure_fails_no_run_is_tried_again_after_an_hour_and_older_prices_hold(
    scene: SpendScene, code: str
) -> None:
    scene.pricing.fail_next("GetProducts", code)
    assert (scene.tick(0)["usd_per_hour"], asked(scene)) == (P5, 1)
    assert (scene.tick(30)["usd_per_hour"], asked(scene)) == (P5, 1)
    assert (scene.tick(30)["usd_per_hour"], asked(scene)) == (50, 2)
    scene.pricing.fail_next("GetProducts", code)
    assert (scene.tick(24 * 60)["usd_per_hour"], asked(scene)) == (50, 3)


@pytest.mark.parametrize("listed", [(), ("50.00", "60.00")])
def test_no_price_and_several_are_none(scene: SpendScene, listed: tuple[str, ...]) -> None:
    scene.pricing.usd["p5.48xlarge"] = listed
    assert (scene.tick(0)["usd_per_hour"], scene.tick(30)["usd_per_hour"], asked(scene)) == (P5, P5, 1)


def test_a_price_of_another_region_in_an_answer_is_not_taken(scene: SpendScene) -> None:
    scene.pricing.elsewhere["p5.48xlarge"] = ("60.00",)
    assert scene.tick(0)["usd_per_hour"] == 50


def test_the_list_is_asked_for_a_unit_whose_known_price_is_that_of_another_region() -> None:
    units = {"fsx-persistent-2-250": 2.0, "nat-gateway": 1.0}
    scene = SpendScene(details={"fixed": {"file-system": units}})
    scene.pricing.usd["Lustre 250"] = ("0.30",)
    told = scene.tick(0)
    # That of NAT gateways is one of this region.
    assert (told["usd_per_hour"], asked(scene)) == (pytest.approx(2 * 0.30 + 0.045), 1)
    assert "estimated_prices" not in told or told["estimated_prices"] == []


def test_stated_prices_spot_and_blocks_are_not_asked_for() -> None:
    scene = SpendScene(details={"prices": {"p5.48xlarge": 30.0, "cr-1": 20.0}})
    scene.add_spot()
    scene.add(CapacityReservationId="cr-1", InstanceLifecycle="capacity-block")
    scene.add()
    assert (scene.tick(0)["usd_per_hour"], asked(scene)) == (62.5, 0)


@pytest.mark.parametrize("usd", ["much", "NaN"])
def test_what_is_kept_and_cannot_be_read_is_asked_for_anew_and_status_asks_nothing(
    scene: SpendScene, usd: str
) -> None:
    scene.tick(0)
    scene.dynamodb.change(
        "spend#base-pod",
        "prices",
        **{"p5.48xlarge": {"usd": usd, "as_of": "", "asked_at": "2026-11-10T08:00:00Z", "answered": True}},
    )
    assert (scene.run()["usd_per_hour"], asked(scene)) == (P5, 1)
    assert (scene.tick()["usd_per_hour"], asked(scene)) == (50, 2)
