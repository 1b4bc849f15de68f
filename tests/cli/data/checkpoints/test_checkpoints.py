"""`training-cluster checkpoints` on the local AWS: lists, proves and restores, and never destroys what differs."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from cluster_contract.checkpoints import place_parameter
from examples import PROJECT
from stored_runs import FILES, Runs, runs

__all__ = ["runs"]


def local(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_listing_shows_which_are_complete(runs: Runs) -> None:
    runs.put("step-2/rank 0.pt", b"half")
    status, said = runs.told("list")
    found = {each["name"]: (each["files"], each["bytes"], each["complete"]) for each in said["checkpoints"]}
    assert status == 0
    assert found == {
        "step-1": (len(FILES), sum(map(len, FILES.values())), True),
        "step-2": (1, 4, False),
    }
    (row,) = (line.split() for line in runs.ran("list").stdout.splitlines() if line.split()[:1] == ["step-1"])
    assert row[1:4] + row[-1:] == ["4", "2.9", "MiB", "yes"]


def test_a_key_writes_no_control_characters_to_a_terminal(runs: Runs) -> None:
    runs.put("u\x1b[31m/w\x9b", b"")
    for found in (runs.ran("list"), runs.ran("verify", "u\x1b[31m"), runs.ran("verify", "none")):
        assert ("u\\x1b[31m" in found.output, "\x1b" in found.output, "\x9b" in found.output) == (True, False, False)


@pytest.mark.parametrize("name", ["[red]step", "[/]step", "[/bold]\x1b[31m"])
def test_the_progress_on_a_terminal_shows_a_name_as_it_is(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    runs.put(f"{name}/.complete", b"")
    for command, *more in (("verify",), ("restore", tmp_path)):
        found = runs.ran(command, name, *more)
        assert (found.exit_code, found.exception) == (0, None)
        assert f"{command} {name}".replace("\x1b", "\\x1b") in found.stderr


def test_a_whole_checkpoint_is_proven(runs: Runs) -> None:
    status, said = runs.told("verify", "step-1")
    assert (status, said["outcome"], len(said["files"])) == (0, "proven", len(FILES))
    assert {each["algorithm"] for each in said["files"]} <= {"CRC64NVME", "CRC32"}
    conclusion = f"step-1 is verified in {runs.url}/step-1/: every file is proven."
    assert runs.ran("verify", "step-1").stdout.splitlines()[-1] == conclusion


def test_a_directory_of_checkpoints_is_none(runs: Runs) -> None:
    runs.put("run-7/step-1/.complete", b"")
    runs.put("run-7/step-2/rank 0.pt", b"half")
    assert runs.ran("verify", "run-7").stderr == (
        f"error: no checkpoint 'run-7' in {runs.url}/; near ones: run-7/step-2, run-7/step-1\n"
    )
    assert runs.told("verify", "run-7/step-1")[0] == 0
    assert runs.told("verify", "run-7/step-2")[1]["problems"] != []


def test_one_without_its_marker_is_not(runs: Runs, tmp_path: Path) -> None:
    runs.put("step-2/rank 0.pt", b"half")
    restored = runs.ran("restore", "step-2", tmp_path)
    conclusion = f"Every file of step-2 is restored to {tmp_path}/step-2, but it may not be a whole checkpoint."
    assert (restored.exit_code, restored.stdout.splitlines()[-1]) == (1, conclusion)
    status, said = runs.told("verify", "step-2")
    assert (status, said["outcome"]) == (1, "failed")
    assert said["problems"] == ["step-2 has neither .complete nor .metadata: it may be only a part of a checkpoint"]


_COPIES = {
    "the same": (lambda _: None, {}),
    "a flipped bit": (
        lambda copy: (copy / "rank 0.pt").write_bytes(b"\1" + FILES["rank 0.pt"][1:]),
        {"rank 0.pt": "rank 0.pt differs from S3 between bytes 0 and 1,048,576"},
    ),
    "a shorter file": (
        lambda copy: (copy / ".metadata").write_bytes(b"met"),
        {".metadata": ".metadata has 3 bytes, where S3 has 4"},
    ),
    "a missing file": (lambda copy: (copy / "empty").unlink(), {"empty": "empty is missing"}),
    "another file": (
        lambda copy: (copy / "new").write_bytes(b""),
        {"new": "new is not in S3: it is not exported yet, or was deleted there"},
    ),
}


@pytest.mark.parametrize(("change", "problems"), _COPIES.values(), ids=_COPIES)
def test_a_local_copy_is_compared_by_its_contents(
    runs: Runs, tmp_path: Path, change: object, problems: dict[str, str]
) -> None:
    assert runs.ran("restore", "step-1", tmp_path).exit_code == 0
    copy = tmp_path / "step-1"
    change(copy)  # type: ignore[operator]
    status, found = runs.problems("verify", "step-1", "--directory", tmp_path)
    assert found == {path: f"{copy}/{problem}" for path, problem in problems.items()}
    assert status == (1 if problems else 0)


def test_a_restored_directory_appears_whole_and_again_costs_no_download(runs: Runs, tmp_path: Path) -> None:
    status, said = runs.told("restore", "step-1", tmp_path)
    assert (status, said["outcome"]) == (0, "proven")
    assert local(tmp_path / "step-1") == dict(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    runs.aws.forget_calls()
    assert runs.ran("restore", "step-1", tmp_path).exit_code == 0
    assert runs.aws.calls("GetObject") == []


def workplace(directory: Path) -> Path:
    work = directory / ".step-1.training-cluster-restore"
    (work / "restored/deep").mkdir(parents=True)
    (work / "source").write_text("s3://runs")
    return work


def test_a_broken_off_restore_goes_on_where_it_stood(runs: Runs, tmp_path: Path) -> None:
    restored = workplace(tmp_path) / "restored"
    (restored / "rank 0.pt").write_bytes(FILES["rank 0.pt"][:1000])
    (restored / "deep/rank é+1 %.pt").write_bytes(b"wrong")
    (restored / ".metadata").write_bytes(FILES[".metadata"])
    runs.aws.forget_calls()
    assert runs.ran("restore", "step-1", tmp_path).exit_code == 0
    assert local(tmp_path / "step-1") == dict(FILES)
    # The file that was cut off is asked for once, the wrong one twice, and the whole one not at all.
    assert len(runs.aws.calls("GetObject")) == 3


def test_a_kill_between_the_two_renames_blocks_no_later_force(runs: Runs, tmp_path: Path) -> None:
    replaced = workplace(tmp_path) / "replaced"
    replaced.mkdir()
    for _ in range(2):
        assert runs.ran("restore", "step-1", tmp_path, "--force").exit_code == 0
        assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
        (tmp_path / "step-1/rank 0.pt").write_bytes(b"mine")


_FOREIGN = {
    "a file of another program": lambda work: (work / "restored/mine").write_bytes(b"mine"),
    "a directory without the note of a restore": lambda work: (work / "source").rename(work / "mine"),
    "something beside what a restore writes": lambda work: (work / "mine").write_bytes(b"mine"),
    "a link in place of a file": lambda work: (work / "restored/rank 0.pt").symlink_to(work.parent / "precious"),
    "a link in place of the directory": lambda work: work.rename(work.parent / "a") and work.symlink_to("a"),
    "a file in place of the directory": lambda work: work.rename(work.parent / "a") and work.write_bytes(b"mine"),
    "a link in place of what is restored": lambda work: (
        (work / "restored").rename(work.parent / "a") and (work / "restored").symlink_to("../a")
    ),
}


@pytest.mark.parametrize("change", _FOREIGN.values(), ids=_FOREIGN)
def test_a_restore_changes_nothing_that_no_restore_has_written(runs: Runs, tmp_path: Path, change: object) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    change(workplace(tmp_path))  # type: ignore[operator]
    before = local(tmp_path)
    refused = runs.ran("restore", "step-1", tmp_path, "--force")
    assert (refused.exit_code, local(tmp_path)) == (2, before)
    assert refused.stderr.startswith(f"error: {tmp_path}/.step-1.training-cluster-restore")
    assert refused.stderr.endswith(" is not of a restore of this checkpoint: move it away\n")


@pytest.mark.parametrize("name", ["../../evil", "x/../../evil", "..", ".", "a//b"])
def test_a_name_that_leads_out_of_the_destination_is_refused(runs: Runs, tmp_path: Path, name: str) -> None:
    runs.put(f"{name}/.metadata", b"")
    said = f"error: checkpoint {name!r} cannot be a directory below another: restore it to a prefix, s3://…\n"
    assert runs.ran("restore", name, tmp_path / "a/b", "--force").stderr == said
    assert runs.ran("verify", name, "--directory", tmp_path).stderr == said
    assert list(tmp_path.iterdir()) == []


def test_what_differs_stays_without_force(runs: Runs, tmp_path: Path) -> None:
    target = tmp_path / "step-1"
    assert runs.ran("restore", "step-1", tmp_path).exit_code == 0
    (target / "rank 0.pt").write_bytes(b"mine")
    refused = runs.ran("restore", "step-1", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"error: {target} is there and differs in rank 0.pt (it has 4 bytes, where S3 says 3,072,000): --force "
        "replaces it\n"
    )
    (target / "mine").write_bytes(b"mine")
    refused = runs.ran("restore", "step-1", tmp_path)
    assert (
        refused.stderr == f"error: {target} is there and has other files than the checkpoint: --force replaces it\n"
    )
    assert (target / "rank 0.pt").read_bytes() == b"mine"
    assert runs.ran("restore", "step-1", tmp_path, "--force").exit_code == 0
    assert local(target) == dict(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_a_copy_in_another_prefix_is_proven_and_its_marker_is_last(runs: Runs) -> None:
    other = f"s3://{runs.bucket}/other"
    runs.aws.fail("CopyObject", "AccessDenied", "Access Denied", match="empty")
    status, problems = runs.problems("restore", "step-1", other)
    denied = "AWS denies CopyObject (AccessDenied): your policy must allow it, and no other policy may deny it"
    assert (status, problems) == (1, {"empty": denied})
    assert runs.keys("other/step-1/") == set(FILES) - {"empty", ".metadata"}
    runs.aws.forget_calls()
    assert runs.ran("restore", "step-1", other).exit_code == 0
    assert runs.keys("other/step-1/") == set(FILES)
    assert len(runs.aws.calls("CopyObject")) == 2
    assert runs.ran("restore", "step-1", other).exit_code == 0
    assert len(runs.aws.calls("CopyObject")) == 2


def test_another_prefix_is_not_overwritten_without_force(runs: Runs) -> None:
    runs.s3.put_object(Bucket=runs.bucket, Key="other/step-1/empty", Body=b"mine")
    other = f"s3://{runs.bucket}/other"
    refused = runs.ran("restore", "step-1", other)
    assert refused.stderr == (
        f"error: {other}/step-1/ is there and differs in empty (s3://{runs.bucket}/other/step-1/empty: it has 4 "
        "bytes, where S3 says 0): --force replaces it\n"
    )
    assert runs.keys("other/step-1/") == {"empty"}
    assert runs.ran("restore", "step-1", other, "--force").exit_code == 0
    runs.s3.put_object(Bucket=runs.bucket, Key="other/step-1/more", Body=b"")
    assert runs.ran("restore", "step-1", other, "--force").stderr == (
        f"error: {other}/step-1/ is there and has more, which the checkpoint has not: delete it, or name another "
        "place\n"
    )
    assert runs.ran("restore", "step-1", runs.url, "--force").stderr == (
        f"error: {runs.url}/step-1/ is the checkpoint itself: name another place\n"
    )


def test_overwritten_and_deleted_files_come_back_from_versions(runs: Runs, tmp_path: Path) -> None:
    before = _next_second(runs)
    runs.put("step-1/rank 0.pt", b"overwritten")
    runs.put("step-1/later", b"later")
    runs.s3.delete_object(Bucket=runs.bucket, Key="ck/step-1/empty")
    given = ("restore", "step-1", tmp_path)
    assert runs.ran(*given, "--version-of", before).exit_code == 0
    assert local(tmp_path / "step-1") == dict(FILES)
    assert runs.ran(*given, "--force").exit_code == 0
    now = {**FILES, "rank 0.pt": b"overwritten", "later": b"later"}
    assert local(tmp_path / "step-1") == {path: body for path, body in now.items() if path != "empty"}
    there = ("restore", "step-1", runs.url, "--force", "--version-of", before)
    assert "is there and has later, which the checkpoint has not" in runs.ran(*there).stderr
    runs.s3.delete_object(Bucket=runs.bucket, Key="ck/step-1/later")
    # It came later, which S3 does not tell.
    assert "later may have been there then" in runs.ran(*there).stdout
    assert runs.keys("ck/step-1/") == set(FILES)
    early = runs.ran(*given, "--version-of", "2020-01-01T00:00:00Z")
    assert early.stderr == (
        f"error: {runs.url}/step-1/ has no version of 2020-01-01 00:00:00+00:00: S3 has only later ones, or there "
        "was none yet\n"
    )


def test_what_was_written_once_within_a_day_is_no_lost_version(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _next_second(runs)
    runs.put("step-1/later", b"later")
    given = ("restore", "step-1", tmp_path, "--version-of", before)
    assert runs.told(*given)[0] == 0
    monkeypatch.setattr("cdk_training_cluster_cli.data.checkpoints.source._SOONEST", timedelta(0))
    assert runs.told(*given)[1]["problems"] == ["later may have been there then: S3 has only later versions of it"]


def test_a_bucket_that_never_had_versions_has_none_of_a_time(runs: Runs, tmp_path: Path) -> None:
    runs.s3.create_bucket(Bucket=f"{runs.bucket}-plain")
    runs.s3.put_object(Bucket=f"{runs.bucket}-plain", Key="ck/step-1/.metadata", Body=b"")
    plain = replace(runs, bucket=f"{runs.bucket}-plain")
    refused = plain.ran("restore", "step-1", tmp_path, "--version-of", _next_second(runs))
    assert refused.stderr == f"error: S3 keeps no versions in {plain.url}/step-1/: leave --version-of out\n"


def test_a_key_that_leaves_the_directory_is_refused(runs: Runs, tmp_path: Path) -> None:
    runs.put("step-1/../../escaped", b"x")
    refused = runs.ran("restore", "step-1", tmp_path)
    assert (refused.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "cannot be a file below a directory: restore it to a prefix, s3://" in refused.stderr


def _next_second(runs: Runs) -> str:
    """Wait until what is written has a later time: S3's are whole seconds. Return the time before."""
    pages = runs.s3.get_paginator("list_object_versions").paginate(Bucket=runs.bucket)
    written = max(each["LastModified"] for page in pages for each in page["Versions"])
    while datetime.now(UTC) < written + timedelta(seconds=1):
        time.sleep(0.05)
    return cast(datetime, written).isoformat()


