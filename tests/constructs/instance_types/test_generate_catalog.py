"""The generator: the same bytes from the same facts, whatever order and region they came in."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from scripts import generate_catalog

_SOURCE, _DESCRIPTIONS = generate_catalog.from_moto()


def _described(name: str) -> dict[str, Any]:
    return copy.deepcopy(
        dict(next(description for description in _DESCRIPTIONS if description["InstanceType"] == name))
    )


def test_order_changes_nothing() -> None:
    shuffled = copy.deepcopy(_DESCRIPTIONS)
    random.Random(7).shuffle(shuffled)  # noqa: S311 - an order, not a secret
    for description in shuffled:
        description["NetworkInfo"]["NetworkCards"].reverse()
        description["SupportedUsageClasses"].reverse()

    assert generate_catalog.render(_SOURCE, shuffled) == generate_catalog.render(_SOURCE, _DESCRIPTIONS)


def test_a_type_is_a_line_and_equal_cards_share_an_entry() -> None:
    text = generate_catalog.render("test", [_described("p5.48xlarge"), _described("p6-b300.48xlarge")])
    types = json.loads(text)["types"]

    assert len(text.splitlines()) == 7
    assert [group["cards"] for group in types["p5.48xlarge"]["network_cards"]] == [list(range(32))]
    assert [group["cards"] for group in types["p6-b300.48xlarge"]["network_cards"]] == [
        [0],
        list(range(1, 17)),
    ]


def test_regions_are_put_together_the_same_way_whatever_order_they_came_in() -> None:
    east, west = _described("p5.48xlarge"), _described("p5.48xlarge")
    east["SupportedUsageClasses"], west["SupportedUsageClasses"] = ["on-demand"], ["spot", "capacity-block"]

    both = [
        generate_catalog.merged({"us-east-1": [east], "us-west-2": [west]}),
        generate_catalog.merged({"us-west-2": [west], "us-east-1": [east]}),
    ]

    assert both[0] == both[1]
    assert both[0][0]["SupportedUsageClasses"] == ["capacity-block", "on-demand", "spot"]
    assert east["SupportedUsageClasses"] == ["on-demand"]


def test_a_region_that_says_otherwise_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    east, west = _described("p5.48xlarge"), _described("p5.48xlarge")
    west["VCpuInfo"]["DefaultVCpus"] = 1

    (merged,) = generate_catalog.merged({"us-west-2": [west], "us-east-1": [east]})

    assert merged["VCpuInfo"]["DefaultVCpus"] == 192
    assert capsys.readouterr().err == (
        "p5.48xlarge is described differently in us-west-2; the first region's answer stays\n"
    )


@pytest.mark.parametrize(
    ("performance", "gbps"),
    [("3200 Gigabit", 3200), ("16x 200 Gigabit", 3200), ("Up to 12.5 Gigabit", 12.5), ("Moderate", None)],
)
def test_the_advertised_bandwidth(performance: str, gbps: float | None) -> None:
    description = _described("p5.48xlarge")
    description["NetworkInfo"]["NetworkPerformance"] = performance

    assert generate_catalog.record(description)["network_gbps"] == gbps


def test_an_account_is_asked_through_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")

    with mock_aws():
        source, descriptions = generate_catalog.from_account(["us-west-2"])

    assert source == "EC2 DescribeInstanceTypes in us-west-2"
    answer = json.loads(generate_catalog.render(source, descriptions))["types"]
    committed = json.loads(generate_catalog.CATALOG.read_text(encoding="utf-8"))["types"]
    assert answer["p5.48xlarge"] == committed["p5.48xlarge"]
    assert set(answer) <= set(committed)


def test_check_says_what_differs_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "catalog.json"
    descriptions = [description for description in _DESCRIPTIONS if description["InstanceType"] != "p5.48xlarge"]
    descriptions += [_described("m5.large") | {"InstanceType": "p1.large", "GpuInfo": {}}]
    stale.write_text(generate_catalog.render(_SOURCE, descriptions), encoding="utf-8")
    before = stale.read_bytes()

    assert generate_catalog.main(["--check", "--output", str(stale)]) == 1

    printed = capsys.readouterr()
    assert printed.out == "added: p5.48xlarge\nremoved: p1.large\n"
    assert printed.err == "catalog.json is not current: run python scripts/generate_catalog.py\n"
    assert stale.read_bytes() == before
    assert generate_catalog.main(["--output", str(stale)]) == 0
    assert generate_catalog.main(["--check", "--output", str(stale)]) == 0
    assert capsys.readouterr().out.endswith("catalog.json is current: 343 types\n")


def test_a_region_without_live_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate_catalog.main(["--region", "us-east-1"])

    assert "--region goes with --live" in capsys.readouterr().err


def test_without_a_region_every_enabled_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    asked: list[str] = []
    client = boto3.client

    def recording(service: Any, **arguments: Any) -> Any:
        asked.append(arguments.get("region_name", "the account's own"))
        return _NoTypes() if "region_name" in arguments else client(service)

    monkeypatch.setattr(boto3, "client", recording)

    with mock_aws():
        source, descriptions = generate_catalog.from_account([])

    assert descriptions == []
    assert asked[0] == "the account's own"
    assert asked[1:] == sorted(asked[1:])
    assert {"us-east-1", "eu-north-1"} <= set(asked)
    assert source.endswith(", ".join(asked[1:]))


class _NoTypes:
    """Answers DescribeInstanceTypes with nothing, so that asking every region takes no time."""

    def get_paginator(self, operation: str) -> "_NoTypes":
        assert operation == "describe_instance_types"
        return self

    def paginate(self) -> list[dict[str, list[Any]]]:
        return [{"InstanceTypes": []}]
