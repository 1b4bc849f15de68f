"""The `training-cluster` command, as people and pipelines use it."""

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli import command
from cdk_training_cluster_cli.core.options import complete_file
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file, refuse_past_ends, schema_text
from cdk_training_cluster_file.problems import ClusterFileError

CLUSTERS = Path(__file__).parents[2] / "clusters"

RUN = CliRunner(env={"COLUMNS": "1000"})


def _table(shown: str) -> list[str]:
    """Return the lines from the table on: the price is above it."""
    lines = shown.splitlines()
    return lines[next(at for at, line in enumerate(lines) if line.strip().startswith("Node group")) :]


def test_the_schema_is_printed_as_it_is_kept() -> None:
    result = RUN.invoke(training_cluster, ["schema"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, schema_text(), "")


def test_a_right_file_is_shown() -> None:
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "p4de.yaml")])
    assert result.exit_code == 0
    (row,) = (line.split() for line in _table(result.stdout) if "p4de" in line)
    assert " ".join(row) == "workers 8 p4de.24xlarge 8 x A100, 80 GiB 4, 400 Gbps on demand cluster"
    assert result.stdout.splitlines()[1:3] == [
        "Price at On-Demand list prices while all nodes run: $219.58 an hour",
        "  workers: 8 x p4de.24xlarge at $27.45",
    ]
    assert "FSx for Lustre of 4,800 GiB at 250 MB/s/TiB, mounted at /fsx\n" in result.stdout
    assert "  s3://(made by the foundation)/tokens/ appears at /fsx/data\n" in result.stdout
    warnings = [line for line in result.stdout.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert "acknowledge: {noAlerts: <why>}" in warnings[0]
    assert "acknowledge: {latestImage: <why>}" in warnings[1]


# What a sentence for Python's readers has, and one for a cluster file's must not have.
_PYTHON = re.compile(r"\bCapacity\b[.(]|\w+\(|\b(?:True|False|None)\b|[a-z]=[a-z]|machine_image|IdlePolicy|\back:")


@pytest.mark.parametrize(
    "example",
    ["hardened", "prioritized", *(pytest.param(each, marks=pytest.mark.sweep) for each in ("spot-elastic", "trn1"))],
)
def test_warnings_speak_yaml_and_end_when_they_are_acknowledged_as_they_say(example: str, tmp_path: Path) -> None:
    text = (CLUSTERS / f"{example}.yaml").read_text()
    (tmp_path / "as-it-is.yaml").write_text(text)
    shown = RUN.invoke(training_cluster, ["check", str(tmp_path / "as-it-is.yaml")]).stdout.splitlines()
    warnings = [line for line in shown if line.startswith("warning: ")]
    assert warnings
    assert [line for line in warnings if _PYTHON.search(line)] == []
    names = [re.findall(r"To accept this, write acknowledge: \{(\w+): <why>\}$", line) for line in warnings]
    settings = "".join(f"  {name}: we know\n" for name in {name for (name,) in names})
    # An example may have accepted other warnings.
    head, _, accepted = text.partition("acknowledge:\n")
    (tmp_path / "acknowledged.yaml").write_text(f"{head}\nacknowledge:\n{settings}{accepted}")
    said = RUN.invoke(training_cluster, ["check", str(tmp_path / "acknowledged.yaml")])
    assert (said.exit_code, "warning: " in said.stdout) == (0, False)


def test_an_existing_file_system_is_shown_without_a_price(tmp_path: Path) -> None:
    text = (CLUSTERS / "dev-box.yaml").read_text()
    text += "file_system: {existing: {file_system_id: fs-0a1b2c3d, mount_name: fsx}, mount_point: /data}\n"
    (tmp_path / "cluster.yaml").write_text(text)
    checked, planned = (
        RUN.invoke(training_cluster, [each, str(tmp_path / "cluster.yaml")]) for each in ("check", "plan")
    )
    assert "FSx for Lustre fs-0a1b2c3d, mounted at /data\n" in checked.stdout
    assert "its size is not given: --cost storage.file-system=USD" in " ".join(planned.stdout.split())


_PRICES = {
    "another region's": (
        "eu-west-1b",
        "p5.48xlarge",
        "p5.48xlarge at $55.04 (in us-east-1; that in eu-west-1 is not known)",
        "$111.20 an hour",
    ),
    "the dearest of several types": (
        "us-west-2b",
        "g6e.12xlarge, p5.48xlarge",
        "g6e.12xlarge at $10.49; p5.48xlarge at $55.04",
        "$111.09 an hour",
    ),
    "unknown": (
        "us-east-1b",
        "p5e.48xlarge",
        "p5e.48xlarge, whose price is not known",
        "$1.01 an hour and the nodes of here, whose price is not known",
    ),
}


@pytest.mark.parametrize(("zone", "types", "each", "total"), _PRICES.values(), ids=_PRICES)
def test_the_price_comes_first_and_is_never_zero_where_it_is_unknown(
    tmp_path: Path, zone: str, types: str, each: str, total: str
) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        f"name: pod\navailability_zone: {zone}\nnode_groups:\n"
        f"  - {{name: here, instance_types: [{types}], count: 2, image: latest, capacity: spot}}\n"
        "  - {name: dev, instance_types: [g5.xlarge], count: 1, image: latest}\n"
    )
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert result.stdout.splitlines()[1:3] == [
        f"Price at On-Demand list prices while all nodes run: {total}",
        f"  here: 2 x {each}",
    ]


