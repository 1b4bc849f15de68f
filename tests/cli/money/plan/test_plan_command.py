"""`training-cluster plan` as people use it."""

import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdk_training_cluster.prices import ByRegion, Price, PriceBook, Source
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.money.plan.command import _keep
from cdk_training_cluster_cli.money.prices.cache import cache_file, keep_prices

CLUSTERS = Path(__file__).parents[4] / "clusters"
BASE_POD = str(CLUSTERS / "p4de.yaml")


@pytest.fixture(autouse=True)
def nothing_of_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def plan(*arguments: str, columns: int = 120) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(training_cluster, ["plan", *arguments])


# What the published case assumes: $32 a node-hour for 14 days, and its own figures for all else, as docs/plan.md
# states them. The sum is in the facts that this library was made from: 86,016 + 2,400 + 500 + 200 = 89,116.
_PUBLISHED = next(
    line.removeprefix("$ training-cluster plan ").removesuffix(" --all").split()
    for line in (CLUSTERS.parent / "docs/plan.md").read_text().splitlines()
    if line.startswith("$ training-cluster plan ") and "--price p4de.24xlarge=32" in line
)


def test_the_published_case_of_a_70b_model_comes_out_to_the_dollar() -> None:
    assert Path(_PUBLISHED[0]) == Path(BASE_POD).relative_to(CLUSTERS.parent)
    found = json.loads(plan(BASE_POD, *_PUBLISHED[1:], "--format", "json").stdout)
    runs = {
        line["key"]: Decimal(line["per_hour"]) * 336 + Decimal(line["once"])
        for line in found["lines"]
        if line["once"] != "0" or line["per_hour"] != "0"
    }
    assert runs == {
        "compute.workers": 86_016,
        "storage.file-system": 2_400,
        "storage.checkpoints": 200,
        "transfer.s3-to-file-system": 500,
    }
    assert Decimal(found["total_usd"]) == 89_116
    assert Decimal(found["total_with_contingency_usd"]) == Decimal("106939.2")
    assert found["unknown"] == []


