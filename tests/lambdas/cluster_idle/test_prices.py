import pytest

from cluster_idle.prices import ON_DEMAND_USD_PER_HOUR, price


@pytest.mark.parametrize(
    ("instance_type", "usd"), [("p5.48xlarge", 55.04), ("p4de.24xlarge", 27.45), ("g5.xlarge", 1.006)]
)
def test_a_known_price_is_that_of_the_price_list(instance_type: str, usd: float) -> None:
    assert price(instance_type, "us-east-1", {}) == pytest.approx(usd, abs=0.005)


@pytest.mark.parametrize(
    ("instance_type", "region"),
    [("p5e.48xlarge", "us-east-1"), ("trn2.48xlarge", "us-east-2"), ("p5.48xlarge", "nowhere-1"), ("x9.large", "")],
)
def test_a_price_that_is_not_known_is_not_zero(instance_type: str, region: str) -> None:
    assert price(instance_type, region, {"other": 1.0}) is None


def test_what_the_settings_know_goes_before() -> None:
    assert price("p5.48xlarge", "us-east-1", {"p5.48xlarge": 40.0}) == 40
    assert price("p5e.48xlarge", "us-east-1", {"p5e.48xlarge": 50.0}) == 50


def test_no_price_is_nothing() -> None:
    assert ON_DEMAND_USD_PER_HOUR
    assert all(usd > 0 for regions in ON_DEMAND_USD_PER_HOUR.values() for usd in regions.values())