def test_a_node_without_accelerators_and_a_named_bucket_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "cpu.yaml"
    file.write_text(
        "name: cpu\navailability_zone: us-east-2a\nfile_system: {}\n"
        "datasets: [{file_system_path: /, bucket: corpus}]\n"
        "node_groups: [{name: prep, instance_types: [hpc7a.96xlarge], count: 1, image: ami-0a1b2c3d, "
        "efa: false}]\nalerts: {emails: [ops@example.com]}\n"
    )
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert result.exit_code == 0
    (row,) = (line.split() for line in _table(result.stdout) if "hpc7a" in line)
    assert " ".join(row) == "prep 1 hpc7a.96xlarge none none on demand cluster"
    assert "  s3://corpus/ appears at /fsx\n" in result.stdout
    assert "warning" not in result.stdout


def _with_groups(settings: Iterable[str]) -> str:
    """Return a cluster file of a node group for each of these settings: g0, g1 and so on."""
    groups = "".join(
        f"  - name: g{at}\n    instance_types: [p5.48xlarge]\n    count: 4\n    image: ami-0a1b2c3d\n    {each}\n"
        for at, each in enumerate(settings)
    )
    return f"name: pod\navailability_zone: us-east-1b\nnode_groups:\n{groups}"


# What groups' settings say, and how their purchase and placement are shown.
_BOUGHT = {
    "placement: none": "on demand none",
    "warm_pool: {size: 2}": "on demand; warm pool of 2 cluster",
    "capacity: {reservation: {end: until_cancelled}}": "new reservation until cancelled cluster",
    "capacity: {reservation: {end: 2099-12-24T18:00:00+01:00, on_idle: release}}": (
        "new reservation until 2099-12-24 17:00 UTC, released while stopped cluster"
    ),
    "capacity: {from_reservation: {id: cr-0a1b2c3d}}": "reservation cr-0a1b2c3d none",
    "capacity: {from_reservation: {id: cr-1a1b2c3d, placement_group: '[mine]'}}": "reservation cr-1a1b2c3d [mine]",
    "capacity: {capacity_block: {id: cr-2a1b2c3d}}": "Capacity Block cr-2a1b2c3d none",
    "capacity: spot": "Spot none",
    "capacity: {spot: {max_price: 12.5}}": "Spot, at most $12.5 an hour none",
    "capacity: {spot_fleet: {max_price: 9}}": "Spot Fleet, at most $9 an hour none",
    "capacity: {prioritized: {reservations: [cr-3a1b2c3d, cr-4a1b2c3d], capacity_blocks: [cr-5a1b2c3d]}}": (
        "2 reservations, then 1 Capacity Block, then on demand none"
    ),
    "capacity: {prioritized: {reservations: [cr-6a1b2c3d], on_demand: false}}": "1 reservation none",
}


_NOW = datetime(2026, 12, 24, 18, tzinfo=UTC)


# What a reservation's end may be, and what is said when it is over.
_ENDS = {
    "2026-12-24T17:59:00Z": "17:59",
    "2026-12-24T18:59:00+01:00": "17:59",
    "2026-12-24T18:00:00Z": "18:00",
    "2026-12-24T18:01:00Z": None,
    "2026-12-24T17:01:00-01:00": None,
    "until_cancelled": None,
}


def test_reservations_that_have_ended_are_refused_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_with_groups(f"capacity: {{reservation: {{end: {end}}}}}" for end in _ENDS))
    with pytest.raises(ClusterFileError) as raised:
        refuse_past_ends(file, read_cluster_file(file), _NOW)
    assert [(problem.path, problem.message) for problem in raised.value.problems] == [
        (
            f"node_groups[{at}].capacity.reservation.end",
            f"must be in the future, got 2026-12-24 {told} UTC: EC2 makes no reservation that has ended; give a "
            "later end, or until_cancelled",
        )
        for at, told in enumerate(_ENDS.values())
        if told
    ]