def test_what_may_lack_or_be_of_another_save_is_no_proof(runs: Runs, tmp_path: Path) -> None:
    before = _next_second(runs)
    runs.put("step-1/rank 0.pt", b"new")
    between = _next_second(runs)
    newer = "rank 0.pt was written after the marker: it may be of another save"
    status, said = runs.told("restore", "step-1", tmp_path / "a", "--version-of", between)
    assert (status, said["problems"]) == (1, [newer])
    found = runs.ran("verify", "step-1")
    assert (found.exit_code, found.stderr) == (0, f"warning: {newer}\n")
    runs.put("step-1/rank 0.pt", b"newest")
    for version in runs.s3.list_object_versions(Bucket=runs.bucket, Prefix="ck/step-1/rank 0.pt")["Versions"]:
        if version["LastModified"].isoformat() <= before:
            runs.s3.delete_object(Bucket=runs.bucket, Key=version["Key"], VersionId=version["VersionId"])
    status, said = runs.told("restore", "step-1", tmp_path / "b", "--version-of", before)
    assert (status, said["problems"]) == (
        1,
        ["rank 0.pt may have been there then: S3 has only later versions of it"],
    )


def test_what_fsx_exported_late_was_written_when_it_says(runs: Runs) -> None:
    runs.put("step-1/.metadata", b"meta", Metadata={"file-mtime": "20ns"})
    _next_second(runs)
    runs.put("step-1/rank 0.pt", b"a", Metadata={"file-mtime": "19ns"})
    assert runs.ran("verify", "step-1").stderr == ""
    runs.put("step-1/rank 0.pt", b"a", Metadata={"file-mtime": "21ns"})
    assert "rank 0.pt was written after the marker" in runs.ran("verify", "step-1").stderr


