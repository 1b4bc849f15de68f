"""app.py, run as the CDK CLI runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdk_training_cluster_file import cluster_file_in

ROOT = Path(__file__).parents[2]


_ADVICE = ": name the cluster file in every cdk command, such as cdk synth -c cluster=clusters/base-pod.yaml"


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({}, "there is no context 'cluster'"),
        ({"clusters": "x.yaml"}, "there is no context 'cluster' (you gave 'clusters')"),
        ({"cluster": ""}, "the context 'cluster' is ''"),
        ({"cluster": ["clusters/dev-box.yaml"]}, "the context 'cluster' is ['clusters/dev-box.yaml']"),
    ],
)
def test_without_a_cluster_file_in_the_context_it_is_asked_for(context: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        cluster_file_in(context)
    assert str(refused.value) == f"{said}{_ADVICE}"


def test_without_a_cluster_nothing_is_made(tmp_path: Path) -> None:
    result = synth(tmp_path, {})
    assert (result.returncode, result.stderr) == (1, f"error: there is no context 'cluster'{_ADVICE}\n")
    assert stacks(tmp_path) == []


def test_cdk_json_names_no_cluster() -> None:
    assert "cluster" not in json.loads((ROOT / "cdk.json").read_text())["context"]


def test_a_relative_file_is_beside_the_app_wherever_it_runs(tmp_path: Path) -> None:
    result = synth(tmp_path, {"cluster": "clusters/dev-box.yaml"})
    assert result.returncode == 0, result.stderr
    assert stacks(tmp_path) == ["dev-box-cluster", "dev-box-foundation"]


def test_a_wrong_file_is_sentences_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: pod\navailability_zone: us-east-1b\nnode_group: []\n")
    result = synth(tmp_path, {"cluster": str(file)})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"error: {file}:3: node_group: unknown key; did you mean node_groups?\n"


def test_a_missing_file_is_named_as_it_was_given(tmp_path: Path) -> None:
    result = synth(tmp_path, {"cluster": "clusters/dev-bx.yaml"})
    assert (result.returncode, result.stderr) == (
        1,
        "error: clusters/dev-bx.yaml: there is no such file; did you mean clusters/dev-box.yaml?\n",
    )


def synth(directory: Path, context: dict[str, object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "app.py"],
        cwd=directory,
        env={
            **os.environ,
            "CDK_OUTDIR": str(directory / "cdk.out"),
            "CDK_CONTEXT_JSON": json.dumps(context),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def stacks(directory: Path) -> list[str]:
    return sorted(path.name.split(".")[0] for path in (directory / "cdk.out").glob("*.template.json"))


def test_a_cluster_waits_for_the_modules_of_no_orchestrator_but_its_own() -> None:
    prints = "import sys, cdk_training_cluster_stacks.app; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", prints], capture_output=True, text=True, check=True)
    assert not {f"aws_cdk.aws_{name}" for name in ("batch", "eks_v2", "pcs", "sagemaker")} & set(run.stdout.split())
