"""The price book: exact, dated, and silent about what it does not know."""

from datetime import date
from decimal import Decimal

import pytest

from cdk_training_cluster.instance_types import instance_type_names
from cdk_training_cluster.prices import UNITS, PriceBook, Source, committed_prices
from cdk_training_cluster.prices.book import STATED, book_of, document_of

_BOOK = committed_prices()


def test_figures_are_exact_and_name_their_source() -> None:
    price, spot = _BOOK.on_demand.get("p5.48xlarge", "us-east-1"), _BOOK.spot.get("p4de.24xlarge", "us-east-1")
    assert price is not None
    assert spot is not None
    assert (price.usd, price.unit) == (Decimal("55.04"), "instance-hour")
    assert (spot.low, spot.high, spot.zones) == (Decimal("8.6505"), Decimal("9.9734"), ("use1-az4", "use1-az6"))
    assert {each.source.address.split(",")[0] for each in (price, spot)} == {
        "https://github.com/skypilot-org/skypilot-catalog"
    }


@pytest.mark.parametrize(
    ("figures", "name", "region"),
    [
        ("on_demand", "p5e.48xlarge", "us-east-2"),
        ("on_demand", "trn2.48xlarge", "us-east-2"),
        ("spot", "p5.4xlarge", "us-east-1"),
        ("units", "fsx-persistent-2-500", "us-east-1"),
        ("units", "sns-email", "us-east-1"),
    ],
)
def test_an_empty_cell_is_unknown_and_nothing_stands_in_for_it(figures: str, name: str, region: str) -> None:
    assert getattr(_BOOK, figures).get(name, region) is None


def test_every_figure_is_above_zero_of_a_known_name_and_has_an_address() -> None:
    assert {name for name, _ in _BOOK.units.items()} <= set(UNITS)
    assert {name for name, _ in _BOOK.on_demand.items()} <= {*instance_type_names(), "m7i.large", "m7i.2xlarge"}
    prices = [price for _, price in (*_BOOK.on_demand.items(), *_BOOK.units.items())]
    assert all(price.usd > 0 and price.source.address.startswith("https://") for price in prices)
    assert all(0 < each.low <= each.high for _, each in _BOOK.spot.items())


def test_another_region_s_price_stands_in_and_says_so() -> None:
    near = _BOOK.units.nearest("fsx-persistent-2-250", "us-east-1")
    assert near is not None
    assert (near.usd, near.region) == (Decimal("0.21"), "us-west-2")
    assert _BOOK.units.nearest("fsx-persistent-2-500", "us-east-1") is None


def test_a_stated_price_counts_before_every_other_in_its_region_alone() -> None:
    stated = {"p5.48xlarge": Decimal(30), "ebs-gp3": Decimal("0.1")}
    book = _BOOK.with_stated(stated, "us-east-1")
    price, unit = book.on_demand.get("p5.48xlarge", "us-east-1"), book.units.get("ebs-gp3", "us-east-1")
    assert price is not None
    assert unit is not None
    assert (price.usd, price.source, unit.usd, unit.unit) == (Decimal(30), STATED, Decimal("0.1"), "GB-month")
    assert book.on_demand.get("p5.48xlarge", "us-east-2") == _BOOK.on_demand.get("p5.48xlarge", "us-east-2")


def test_a_book_comes_back_from_its_document_as_it_was() -> None:
    document = document_of(_BOOK)
    assert document_of(book_of(document)) == document
    assert document_of(book_of(document_of(PriceBook()))) == document_of(PriceBook())


@pytest.mark.parametrize("usd", ["-1", "nan", "inf"])
def test_no_price_is_below_zero_or_no_number(usd: str) -> None:
    with pytest.raises(ValueError, match=r"^a price must be a number of at least 0, got "):
        book_of({"units": [{"source": "here", "prices": {"ebs-gp3": {"us-east-1": usd}}}]})


@pytest.mark.parametrize(
    ("as_of", "age"),
    [
        (None, "of unknown age"),
        (date(2026, 11, 22), "of today"),
        (date(2026, 11, 21), "1 day old"),
        (date(2026, 10, 22), "31 days old"),
    ],
)
def test_the_age_of_a_figure(as_of: date | None, age: str) -> None:
    assert Source(address="", as_of=as_of).age(date(2026, 11, 22)) == age