def test_a_cluster_s_own_place_is_read_from_its_parameter(runs: Runs, tmp_path: Path) -> None:
    file = PROJECT / "clusters/p4de.yaml"

    name = read_cluster_file(file).name
    missing = CliRunner().invoke(training_cluster, ["checkpoints", "list", str(file)])
    assert missing.stderr.startswith(f"error: cluster {name!r} has no checkpoint store in us-east-1: ")
    runs.aws.client("ssm").put_parameter(
        Name=f"/training-cluster/{name}/checkpoints",
        Type="String",
        Value=f'{{"bucket": "{runs.bucket}", "prefix": "ck/", "directory": "{tmp_path}"}}',
    )
    runs.ran("restore", "step-1", tmp_path)
    (tmp_path / "step-1/empty").unlink()
    found = CliRunner().invoke(training_cluster, ["checkpoints", "verify", str(file), "step-1"])
    assert (found.exit_code, f"{tmp_path}/step-1/empty is missing" in found.stdout) == (1, True)


_BAD = {
    "a directory of checkpoints": (
        ["verify", ""],
        "no checkpoint '' in {url}/; near ones: step-1",
    ),
    "a destination that is a file": (
        ["restore", "step-1", "/dev/null"],
        "Not a directory: /dev/null/.step-1.training-cluster-restore",
    ),
    "no such checkpoint": (
        ["verify", "stepp-1"],
        "no checkpoint 'stepp-1' in {url}/; near ones: step-1",
    ),
    "no zone in the time": (
        ["restore", "step-1", "/nowhere", "--version-of", "2026-11-22 18:00"],
        "--version-of must be a time with its zone, such as 2026-11-22T18:00:00Z, got '2026-11-22 18:00'",
    ),
    "no directory": (
        ["verify", "step-1", "--directory", "/nowhere"],
        "--directory must be a directory, got '/nowhere'",
    ),
    "an unknown format": (["list", "--output", "xml"], "--output must be table, json or markdown, got 'xml'"),
    "an unknown profile": (
        ["list", "--profile", "none"],
        "checkpoints cannot ask AWS: The config profile (none) could not be found",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), _BAD.values(), ids=_BAD)
def test_bad_input_is_one_sentence_and_status_2(runs: Runs, arguments: list[str], sentence: str) -> None:
    found = runs.ran(arguments[0], *arguments[1:])
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"error: {sentence.format(url=runs.url)}\n")


def test_a_cluster_s_checkpoints_are_found_by_its_name(runs: Runs) -> None:
    place = json.dumps({"bucket": runs.bucket, "prefix": "ck/"})
    runs.aws.client("ssm").put_parameter(Name=place_parameter("pod"), Value=place, Type="String")
    found = CliRunner().invoke(training_cluster, ["checkpoints", "list", "pod"])
    runs.aws.client("ssm").delete_parameter(Name=place_parameter("pod"))
    assert (found.exit_code, "step-1" in found.stdout) == (0, True)
