"""What `training-cluster check` accepts is synthesized, and of what is refused it says the file and the line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import App, CfnResource, Stack
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.problems import ClusterFileError
from cdk_training_cluster_stacks.building import built_stacks, refusals_in
from drawn_examples import examples
from examples import run_app

_START = "name: pod\navailability_zone: us-east-1b\n"
_GROUP = "{name: w%d, instance_types: [g5.xlarge], count: 1, image: ami-0a1b2c3d}"


def _groups(count: int) -> str:
    return "\n".join(["node_groups:", *(f"  - {_GROUP % at}" for at in range(count))])


def _with(more: str) -> str:
    return f"{_START}{_groups(1)}\n{more}"


# What is wrong, and the beginning of what is said of it, after the file's name.
_REFUSED = {
    "51 tags": (
        _with(f"tags: {{{', '.join(f't{at}: x' for at in range(51))}}}"),
        "5: tags: must hold at most 20, got",
    ),
    "an empty tag": (_with("tags:\n  team: ''"), "6: tags.team: must be one or more letters"),
    "two equal addresses": (
        _with("alerts: {emails: [a@example.com, a@example.com]}"),
        '5: alerts.emails[1]: "a@exam',
    ),
    "host bits": (_with("vpc_cidr: 10.0.1.5/16"), "5: vpc_cidr: must start with the first address of its range"),
    "/etc": (
        _with("file_system:\n  mount_point: /etc"),
        "6: file_system.mount_point: must not be a directory of the",
    ),
    "/usr/local": (_with("file_system:\n  mount_point: /usr/local"), "6: file_system.mount_point: must not be a dir"),
    "a required key without a value": ("name:\n", "1: name: has no value; write one, such as name: base-pod\n"),
    "another one": (_with("file_system:"), "5: file_system: has no value; write one, or leave the key out\n"),
}
_LARGE = {
    "more resources than a stack may have": (
        f"{_START}{_groups(100)}",
        "3: node_groups: stack pod-cluster would have 586 resources, and CloudFormation takes at most 500: declare "
        "fewer, larger node groups, or spread them over several cluster files\n",
    ),
    "300 groups": (f"{_START}{_groups(300)}", "3: node_groups: settings of cluster_power must fit into 4096 bytes"),
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(pytest.param(*case, id=name) for name, case in _REFUSED.items()),
        *(pytest.param(*case, id=name, marks=pytest.mark.sweep) for name, case in _LARGE.items()),
    ],
)
def test_what_synth_refuses_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    found = CliRunner().invoke(training_cluster, ["check", str(file)])
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith(f"error: {file}:{said}")


def test_what_cdk_refuses_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(f"{_START}{_groups(1)}\n")
    app = App()
    stack = Stack(app, "pod-cluster")
    for number in range(501):
        CfnResource(stack, f"Topic{number}", type="AWS::SNS::Topic")
    said = (
        rf"^{file}:3: node_groups: stack pod-cluster would have 501 resources, and CloudFormation takes at most 500: "
    )
    with pytest.raises(ClusterFileError, match=said), refusals_in(file):
        app.synth()


def _some(*values: object) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


_ID = "cr-0a1b2c3d4e5f67890"
_KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"
_NODE_GROUPS = st.fixed_dictionaries(
    {
        "name": _some("workers", "base", "W"),
        "instance_types": _some(["g5.xlarge"], ["p5.48xlarge"], ["g6e.48xlarge", "g5.48xlarge"], ["p9.huge"]),
        "count": _some(1, 8, 8, 8, 0),
        "image": _some("latest", "ami-0a1b2c3d"),
    },
    optional={
        "capacity": _some(
            *("on_demand", "spot", {"reservation": {"end": "until_cancelled"}}, {"spot_fleet": {"max_price": 3}}),
            *({"from_reservation": {"id": _ID, "instance_count": 4}}, {"capacity_block": {"id": _ID}}),
            *({"prioritized": {"reservations": [_ID]}}, {"spot": {"max_price": -1}}),
        ),
        "placement": _some("cluster", "none"),
        "warm_pool": _some({"size": 1}, {"size": 9}),
        "efa": st.booleans(),
        "idle": _some({"off": True}, {"window_minutes": 120}, {"warning_minutes": 600}, {"scope": "node"}),
        "environment": _some({"NCCL_DEBUG": "WARN"}, {"LD_PRELOAD": "x" * 9000}, {"PATH": "/x"}),
        "scripts_after": _some(["login.sh"], ["missing.sh"]),
    },
)
_DATASETS = st.fixed_dictionaries(
    {"file_system_path": _some("/data", "/data/more", "/")},
    optional={"bucket": _some("corpus", "s3://x"), "prefix": _some("tokens/", "/x"), "preload": st.booleans()},
)
_FILES = st.fixed_dictionaries(
    {
        "name": _some("pod", "pod", "pod", "Pod", "p" * 118),
        "availability_zone": _some("us-east-1b", "us-east-1b", "us-gov-west-1a", "us-east-1-atl-2a", "us-east-1"),
        "node_groups": st.lists(_NODE_GROUPS, min_size=1, max_size=2),
    },
    optional={
        "vpc_cidr": _some("10.20.0.0/16", "10.20.0.0/24", "10.0.1.5/16", "8.8.0.0/16"),
        "network": _some({"vpc_id": "vpc-0a1b2c3d", "subnet_id": "subnet-0a1b2c3d"}),
        "file_system": _some(
            *({}, {"storage_capacity_gib": 4800}, {"storage_capacity_gib": 4801}, {"mount_point": "/usr"}),
            *({"efa_enabled": True}, {"deployment_type": "SCRATCH_2"}, {"storage_type": "HDD"}),
            *(
                {"automatic_backup_retention_days": 7},
                {"existing": {"file_system_id": "fs-0a1b2c3d", "mount_name": "x"}},
            ),
        ),
        "datasets": st.lists(_DATASETS, max_size=2),
        "checkpoints": _some({}, {"express": {}}, {"exported": {"keep_versions": 5}}),
        "tags": st.dictionaries(_some("team", "cost center", "aws:x", "x" * 129), _some("ml", "", "é", "v" * 257)),
        "alerts": st.lists(_some("a@example.com", "b@example.com", "none"), max_size=3).map(
            lambda to: {"emails": to}
        ),
        "budget": _some({"monthly_usd": 1000}, {"monthly_usd": 0}, {"monthly_usd": 9, "thresholds": [50, 50]}),
        "idle": _some({"window_minutes": 30}, {"window_minutes": 1}, {"signals": {"session": True}}),
        "encryption_key": _some(_KEY, _KEY.replace("us-east-1", "us-west-2")),
        "access_logs": _some({"bucket": "logs"}),
        "account": _some("111122223333", 111122223333),
        "termination_protection": st.booleans(),
    },
)


def _written(file: Path, values: Mapping[str, Any]) -> Path:
    (file / "login.sh").write_text("#!/bin/sh\n")
    (file / "cluster.yaml").write_text(yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True))
    return file / "cluster.yaml"


def _refusals(file: Path) -> ClusterFileError | None:
    """Return what `check` refuses."""
    try:
        with refusals_in(file), built_stacks(read_cluster_file(file), synthesize=True):
            return None
    except ClusterFileError as error:
        return error


@examples(15)
@given(values=_FILES)
def test_a_file_is_synthesized_or_each_mistake_has_a_line(
    tmp_path_factory: pytest.TempPathFactory, values: Mapping[str, Any]
) -> None:
    refused = _refusals(_written(tmp_path_factory.mktemp("file"), values))
    assert refused is None or [problem for problem in refused.problems if problem.line is None] == []


@examples(1)
@given(values=_FILES)
def test_synth_says_the_same(tmp_path_factory: pytest.TempPathFactory, values: Mapping[str, Any]) -> None:
    _synth_says_the_same(tmp_path_factory, values)


@pytest.mark.sweep("test_synth_says_the_same")
@examples(8)
@given(values=_FILES)
def test_synth_says_the_same_of_more(tmp_path_factory: pytest.TempPathFactory, values: Mapping[str, Any]) -> None:
    _synth_says_the_same(tmp_path_factory, values)


def _synth_says_the_same(tmp_path_factory: pytest.TempPathFactory, values: Mapping[str, Any]) -> None:
    directory = tmp_path_factory.mktemp("file")
    file = _written(directory, values)
    ended, refused = run_app(file, directory / "out"), _refusals(file)
    assert (ended.returncode == 0) == (refused is None)
    assert refused is None or ended.stderr == "".join(f"error: {line}\n" for line in str(refused).splitlines())
