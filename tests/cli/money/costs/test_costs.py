"""`training-cluster costs`: what it says of a month, what it advises, and what it refuses."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cdk_training_cluster import instance_type_info
from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_cli.core.output import show
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.money.costs import Bill, Charge, CostReport, GroupUse, Usage, make_report
from cdk_training_cluster_cli.money.costs.advice import GroupNodes
from cdk_training_cluster_cli.money.costs.command import ask
from cdk_training_cluster_cli.money.costs.tables import _changes, document
from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT
from folding import folds_at_80_columns
from recorded_costs import START, TODAY, RecordedSession

_BASE_POD = PROJECT / "clusters/p4de.yaml"


@pytest.fixture(autouse=True)
def nothing_of_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def month() -> CostReport:
    session = RecordedSession().answers()
    return ask(session, read_cluster_file(_BASE_POD), days=30, today=TODAY)  # type: ignore[arg-type]


def shown(
    report: CostReport, format: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setenv("COLUMNS", "110")
    show(format, document(report, brief=format == "table"), report.values())
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_the_document_shows_what_the_command_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = re.findall(
        r"^```console\n\$ training-cluster costs [^\n]*\n(.*?)^```",
        (PROJECT / "docs/costs.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    assert block.splitlines() == [line for line in shown(month(), "table", capsys, monkeypatch) if line]


def test_the_bill_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report = month()

    def bill() -> str:
        show("table", document(report, brief=False), {})
        return capsys.readouterr().out

    folds_at_80_columns(bill, monkeypatch)


def test_programs_get_the_same_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads("\n".join(shown(month(), "json", capsys, monkeypatch)))
    assert Decimal(found["total"]) == sum(Decimal(amount) for _, amount in found["days"])
    assert Decimal(found["total"]) == sum(Decimal(amount) for amount in found["by_item"].values())
    assert [spike["day"] for spike in found["spikes"]] == ["2026-11-12"]
    assert (found["idle_share"], found["requests_usd"]) == ("0.25", "0.02")
    assert "| p4de.24xlarge | 144,920 | 98.4 | 5,280 | 27.45 |" in shown(month(), "markdown", capsys, monkeypatch)


def test_the_month_so_far_counts_days_before_the_shown_ones() -> None:
    session = RecordedSession().answers(start=TODAY.replace(day=1))
    report = ask(session, read_cluster_file(_BASE_POD), days=3, today=TODAY)  # type: ignore[arg-type]
    assert len(report.days) == 3
    assert report.month_to_date > report.total
    assert (report.month_forecast, report.trend, report.spikes) == (None, None, ())


def test_without_cloudwatch_the_bill_is_shown_and_says_so() -> None:
    session = RecordedSession().answers(denied=True)
    report = ask(session, read_cluster_file(_BASE_POD), days=30, today=TODAY)  # type: ignore[arg-type]
    assert (report.usage, report.values()["idle_share"]) == (None, None)
    assert report.unknown == (
        "cloudwatch:GetMetricData was not answered (AccessDenied): what the nodes did is unknown",
    )


def advised(
    *,
    item: str = "p5.48xlarge",
    days: int = 3,
    use: GroupUse | None = None,
    reserved: int = 0,
    efa: bool = True,
    on_demand: bool = True,
    hours: int = 43,
) -> list[str]:
    charges = tuple(
        Charge(day=START + timedelta(days=day), item=item, amount=Decimal(2400), hours=Decimal(hours))
        for day in range(days)
    )
    bill = Bill(start=START, end=START + timedelta(days=days), currency="USD", charges=charges, requests=1)
    usage = Usage(groups=() if use is None else (use,), reserved_usd=Decimal(reserved))
    nodes = GroupNodes(name="workers", info=instance_type_info("p4de.24xlarge"), efa=efa, on_demand=on_demand)
    book = committed_prices()
    return list(
        make_report("pod", "us-east-1", bill=bill, usage=usage, groups=[nodes], book=book, start=START).advice
    )


def used(hours: int, busiest: int, highest: int, memory_gib: int) -> GroupUse:
    return GroupUse(
        group="workers",
        hours=hours,
        average_percent=Decimal(busiest),
        busiest_hour_percent=Decimal(busiest),
        maximum_percent=Decimal(highest),
        memory_mib=Decimal(memory_gib * 1024),
    )


_ADVICE: dict[str, tuple[dict[str, Any], str | None]] = {
    "a reservation without nodes": (
        {"item": "p5.48xlarge unused reservation"},
        "7,200 USD went to reserved p5.48xlarge in which no node ran (billed as UnusedBox): lower or end the "
        "reservation while the cluster is stopped",
    ),
    "nodes idle in a reservation": (
        {"reserved": 1234},
        "nodes worth $1,234 ran idle in reservations or Capacity Blocks (the idle stop's figure, at On-Demand "
        "prices): what is reserved is larger than the work",
    ),
    "On-Demand nodes each day": (
        {"days": 7},
        "a Savings Plan for the 100.00 USD an hour that On-Demand nodes cost on the median day would have been used "
        "to 100 %, and would have paid at any discount: compare your offer (from billed days; unused hours of a "
        "day raise that)",
    ),
    "On-Demand nodes for too few days": ({"days": 6}, None),
    "hours that a Savings Plan covers": ({"days": 7, "hours": 48}, None),
    "Spot nodes": ({"days": 7, "item": "p5.48xlarge Spot"}, None),
    "accelerators that never worked": (
        {"use": used(24, 1, 4, 2)},
        "node group 'workers' never used its accelerators: at most 4 % in 24 hours with data (CloudWatch); stop it, "
        "or take it out of the cluster file",
    ),
    "a day's hours are not there": ({"use": used(23, 1, 4, 2)}, None),
    "nothing is known of them": ({"use": GroupUse(group="workers")}, None),
    "a smaller type would do": (
        {"use": used(24, 31, 92, 36)},
        "node group 'workers' used at most 36 GiB of a GPU's memory and 92 % of the busiest GPU in 24 hours "
        "(CloudWatch): try p4d.24xlarge, which is $5.49 an hour cheaper a node On-Demand",
    ),
    "a Spot group": ({"use": used(24, 31, 92, 36), "on_demand": False}, None),
    "its memory would be full": ({"use": used(24, 31, 92, 37)}, None),
}


@pytest.mark.parametrize(("given", "sentence"), _ADVICE.values(), ids=_ADVICE)
def test_advice_names_a_figure_and_what_it_rests_on(given: dict[str, Any], sentence: str | None) -> None:
    assert advised(**given) == ([] if sentence is None else [sentence])


_BAD = {
    "no days": (["--days", "0"], "--days must be 1 to 393, the 13 months that Cost Explorer keeps, got 0"),
    "too many days": (["--days", "394"], "--days must be 1 to 393, the 13 months that Cost Explorer keeps, got 394"),
    "an unknown format": (["--format", "xml"], "--output must be table, json or markdown, got 'xml'"),
    "no credentials": (
        [],
        "costs asks AWS, and there are no credentials: set AWS_PROFILE, or run aws configure or aws sso login",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), _BAD.values(), ids=_BAD)
def test_bad_input_is_one_sentence_and_status_2(arguments: list[str], sentence: str) -> None:
    found = CliRunner().invoke(training_cluster, ["costs", str(_BASE_POD), *arguments])
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"error: {sentence}\n")


def test_the_price_of_asking_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    found = CliRunner().invoke(training_cluster, ["costs", str(_BASE_POD)])
    assert (found.exit_code, found.stdout) == (2, "")
    before, error = found.stderr.splitlines()
    assert before == ("Cost Explorer bills $0.01 a request: this makes 20 at most ($0.20), as a rule one or two")
    assert error.startswith("error: Cost Explorer did not answer: Could not connect to the endpoint URL")


@pytest.mark.parametrize(("idle", "running", "cost"), [(12, 24, 1200), (36, 24, None), (30, 36, None)])
def test_no_more_is_idle_than_ran_and_was_billed(idle: int, running: int, cost: int | None) -> None:
    bill, book = charged(*[100] * 24), committed_prices()
    usage = Usage(hours=24, node_hours=Decimal(running), idle_node_hours=Decimal(idle))
    report = make_report("pod", "us-east-1", bill=bill, usage=usage, groups=[], book=book, start=bill.start)
    assert report.idle_cost == (None if cost is None else Decimal(cost))


def charged(*amounts: int) -> Bill:
    """Return a bill up to 21 November; days at 0 have no charge, as in an answer."""
    start = TODAY - timedelta(days=len(amounts))
    charges = tuple(
        Charge(day=start + timedelta(days=day), item="p5.48xlarge", amount=Decimal(amount), hours=Decimal(1))
        for day, amount in enumerate(amounts)
        if amount
    )
    return Bill(start=start, end=TODAY, currency="USD", charges=charges, requests=1)


_LEVELS = {
    "begun ten days ago, yesterday half billed": ([0] * 20 + [1000] * 9 + [500], Decimal(9500), Decimal(19000), 10),
    "stopped twelve days ago": ([1000] * 18 + [0] * 12, Decimal(9000), Decimal(9000), 30),
    "begun six days ago": ([0] * 24 + [1000] * 6, Decimal(6000), None, 6),
}


@pytest.mark.parametrize(("amounts", "spent", "forecast", "days"), _LEVELS.values(), ids=_LEVELS)
def test_the_month_ends_at_the_last_level(
    amounts: list[int], spent: Decimal, forecast: Decimal | None, days: int
) -> None:
    bill, book = charged(*amounts), committed_prices()
    report = make_report("pod", "us-east-1", bill=bill, usage=None, groups=[], book=book, start=bill.start)
    assert (report.month_to_date, report.month_forecast, len(report.days)) == (spent, forecast, days)
    assert report.spikes == ()
    assert report.trend is None or not report.trend.clear


def _report(bill: Bill) -> CostReport:
    return make_report(
        "pod", "us-east-1", bill=bill, usage=None, groups=[], book=committed_prices(), start=bill.start
    )


def _corrected(bill: Bill, day: int, amount: int) -> Bill:
    """Return a bill with a negative line of another item."""
    line = Charge(day=bill.start + timedelta(days=day), item="EDP discount", amount=Decimal(amount))
    return replace(bill, charges=(*bill.charges, line))


def test_a_step_is_told_once_and_is_no_spike() -> None:
    report = _report(charged(*[5_303] * 24, *[10_573] * 6))
    assert report.spikes == ()
    told = list(_changes(report))
    # The last six days are 2026-11-15 to 2026-11-20.
    assert (
        told[1]
        == f"since {TODAY - timedelta(days=6)} a day costs 10,573 USD, and 5,303 before: another level, no spike"
    )


@pytest.mark.parametrize("day", [3, 20], ids=["another day", "the day of the spike"])
def test_a_negative_line_hides_no_spike(day: int) -> None:
    report = _report(_corrected(charged(*[5_303] * 20, 7_954, *[5_303] * 9), day, -20_000))
    (spike,) = report.spikes
    # A tenth above 5,303.
    assert (spike.day, spike.amount, spike.limit) == (TODAY - timedelta(days=10), Decimal(7_954), Decimal("5833.3"))
    assert (spike.item, spike.above) == ("p5.48xlarge", Decimal(7_954 - 5_303))
    assert report.total == 5_303 * 29 + 7_954 - 20_000