_LINES = (
    "compute.workers, storage.file-system, storage.root-volumes, storage.dataset, transfer.nat-gateway, "
    "transfer.nat-data, transfer.s3-to-file-system, guardrails.metrics, guardrails.alarms, "
    "guardrails.dashboard, guardrails.reports, guardrails.functions"
)
_BAD = {
    "an unknown file": (
        [str(CLUSTERS / "bas-pod.yaml")],
        f"{CLUSTERS}/bas-pod.yaml: there is no such file; did you mean {CLUSTERS / 'base-pod.yaml'}?",
    ),
    "negative hours": ([BASE_POD, "--hours", "-1"], "--hours must be at least 0, got -1"),
    "no hours": ([BASE_POD, "--hours", "0"], "--hours must be above 0, got 0"),
    "NaN": ([BASE_POD, "--hours", "NaN"], "--hours must be a finite number, got 'NaN'"),
    "infinity": ([BASE_POD, "--dataset-gb", "inf"], "--dataset-gb must be a finite number, got 'inf'"),
    "what no sum holds": (
        [BASE_POD, "--parameters", "1e999999", "--tokens", "1e999999"],
        "--parameters must be 0, or of a size between 1e-18 and 1e18, got 1E+999999",
    ),
    "what no quotient holds": (
        [BASE_POD, "--hours", "1e-999999"],
        "--hours must be 0, or of a size between 1e-18 and 1e18, got 1E-999999",
    ),
    "a decimal comma": (
        [BASE_POD, "--savings-plan", "0,5"],
        "--savings-plan must be a number, such as 336 or 70e9, got '0,5'",
    ),
    "another decimal comma": (
        [BASE_POD, "--hours", "1,5"],
        "--hours must be a number, such as 336 or 70e9, got '1,5'",
    ),
    "no number": ([BASE_POD, "--hours", "two"], "--hours must be a number, such as 336 or 70e9, got 'two'"),
    "too much contingency": (
        [BASE_POD, "--contingency", "1001"],
        "--contingency must be 0 to 1000, got 1001",
    ),
    "a Savings Plan that pays you": (
        [BASE_POD, "--savings-plan", "101"],
        "--savings-plan must be 0 to 100, got 101",
    ),
    "more than the peak": ([BASE_POD, "--utilization", "101"], "--utilization must be 0 to 100, got 101"),
    "half a checkpoint": ([BASE_POD, "--checkpoints", "0.5"], "--checkpoints must be a whole number, got '0.5'"),
    "negative checkpoints": ([BASE_POD, "--checkpoints", "-1"], "--checkpoints must be at least 0, got -1"),
    "a model without tokens": (
        [BASE_POD, "--parameters", "70e9"],
        "--parameters and --tokens go together: give both, or neither",
    ),
    "an unknown format": (
        [BASE_POD, "--format", "xml"],
        "--output must be table, json or markdown, got 'xml'",
    ),
    "a picture of another kind": (
        [BASE_POD, "--plot", "plan.pdf"],
        "--plot must be a file that ends with .png or .svg, got 'plan.pdf'",
    ),
    "a picture in no directory": (
        [BASE_POD, "--plot", "/nowhere/plan.png"],
        "/nowhere/plan.png cannot be written: No such file or directory",
    ),
    "a picture of nodes that EC2 does not sell": (
        [str(CLUSTERS / "hyperpod.yaml"), "--plot", "plan.png"],
        "--plot compares ways to buy nodes from EC2, and hyperpod has them from another service; leave it out",
    ),
    "no credentials": (
        [BASE_POD, "--live"],
        "--live asks AWS, and there are no credentials: set AWS_PROFILE, or run aws configure or aws sso login",
    ),
    "a price of nothing": ([BASE_POD, "--price", "32"], "--price must be NAME=USD, got '32'"),
    "a price that is given twice": (
        [BASE_POD, "--price", "ebs-gp3=1", "--price", "ebs-gp3=2"],
        "--price ebs-gp3 is given twice; leave one of them out",
    ),
    "more hours than ten years": (
        [BASE_POD, "--hours", "1e15"],
        "--hours must be at most 87,600, which are ten years, got 1000000000000000",
    ),
    "a number of Python": (
        [BASE_POD, "--hours", "1_000"],
        "--hours must be a number, such as 336 or 70e9, got '1_000'",
    ),
    "a number of another script": (
        [BASE_POD, "--hours", "\uff13\uff13\uff16"],
        "--hours must be a number, such as 336 or 70e9, got '\uff13\uff13\uff16'",
    ),
    "a price below zero": (
        [BASE_POD, "--price", "ebs-gp3=-1"],
        "price of ebs-gp3 must be at least 0, got -1",
    ),
    "a cost of no line": (
        [BASE_POD, "--cost", "storage.disks=1"],
        f"--cost names a line of the plan: {_LINES}; got 'storage.disks'",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), _BAD.values(), ids=_BAD)
def test_bad_input_is_one_sentence_and_status_2(arguments: list[str], sentence: str) -> None:
    result = plan(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: {sentence}"]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("p9.48xlarge", "did you mean p5.48xlarge or "),
        ("cr-0a1b2c3d4e5f67890", "the units are fsx-persistent-2-125, "),
    ],
)
def test_a_price_that_no_plan_has_is_refused_with_the_nearest_or_all(name: str, hint: str) -> None:
    result = plan(BASE_POD, "--price", f"{name}=1")
    assert result.exit_code == 2
    sentence = f"--price must name an instance type (p5.48xlarge or ml.p5.48xlarge) or a unit, got {name!r}: {hint}"
    assert result.stderr.startswith(f"error: {sentence}")


def test_a_first_look_fits_a_terminal() -> None:
    lines = plan(BASE_POD, columns=80).stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    assert "- --all shows each line, all ways to buy and regions, assumptions and sources" in lines


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_and_shows_what_the_run_costs(columns: int) -> None:
    result = plan(BASE_POD, "--hours", "336", "--all", columns=columns)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["compute.workers"][1:4] == ["219.58", "5,270", "73,778"]
    assert rows["storage.dataset"][1:4] == ["unknown"] * 3
    assert "total" not in rows
    assert rows["known"][3:6] == ["221.25", "5,310", "74,341"]
    assert rows["with"][2:5] == ["265.50", "6,372", "89,209"]
    assert "- storage.dataset: its size is not given: --dataset-gb" in lines


