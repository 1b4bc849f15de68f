"""The user data: it brings the scripts to the node, and says so where it cannot."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.bootstrap.shell import quote, shell_assignments
from cdk_training_cluster.nodes.bootstrap.user_data import render_user_data
from node_sandbox import NodeSandbox


@pytest.fixture
def node(tmp_path: Path) -> NodeSandbox:
    """A node that has nothing yet; its scripts are in S3."""
    node = NodeSandbox(tmp_path)
    node.publish_scripts()
    return node


def _first_boot(node: NodeSandbox) -> subprocess.CompletedProcess[str]:
    script = node.sandbox / "user-data"
    script.write_text(render_user_data(node.settings))
    return node.run(str(script))


def test_the_scripts_are_fetched_and_run(node: NodeSandbox) -> None:
    assert _first_boot(node).returncode == 0
    assert node.state["state"] == "ready"
    assert (
        f"aws s3 cp --only-show-errors --region us-east-1 s3://assets/scripts.zip {node.home}/scripts.zip"
        in node.calls
    )


def test_scripts_of_a_node_that_the_image_was_made_of_are_not_run(node: NodeSandbox) -> None:
    for stale in (node.home / "user-scripts" / "after-1-prep.sh", node.home / "scripts" / "agent.json"):
        stale.parent.mkdir(parents=True, exist_ok=True)
        stale.write_text("stale")
    assert _first_boot(node).returncode == 0
    assert not (node.home / "user-scripts" / "after-1-prep.sh").exists()
    assert "stale" not in [path.read_text() for path in (node.home / "scripts").glob("agent.json")]


def test_a_failing_step_is_the_user_data_s_own_failure(node: NodeSandbox) -> None:
    node.fail("modprobe", "lustre")
    assert _first_boot(node).returncode == 1
    assert node.state["step"] == "lustre"


def test_scripts_that_cannot_be_fetched_are_reported(node: NodeSandbox) -> None:
    node.fail("aws", "s3 cp")
    result = _first_boot(node)
    assert result.returncode == 1
    sentence = "the scripts could not be fetched: look at the instance role and the way to S3"
    assert node.state == {"state": "failed", "step": "fetch", "message": sentence}
    told = f"cdk-training-cluster: bootstrap failed at fetch: {sentence}\n"
    assert node.read("dev/console") == told
    assert told in result.stderr
    assert [call.split()[1] for call in node.calls if call.startswith("aws")] == [*["s3"] * 6, "cloudwatch"]


def test_an_archive_that_is_broken_is_fetched_again(node: NodeSandbox) -> None:
    whole = (node.sandbox / "s3/scripts.zip").rename(node.sandbox / "whole.zip")
    (node.sandbox / "s3/scripts.zip").write_bytes(whole.read_bytes()[:-100])
    (node.sandbox / "bin/sleep").write_text(
        '#!/usr/bin/env bash\ncp "$SANDBOX/whole.zip" "$SANDBOX/s3/scripts.zip"\n'
    )
    assert _first_boot(node).returncode == 0
    assert sum(call.startswith("aws s3 cp") for call in node.calls) == 2


def test_scripts_that_are_not_those_of_the_template_are_not_run(node: NodeSandbox) -> None:
    with zipfile.ZipFile(node.sandbox / "s3/scripts.zip", "a") as archive:
        archive.writestr("more.sh", "")
    assert _first_boot(node).returncode == 1
    assert node.state["message"] == (
        "the scripts in S3 are not those of this launch template: look at who changed the bucket of assets"
    )
    assert not (node.home / "scripts").exists()


def test_an_image_without_the_aws_cli_gets_it(node: NodeSandbox) -> None:
    node.lacks("aws")
    assert _first_boot(node).returncode == 0
    assert "snap install aws-cli --classic" in node.calls


def test_an_image_that_cannot_get_the_aws_cli_says_so(node: NodeSandbox) -> None:
    node.lacks("aws")
    node.fail("snap")
    assert _first_boot(node).returncode == 1
    assert node.state["message"] == "the image has no AWS CLI"
    assert "the image has no AWS CLI" in node.read("dev/console")


HOSTILE = [
    "plain",
    "it's",
    "'; touch broken; '",
    "$(touch broken) `touch broken` ${HOME} $'x'",
    'double " and back\\slash\\',
    "two\nlines",
    "\nSETTINGS\ntouch broken\n",
    "",
    " ",
]


def test_no_setting_can_break_out_of_its_quotes(node: NodeSandbox) -> None:
    settings = {"TEXT": HOSTILE[6], "LIST": HOSTILE, "END": "reached"}
    script = node.sandbox / "hostile"
    script.write_text(
        f"cat >settings <<'SETTINGS'\n{shell_assignments(settings)}SETTINGS\n. ./settings\n"
        'printf "<%s>" "$TEXT" "${LIST[@]}" "$END"\n'
    )
    told = subprocess.run(["bash", str(script)], cwd=node.sandbox, capture_output=True, text=True, check=True)
    assert told.stdout == "".join(f"<{value}>" for value in [HOSTILE[6], *HOSTILE, "reached"])
    assert not (node.sandbox / "broken").exists()


@pytest.mark.parametrize("value", HOSTILE)
def test_a_quoted_value_is_one_line(value: str) -> None:
    assert "\n" not in quote(value)


def test_it_is_as_clean_as_the_scripts_are(node: NodeSandbox) -> None:
    found = subprocess.run(
        ["shellcheck", "--exclude=SC1091", "-"],
        input=render_user_data(node.settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_user_data_that_ec2_would_refuse_is_refused_first(node: NodeSandbox) -> None:
    with pytest.raises(ValueError, match=r"^environment and scripts of a node group must leave the user data below"):
        render_user_data({**node.settings, "ENVIRONMENT": ["LONG=" + "x" * 16_384]})
