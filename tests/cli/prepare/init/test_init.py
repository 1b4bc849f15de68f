"""`training-cluster init`: what it writes passes `check`, and what cannot be used is one sentence."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_cli.files.overview import show
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.prepare.init.command import Given, Zones, run
from cdk_training_cluster_cli.prepare.init.offers import accelerators, offers, ways_to_buy
from cdk_training_cluster_cli.prepare.init.writing import Answers, cluster_text, file_system_for
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_file.orchestrators.choice import KINDS

_OPTIONAL = re.compile(r"^( *(?:- )?)#(?=\w)", re.MULTILINE)
_OFFLINE = Zones(profile=None, live=False)
_P5 = Answers(name="llama", zone="us-east-1b", region="us-east-1", instance_type="p5.48xlarge", count=8)
_RICH = {"dataset_gib": 4096, "bucket": "corpus", "budget_usd": 30_000, "emails": ("a@example.com",)}
_BOOK = committed_prices()


def _read(text: str, directory: Path) -> ClusterFile:
    file = directory / "cluster.yaml"
    file.write_text(text, encoding="utf-8")
    return read_cluster_file(file)


@st.composite
def _wanted(draw: st.DrawFn) -> Answers:
    """Draw what a user may want: the offers of `init` itself, bought in one of the ways that it offers."""
    region = draw(st.sampled_from(["us-east-1", "eu-central-1", "us-gov-west-1", "cn-north-1"]))
    found = draw(
        st.sampled_from(offers(draw(st.integers(1, 512)), draw(st.sampled_from([1, 24, 80])), region, _BOOK))
    )
    way = draw(st.sampled_from(ways_to_buy(found, hours=1, region=region, book=_BOOK)))  # type: ignore[arg-type]
    return Answers(
        name=draw(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)),
        zone=f"{region}{draw(st.sampled_from('abc'))}",
        region=region,
        instance_type=found.info.name,
        # A Capacity Block of some types has fewer instances than others.
        count=1 if way.name == "capacity_block" else min(found.nodes, 64),
        buy=way.name,
        capacity_id="cr-0a1b2c3d4e5f67890" if way.takes_id else None,
        dataset_gib=draw(st.none() | st.integers(1, 10**6)),
        bucket=draw(st.none() | st.just("corpus")),
        budget_usd=None if place_problems(region) else draw(st.none() | st.integers(1, 10**7)),
        emails=draw(st.sampled_from([(), ("a@example.com",), ("a@example.com", "b@example.com")])),
    )


@drawn(wanted=_wanted(), pick=st.integers(0, 99))
@settings(max_examples=25)
def test_what_is_written_can_be_read_with_any_optional_setting(
    wanted: Answers, pick: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, directory = cluster_text(wanted), tmp_path_factory.mktemp("drawn")
    cluster, places = _read(text, directory), list(_OPTIONAL.finditer(text))
    place = places[pick % len(places)]
    assert _read(text[: place.start()] + place[1] + text[place.end() :], directory) != cluster
    (group,) = cluster.node_groups
    assert (cluster.name, cluster.region, group.count) == (wanted.name, wanted.region, wanted.count)
    assert group.capacity.call == wanted.buy
    assert (cluster.budget is None, cluster.alerts.emails) == (wanted.budget_usd is None, wanted.emails)


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1"])
def test_a_budget_is_refused_where_there_can_be_none(region: str, tmp_path: Path) -> None:
    given = Given(instance_type="p4d.24xlarge", region=region, budget="10")
    with pytest.raises(ValueError, match=f"--budget must be left out in {region}"):
        run(tmp_path / "llama.yaml", given, zones=_OFFLINE)


@pytest.mark.parametrize("more", [{}, _RICH], ids=["bare", "rich"])
def test_each_optional_setting_is_valid_once_its_comment_sign_is_gone(more: dict[str, Any], tmp_path: Path) -> None:
    text = cluster_text(replace(_P5, **more))
    written = _read(text, tmp_path)
    places = list(_OPTIONAL.finditer(text))
    assert len(places) >= 12
    for place in places:
        changed = _read(text[: place.start()] + place[1] + text[place.end() :], tmp_path)
        assert changed != written, text[place.start() : place.end() + 20]


def test_every_setting_has_its_line_of_comment() -> None:
    lines = cluster_text(_P5).splitlines()
    for above, line in pairwise(lines):
        if re.match(r" *(?:- )?#?\w+:", line):
            assert re.match(r" *# ", above), line
    assert max(map(len, lines)) <= 118


@pytest.mark.parametrize(
    "options",
    [
        "--accelerators 64 --memory 80 --dataset 4TiB --budget 30,000 --email a@example.com --email b@example.com",
        "--instance-type p5.48xlarge --buy capacity_block --capacity-id cr-0a1b2c3d4e5f67890 --bucket corpus",
    ],
)
def test_options_alone_make_a_file_that_check_takes(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "llama.yaml"
    result = CliRunner().invoke(training_cluster, ["init", str(file), *options.split()])
    assert result.exit_code == 0, result.output
    assert [line.strip() for line in result.stdout.splitlines()[-3:]] == [
        f"training-cluster {verb} {file}" for verb in ("plan", "preflight", "deploy")
    ]
    show(read_cluster_file(file), now=datetime.now(UTC))
    assert "llama in us-" in capsys.readouterr().out


def _answering(*answers: str) -> tuple[list[str], Any]:
    asked, left = list[str](), list(answers)

    def ask(question: str, default: str | None) -> str:
        asked.append(question)
        return left.pop(0) or default or ""

    return asked, ask


def test_a_terminal_is_asked_for_needs_first_and_asked_again_after_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [
        "many",
        "16",
        "80",
        "2",
        "",
        "100",
        "us-east-1c",
        "slurm",
        "spot",
        "1 TiB",
        "",
        "",
        "a@example.com",
        "",
    ]
    asked, ask = _answering(*answers)
    file = tmp_path / "llama.yaml"
    run(file, Given(), zones=_OFFLINE, ask=ask)
    cluster, said = read_cluster_file(file), capsys.readouterr()
    assert [question.partition("?")[0] for question in asked[:4]] == [
        "How many accelerators does the job take, such as 8",
        "How many accelerators does the job take, such as 8",
        "How much memory must each have, in GiB",
        "Which type",
    ]
    assert "must be a whole number from 1 to 10000, got 'many'" in said.err
    assert "USD an hour" in said.out and "Ways to buy" in said.out  # noqa: PT018 - the two tables
    (group,) = cluster.node_groups
    assert (cluster.name, cluster.availability_zone, group.capacity.call) == ("llama", "us-east-1c", "spot")
    assert cluster.orchestrator.slurm is not None
    assert cluster.file_system is not None


def test_what_it_would_refuse_to_read_is_never_written(tmp_path: Path) -> None:
    file = tmp_path / "llama.yaml"
    many = ",".join(f"{number}@example.com" for number in range(11))
    with pytest.raises(ValueError, match="email"):
        run(file, Given(instance_type="p5.48xlarge", budget="10", emails=(many,)), zones=_OFFLINE)
    assert not file.exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "--accelerators is required where init cannot ask: standard input is no terminal"),
        (("--accelerators", "0"), "--accelerators must be a whole number from 1 to 10000, got '0'"),
        (("--accelerators", "1", "--memory", "-1"), "--memory must be a number above 0, got '-1'"),
        (
            ("--accelerators", "1", "--memory", "9999"),
            "no instance type with a public image has accelerators of 9999",
        ),
        (("--instance-type", "p5"), "unknown instance type 'p5'"),
        (("--instance-type", "p5.48xlarge", "--nodes", "1.5"), "--nodes must be a whole number from 1 to 10000"),
        (
            ("--instance-type", "p5.48xlarge", "--hours", "x"),
            "--hours must be a number, such as 336 or 70e9, got 'x'",
        ),
        (("--instance-type", "p5.48xlarge", "--buy", "cheap"), "--buy must be on_demand, reservation, "),
        (
            ("--instance-type", "p5.48xlarge", "--buy", "capacity_block"),
            "--capacity-id is required where init cannot",
        ),
        (("--instance-type", "p5.48xlarge", "--capacity-id", "cr-1"), "--capacity-id goes with from_reservation and"),
        (
            ("--instance-type", "p5.48xlarge", "--availability-zone", "mars"),
            "--availability-zone must be the name of",
        ),
        (
            ("--instance-type", "p5.48xlarge", "--availability-zone", "us-east-1b", "--region", "us-west-2"),
            "--availability-zone us-east-1b is in us-east-1, and --region is us-west-2",
        ),
        (("--instance-type", "p5.48xlarge", "--dataset", "4"), "--dataset must be a number above 0 and GiB, "),
        (("--instance-type", "p5.48xlarge", "--bucket", "s3://a"), "--bucket must be the name of a bucket"),
        (("--instance-type", "p5.48xlarge", "--budget", "0"), "--budget must be a number above 0, got '0'"),
        (("--instance-type", "p5.48xlarge", "--email", "me"), "--email must be an e-mail address"),
        (("--instance-type", "p5.48xlarge", "--name", "My Cluster"), "--name must be lower-case letters"),
        (("llama.txt",), "the cluster file's name must end in .yaml, got 'llama.txt'"),
        (("nowhere/llama.yaml",), "there is no directory nowhere: make it first"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(options: Sequence[str], sentence: str) -> None:
    result = CliRunner().invoke(training_cluster, ["init", *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {sentence}"), result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_exists_stays_unless_it_is_forced_away(tmp_path: Path) -> None:
    file = tmp_path / "llama.yaml"
    file.write_text("mine", encoding="utf-8")
    given = Given(instance_type="g5.xlarge")
    with pytest.raises(ValueError, match="exists: give another name, or --force to replace it"):
        run(file, given, zones=_OFFLINE)
    assert file.read_text(encoding="utf-8") == "mine"
    run(file, given, zones=_OFFLINE, force=True)
    assert read_cluster_file(file).name == "llama"


@pytest.mark.parametrize(("instance_type", "count", "gbps"), [("g5.xlarge", 1, 0.125), ("p5.48xlarge", 64, 10)])
def test_a_file_system_holds_the_data_and_feeds_the_accelerators(instance_type: str, count: int, gbps: float) -> None:
    wanted = replace(_P5, instance_type=instance_type, count=count)
    assert file_system_for(wanted) is None
    made = file_system_for(replace(wanted, dataset_gib=3000))
    assert made is not None
    assert made.capacity_gib is not None
    assert made.capacity_gib >= 3000
    assert made.delivered_gbps >= gbps


def test_offers_meet_the_need_and_the_cheapest_is_first() -> None:
    found = offers(16, 80, "us-east-1", _BOOK)
    assert all(accelerators(each.info)[0] * each.nodes >= 16 and accelerators(each.info)[1] >= 80 for each in found)
    linked = [each for each in found if each.info.maximum_efa_interfaces]
    assert found[: len(linked)] == linked
    known = [each.usd for each in linked if each.usd is not None]
    assert known == sorted(known)
    assert [each.usd for each in linked[: len(known)]] == known


def test_a_job_is_not_offered_chips_for_inference() -> None:
    assert not [each for each in offers(8, 24, "us-east-1", _BOOK) if each.info.name.startswith("inf")]


@pytest.mark.parametrize("orchestrator", [*KINDS])
def test_a_file_of_every_orchestrator_passes_check(orchestrator: str, tmp_path: Path) -> None:
    file = tmp_path / "llama.yaml"
    run(file, Given(instance_type="p5.48xlarge", orchestrator=orchestrator), zones=_OFFLINE)
    named = [name for name, settings in read_cluster_file(file).orchestrator if settings is not None]
    assert named == ([] if orchestrator == "none" else [orchestrator])
