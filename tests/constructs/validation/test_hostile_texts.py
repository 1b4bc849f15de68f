"""Whatever text a user gives: it is refused in one sentence that names the setting, or AWS takes the templates."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aws_texts import is_taken
from cdk_training_cluster import (
    Capacity,
    ClusterNetwork,
    Dataset,
    IdleStop,
    NodeGroup,
    TrainingCluster,
    TrainingFileSystem,
)
from cdk_training_cluster.validation import LIMITS
from cdk_training_cluster.validation.templates.texts import texts_at
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.problems import ClusterFileError
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from synthesis import ZONE, new_stack

# Each near to something that AWS takes.
HOSTILE = [
    "",
    " ",
    "a ",
    "it's",
    "a\nb",
    "a\x00b",
    "\ud800",
    "é",
    "→",
    "aws:a",
    "AWS:a",
    "a" * 64,
    "a" * 129,
    "a" * 257,
]
HOSTILE += [
    "a" * 10_000,
    "/a",
    "/a\nb",
    "a/",
    "s3://a",
    "xn--a",
    "a.mrap",
    "a@b.co",
    "{{a}}",
    "${a}",
    ":a",
    "a,b",
    "a*b",
]
_TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=300))


def _cluster(stack: Stack, *, group: str = "workers", capacity: Capacity | None = None, **more: Any) -> None:
    workers = NodeGroup(group, instance_types=["g5.xlarge"], count=1, capacity=capacity or Capacity.on_demand())
    TrainingCluster(stack, "C", availability_zone=ZONE, node_groups=[workers], **more)


def _files(stack: Stack, **more: Any) -> None:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "bucket")
    dataset = Dataset(**{"bucket": bucket, "file_system_path": "/data", **more})
    TrainingFileSystem(stack, "F", network=ClusterNetwork(stack, "N", availability_zone=ZONE), datasets=[dataset])


def _idle(stack: Stack, **more: Any) -> None:
    IdleStop(stack, "I", **{"cluster_name": "pod", "alert_topic": sns.Topic(stack, "T"), **more})


def _placed(stack: Stack, text: str) -> None:
    _cluster(stack, capacity=Capacity.from_reservation("cr-0a1b2c3d4e5f67890", placement_group=text))


SETTINGS: Mapping[str, tuple[str, Callable[[Stack, str], None]]] = {
    "a cluster's name": ("cluster_name", lambda stack, text: _cluster(stack, cluster_name=text)),
    "a node group's name": ("name", lambda stack, text: _cluster(stack, group=text)),
    "a placement group": ("placement_group", _placed),
    "a directory": ("file_system_path", lambda stack, text: _files(stack, file_system_path=text)),
    "a prefix": ("prefix", lambda stack, text: _files(stack, prefix=text)),
    "the name of what is watched": ("cluster_name", lambda stack, text: _idle(stack, cluster_name=text)),
    "the tag of what is watched": ("tag_key", lambda stack, text: _idle(stack, tag_key=text)),
    "a namespace": ("metric_namespace", lambda stack, text: _idle(stack, metric_namespace=text)),
}

_RARELY = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("setting", SETTINGS)
@_RARELY
@given(text=_TEXTS)
@example("it's")
def test_a_construct_refuses_a_text_with_its_setting_or_aws_takes_the_template(setting: str, text: str) -> None:
    name, build = SETTINGS[setting]
    stack = new_stack()
    refused = _sentences(build, stack, text)
    if refused is not None:
        assert [sentence for sentence in refused if name not in sentence] == []
        return
    assert list(_refused(Template.from_stack(stack).to_json())) == []


def _sentences(build: Callable[[Stack, str], None], stack: Stack, text: str) -> list[str] | None:
    """Return the sentences with which a construct refuses a text; None: it does not."""
    try:
        build(stack, text)
    except ValueError as error:
        return str(error).splitlines()
    return None


FILE: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "name": lambda text: {"name": text},
    "tags": lambda text: {"tags": {text: "x"}},
    "tags.team": lambda text: {"tags": {"team": text}},
    "alerts.emails[0]": lambda text: {"alerts": {"emails": [text]}},
    "datasets[0].bucket": lambda text: {"datasets": [{"file_system_path": "/data", "bucket": text}]},
    "datasets[0].prefix": lambda text: {"datasets": [{"file_system_path": "/data", "prefix": text}]},
}


@pytest.mark.parametrize("setting", FILE)
@_RARELY
@given(text=_TEXTS)
@example("it's")
def test_a_cluster_file_refuses_a_text_with_its_place_or_aws_takes_the_templates(
    tmp_path: Path, setting: str, text: str
) -> None:
    workers = {"name": "workers", "instance_types": ["g5.xlarge"], "count": 1, "image": "latest"}
    whole = {
        "name": "pod",
        "availability_zone": ZONE,
        "file_system": {},
        "node_groups": [workers],
        **FILE[setting](text),
    }
    (tmp_path / "cluster.yaml").write_text(json.dumps(whole))
    refused = _problems(tmp_path)
    if refused is not None:
        assert [problem for problem in refused if not problem.startswith(setting)] == []
        return
    cluster = read_cluster_file("cluster.yaml", relative_to=tmp_path)
    app = App()
    foundation = FoundationStack(app, "F", cluster=cluster)
    nodes = ClusterStack(app, "C", cluster=cluster, foundation=foundation)
    for stack in (foundation, nodes):
        assert list(_refused(Template.from_stack(stack).to_json())) == []


def _problems(directory: Path) -> list[str] | None:
    """Return the settings that a cluster file is refused for; None: it is not."""
    try:
        read_cluster_file("cluster.yaml", relative_to=directory)
    except ClusterFileError as error:
        return [problem.path for problem in error.problems]
    return None


def _refused(template: Any) -> Iterator[tuple[str, str]]:
    """Yield each text of a template that the local AWS's own table refuses, with its place."""
    for row in LIMITS.values():
        for place in row.places:
            kind, _, path = place.partition(" ")
            for resource in template["Resources"].values():
                if resource["Type"] == kind or (kind.endswith("*") and resource["Type"].startswith(kind[:-1])):
                    for _, pieces in texts_at(resource.get("Properties", {}), path):
                        text = "".join(piece or "" for piece in pieces)
                        if None not in pieces and not is_taken(row.id, text):
                            yield place, text