@pytest.mark.parametrize("command", ["check", "plan", "diagram"])
def test_commands_that_cannot_see_the_cluster_warn_of_a_reservation_that_has_ended(
    tmp_path: Path, command: str
) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_with_groups(["capacity: {reservation: {end: 2026-11-02T00:00:00Z}}"]))
    result = RUN.invoke(training_cluster, [command, str(file)])
    assert result.exit_code == 0
    where = "node_groups[0].capacity.reservation.end"
    assert f"{where}: 2026-11-02 00:00 UTC is in the past: EC2 makes no new reservation" in result.stderr
    assert "A deployed cluster takes all other changes; leave this end as it is." in result.stderr


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        ("2020-01-01T00:00:00Z", "must be in the future, got 20"),
        ("9999-12-31T23:59:59-12:00", "must be a date and time that exist"),
        ("0001-01-01T00:00:00+12:00", "must be a date and time that exist"),
    ],
)
def test_check_refuses_an_end_that_no_reservation_can_have(tmp_path: Path, end: str, sentence: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_with_groups([f"capacity: {{reservation: {{end: '{end}'}}}}"]))
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


def test_how_groups_are_bought_is_shown_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_with_groups(_BOUGHT))
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert result.exit_code == 0
    rows = [" ".join(line.split()) for line in _table(result.stdout) if " x H100" in line]
    assert rows == [
        f"g{at} 4 p5.48xlarge 8 x H100, 80 GiB 32, 3,200 Gbps {shown}" for at, shown in enumerate(_BOUGHT.values())
    ]


def test_each_type_of_a_group_has_a_line() -> None:
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "spot.yaml")])
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in _table(result.stdout) if " x " in line]
    assert lines == [
        "workers 4 g6e.48xlarge 8 x L40S, 45 GiB 4, 400 Gbps Spot none",
        "g6e.24xlarge 4 x L40S, 45 GiB 2, 200 Gbps",
        "g6e.12xlarge 4 x L40S, 45 GiB 1, 100 Gbps",
        "g5.48xlarge 8 x A10G, 22 GiB 1, 100 Gbps",
    ]


def test_a_wrong_file_gets_all_problems_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: pod\navailability_zone: us-east-1\nnode_groups: []\n")
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        f"error: {file}:2: availability_zone: must be the name of an Availability Zone, such as us-east-1b, "
        'got "us-east-1"',
        f"error: {file}:3: node_groups: must hold at least 1, such as node_groups: "
        "[{name: workers, instance_types: [p5.48xlarge], count: 8, image: latest}], got []",
    ]


def test_facts_that_leave_no_interface_are_a_sentence_with_its_place_too(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "name: pod\navailability_zone: us-east-1b\n"
        "node_groups: [{name: workers, instance_types: [p9.48xlarge], count: 1, image: ami-0a1b2c3d}]\n"
        "instance_type_facts: [{name: p9.48xlarge, vcpus: 1, memory_mib: 1, architectures: [x86_64], "
        "maximum_efa_interfaces: 1, network_cards: "
        "[{index: 0, maximum_interfaces: 1, interface_types: [interface, efa-only], baseline_gbps: 1}]}]\n"
    )
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith(
        f"error: {file}:3: node_groups[0].efa: instance type p9.48xlarge: network card 0 has room"
    )


def test_a_missing_file_is_a_sentence() -> None:
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "bas-pod.yaml")])
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {CLUSTERS}/bas-pod.yaml: there is no such file; did you mean {CLUSTERS}/base-pod.yaml?\n"
    )


_MISUSED = {
    "check": "missing argument 'FILE'; see training-cluster check --help",
    "chekc": "no such command 'chekc'; did you mean 'check'?; see training-cluster --help",
    "schema more": "got unexpected extra argument(s) (more); see training-cluster schema --help",
    "plan llama": "invalid value for 'FILE': plan reads a cluster file, whose name ends in .yaml, and takes no name "
    "of a deployed cluster, got 'llama'; see training-cluster plan --help",
}


@pytest.mark.parametrize(("arguments", "said"), _MISUSED.items())
def test_misuse_is_one_sentence_with_status_2(arguments: str, said: str) -> None:
    result = RUN.invoke(training_cluster, arguments.split(), prog_name="training-cluster")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {said}\n")


def test_without_a_command_it_says_which_there_are() -> None:
    result = RUN.invoke(training_cluster, [])
    assert (result.exit_code, result.stderr) == (2, "")
    assert "key-policy" in result.stdout


def test_an_interrupt_is_a_line_with_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cdk_training_cluster_cli.files.overview.show", interrupt)
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "p4de.yaml")])
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_cluster_files_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLUSTERS.parent)
    assert list(complete_file("clusters/base")) == ["clusters/base-pod.yaml"]
    assert "clusters/" in list(complete_file(""))


def test_the_version_is_that_of_the_package() -> None:
    result = RUN.invoke(training_cluster, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("training-cluster 0.")


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)  # Python's own mark for a module that is not there
    with pytest.raises(SystemExit) as end:
        command.app()
    assert end.value.code == "error: typer not found; run: pip install 'cdk-training-cluster[cli]'"
