"""`training-cluster storage`: the figures that it shows, and what it refuses in one sentence."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdk_training_cluster_cli.core.sizes import gib_of, size_text
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT

_ISSUE = ("--dataset", "40TiB", "--gbps", "20", "--nodes", "8")


@pytest.fixture(autouse=True)
def nothing_of_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(training_cluster, ["storage", *arguments])


def test_people_see_sizes_prices_and_why() -> None:
    found = ran(*_ISSUE)
    lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert found.exit_code == 0
    assert "PERSISTENT_2 SSD 250 MB/s/TiB, EFA 96,000 GiB ~20,160 23.4 0.37 S3 links, backups, GPUDirect" in lines
    assert "PERSISTENT_2 SSD 125 MB/s/TiB 165,600 GiB* 24,012 20.2 0.32 S3 links, backups" in lines
    assert "SCRATCH_2 SSD 103,200 GiB* unknown 20.2 0.31 S3 links" in lines
    assert " ".join(lines[-2:]) == (
        "Recommended: PERSISTENT_2 SSD 250 MB/s/TiB, EFA, 96,000 GiB: it has the lowest known price of those that "
        "link S3 data sets, keep data when a server fails, and give 20 GB/s to 8 x p5.48xlarge by EFA, which AWS "
        "recommends above 10 GB/s; the price of PERSISTENT_2 SSD 500 MB/s/TiB, EFA is unknown and may be lower."
    )


def test_a_stated_price_decides_and_programs_get_the_figures() -> None:
    found = json.loads(ran(*_ISSUE, "--price", "fsx-persistent-2-500=0.34", "--output", "json").stdout)
    (best,) = (each for each in found["options"] if each["name"] == found["recommended"])
    assert (found["recommended"], best["usd_a_month"]) == ("PERSISTENT_2 SSD 500 MB/s/TiB, EFA", "16320.00")
    assert (best["price_regions"], best["unknown_prices"], best["gpudirect"]) == (["us-east-1"], [], True)
    assert best["settings"] == {"storage_capacity_gib": 48000, "throughput_mbps_per_tib": 500, "efa_enabled": True}
    assert {each["usd_a_month"] for each in found["options"] if each["unknown_prices"]} == {None}


def test_the_settings_are_those_of_a_cluster_file(tmp_path: Path) -> None:
    (line,) = (line[2:] for line in ran(*_ISSUE).stdout.splitlines() if line.startswith("- file_system: "))
    file = tmp_path / "cluster.yaml"
    kept = (PROJECT / "clusters/dev-box.yaml").read_text(encoding="utf-8")
    assert "file_system" not in kept
    file.write_text(f"{kept}\n{line}\n", encoding="utf-8")
    read = read_cluster_file(file).file_system
    assert read is not None
    assert (read.storage_capacity_gib, read.throughput_mbps_per_tib, read.efa_enabled) == (96000, 250, True)


_MUST = "--dataset must be a number above 0 and GiB, TiB, PiB, GB, TB or PB, such as 40TiB, got "


@pytest.mark.parametrize("text", ["40T", "40", "40Tb", "0TiB", "-1TiB", "1e3GB", "much"])
def test_an_unknown_unit_is_refused(text: str) -> None:
    found = ran(f"--dataset={text}", "--gbps", "20", "--nodes", "8")
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"error: {_MUST}{text!r}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--gbps", "fast"], "--gbps must be a number, such as 336 or 70e9, got 'fast'"),
        (["--nodes", "1.5"], "--nodes must be a whole number, got '1.5'"),
        (["--output", "xml"], "--output must be table, json or markdown, got 'xml'"),
        (["--price", "ssd=1"], "--price must be NAME=USD, with a NAME of fsx-persistent-2-125, "),
        (["--instance-type", "p9.large"], "unknown instance type 'p9.large'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments: list[str], sentence: str) -> None:
    found = ran(*_ISSUE, *arguments)
    assert (found.exit_code, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert found.stderr.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("text", "gib"), [("1GiB", 1), ("1.5 TiB", 1536), ("1PiB", 2**20), ("1GB", 1), ("40TB", 37253), ("1PB", 931323)]
)
def test_sizes_are_rounded_up_to_gib(text: str, gib: int) -> None:
    assert gib_of("--dataset", text) == gib


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 * 2**50, "3.0 PiB"), (2**62, "4096.0 PiB")],
)
def test_sizes_are_shown_in_the_unit_that_is_read_best(count: int, text: str) -> None:
    assert size_text(count) == text