def test_what_is_a_small_part_of_the_bill_is_no_total() -> None:
    file = CLUSTERS / "p5-capacity-block.yaml"
    shown = {line.split()[0]: line.split() for line in plan(str(file)).stdout.splitlines() if line.strip()}
    assert shown["total"][1:4] == ["unknown"] * 3
    assert shown["with"][2:5] == ["unknown"] * 3


def test_commas_separate_thousands() -> None:
    assert "p4de in us-east-1b, 1,000 hours, in USD" in plan(BASE_POD, "--hours", "1,000").stdout


@pytest.mark.parametrize("file", [BASE_POD, str(CLUSTERS / "slurm.yaml")], ids=["groups", "slurm"])
def test_nothing_is_said_on_standard_error(file: str) -> None:
    command = [str(Path(sys.executable).with_name("training-cluster")), "plan", file]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stderr == ""


def test_prices_that_cannot_be_kept_are_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    _keep(tmp_path / "file" / "prices.json", PriceBook())
    assert capsys.readouterr().err == ("warning: the prices are not kept for the next plan: File exists\n")
    _keep(None, PriceBook())
    assert capsys.readouterr().err == (
        "warning: the prices are not kept for the next plan: the home directory is unknown; set XDG_CACHE_HOME\n"
    )


def test_markdown_has_the_same_tables() -> None:
    result = plan(BASE_POD, "--hours", "336", "--format", "markdown")
    assert result.exit_code == 0
    assert (
        "| compute.workers | 219.58 | 5,270 | 73,778 | 8 x p4de.24xlarge, on demand: 8 x $27.44705 |" in result.stdout
    )
    assert "| workers | 8 x p4de.24xlarge | 8 x A100, 80 GiB | 5,120 | 400 | 3,200 |" in result.stdout


def test_the_same_input_gives_the_same_bytes() -> None:
    # The tables are made of what JSON holds.
    assert plan(BASE_POD, "--format", "json").stdout == plan(BASE_POD, "--format", "json").stdout


def test_a_profile_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    result = plan(BASE_POD, "--live")
    assert result.exit_code == 2
    assert "error: --live cannot ask AWS: The config profile (nobody) could not be found\n" in result.stderr


def test_the_figures_of_the_last_live_answer_count_with_their_age(tmp_path: Path) -> None:
    file = cache_file({"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert file is not None
    source = Source(address="https://example.com/list", as_of=date(2026, 1, 1))
    price = Price(usd=Decimal(20), unit="instance-hour", region="us-east-1", source=source)
    keep_prices(file, PriceBook(on_demand=ByRegion([("p4de.24xlarge", price)])))
    found = json.loads(plan(BASE_POD, "--format", "json").stdout)
    assert Decimal(found["lines"][0]["per_hour"]) == 160
    assert "https://example.com/list" in {source["address"] for source, _ in found["sources"]}
    file.write_text("nonsense")
    broken = plan(BASE_POD)
    assert broken.exit_code == 2
    assert f"error: {file} is no price book; delete it, and ask again with --live\n" in broken.stderr


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn_the_same_each_time(tmp_path: Path, suffix: str, start: bytes) -> None:
    files = [tmp_path / f"{number}.{suffix}" for number in range(2)]
    for file in files:
        assert plan(BASE_POD, "--savings-plan", "40", "--plot", str(file)).exit_code == 0
    assert files[0].read_bytes().startswith(start)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_without_an_on_demand_price_the_picture_says_so(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        "name: pod\navailability_zone: us-east-2b\n"
        "node_groups: [{name: workers, instance_types: [p5e.48xlarge], count: 1, image: latest}]\n"
    )
    result = plan(str(file), "--plot", str(tmp_path / "plan.svg"))
    assert result.exit_code == 0, result.stderr
    drawn = (tmp_path / "plan.svg").read_text()
    assert "the On-Demand price of p5e.48xlarge in us-east-2 is unknown" in drawn
    assert "without compute.workers" in drawn
