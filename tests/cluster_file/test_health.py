"""What a cluster file says of broken nodes: read, and refused with its line in one sentence."""

from pathlib import Path

from aws_cdk import Duration

from cdk_training_cluster import HealthPolicy
from cdk_training_cluster_file import read_cluster_file
from cluster_files import RIGHT, problems


def test_every_setting_is_read_and_what_is_left_out_changes_no_node(tmp_path: Path) -> None:
    health = "{act: true, max_repairs: 2, window_hours: 12, drain_minutes: 0, verify_minutes: 30, grace_minutes: 2}"
    (tmp_path / "cluster.yaml").write_text(f"{RIGHT}health: {health}\n")
    (tmp_path / "plain.yaml").write_text(f"{RIGHT}health: {{}}\n")
    given, plain = (
        read_cluster_file(name, relative_to=tmp_path).to_guardrails()["health"]
        for name in ("cluster.yaml", "plain.yaml")
    )
    assert given is not None
    assert plain is not None
    wanted = HealthPolicy(
        act=True,
        max_repairs=2,
        window=Duration.hours(12),
        drain_timeout=Duration.minutes(0),
        verify_timeout=Duration.minutes(30),
        grace=Duration.minutes(2),
    )
    assert given.grace_seconds == wanted.grace_seconds == 120
    assert given.to_contract() == wanted.to_contract()
    assert plain.to_contract() == HealthPolicy().to_contract()


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    wrong = "health:\n  acts: true\n  max_repairs: 0\n  window_hours: 200\n  drain_minutes: -1\n  verify_minutes: 4\n"
    assert problems(tmp_path, RIGHT + wrong) == [
        "cluster.yaml:13: health.acts: unknown key; did you mean act?",
        "cluster.yaml:14: health.max_repairs: must be at least 1, got 0",
        "cluster.yaml:15: health.window_hours: must be at most 168, got 200",
        "cluster.yaml:16: health.drain_minutes: must be at least 0, got -1",
        "cluster.yaml:17: health.verify_minutes: must be at least 5, got 4",
    ]
