"""`make prices`: what AWS says takes the place of what was there, and what it does not say is unknown."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from scripts import generate_prices

from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster.prices.book import book_of, document_of
from cdk_training_cluster.prices.files import contract_text, snapshot_text
from fake_live_prices import FakeSession

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where the script writes."""
    snapshot, contract = tmp_path / "snapshot.json", tmp_path / "prices.json"
    monkeypatch.setattr(generate_prices, "SNAPSHOT", snapshot)
    monkeypatch.setattr(generate_prices, "CONTRACT", contract)
    return snapshot, contract


def asked(session: FakeSession, *regions: str) -> PriceBook:
    anything: Any = session
    return generate_prices.asked(anything, ["p5.48xlarge"], regions, NOW)[0]


def test_the_committed_files_are_what_the_script_writes() -> None:
    book = committed_prices()
    assert generate_prices.SNAPSHOT.read_text(encoding="utf-8") == snapshot_text(book)
    assert json.loads(generate_prices.CONTRACT.read_text(encoding="utf-8")) == json.loads(contract_text(book))


def test_every_enabled_region_is_asked_for_spot_prices() -> None:
    found = asked(FakeSession(("us-west-2", "eu-west-1")))
    assert found.on_demand.regions("p5.48xlarge") == ("eu-west-1", "us-west-2")
    assert found.spot.regions("p5.48xlarge") == ("eu-west-1", "us-east-1", "us-west-2")
    assert asked(FakeSession(("us-west-2", "eu-west-1")), "us-west-2").spot.regions("p5.48xlarge") == ("us-west-2",)


def test_what_aws_no_longer_says_is_unknown_but_units_stay() -> None:
    before = committed_prices()
    after = generate_prices.refreshed(before, asked(FakeSession(("us-west-2",)), "us-west-2"))
    assert after.on_demand.regions("p5.48xlarge") == ("us-west-2",)
    assert after.on_demand.regions("p4de.24xlarge") == ()
    assert after.units.items() == before.units.items()


def test_the_files_hold_what_aws_said_with_its_date(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boto3, "Session", lambda **_: FakeSession(("us-west-2",)))
    assert generate_prices.main(["--region", "us-west-2"]) == 0
    contract = json.loads(files[1].read_text(encoding="utf-8"))
    assert (contract["on_demand"], contract["as_of"]) == ({"p5.48xlarge": {"us-west-2": 50.0}}, "2026-11-20")
    spot = book_of(json.loads(files[0].read_text(encoding="utf-8"))).spot.get("p5.48xlarge", "us-west-2")
    assert spot is not None
    assert (spot.low, spot.source.as_of) == (Decimal("20.5"), datetime.now(UTC).date())
    assert capsys.readouterr().out.splitlines()[0] == (
        f"On-Demand prices: 1, before {len(committed_prices().on_demand.items())}"
    )


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException"])
def test_a_refusal_writes_nothing(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    session = FakeSession(("us-west-2",))
    session.pricing.fail_next("GetProducts", code)
    monkeypatch.setattr(boto3, "Session", lambda **_: session)
    assert generate_prices.main(["--region", "us-west-2"]) == 1
    assert code in capsys.readouterr().err
    assert not any(file.exists() for file in files)


def test_a_list_without_any_price_writes_nothing(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boto3, "Session", lambda **_: FakeSession(()))
    assert generate_prices.main(["--region", "us-east-1"]) == 1
    assert capsys.readouterr().err.startswith("error: the Price List has no On-Demand price of any type;")
    assert not any(file.exists() for file in files)


def test_on_demand_prices_of_several_dates_are_not_written_under_one() -> None:
    document = document_of(committed_prices())
    document["on_demand"].append(
        {"source": "here", "as_of": str(date(2026, 1, 1)), "prices": {"p5e.48xlarge": {"a": "1"}}}
    )
    with pytest.raises(ValueError, match=r"^On-Demand prices must have one source, got 2$"):
        contract_text(book_of(document))
