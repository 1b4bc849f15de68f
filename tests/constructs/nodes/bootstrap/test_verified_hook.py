"""When a node verifies itself, and what it tells Auto Scaling and says of itself then."""

import contextlib
import json
import re
from collections.abc import Callable

import boto3
import pytest
from moto import mock_aws

from node_sandbox import COMPLETED, NodeSandbox

MakeNode = Callable[..., NodeSandbox]


@pytest.fixture
def verified(make_node: MakeNode) -> NodeSandbox:
    """A node of a group with a launch hook, with the one EFA device that it is expected to have."""
    expected = '{"p5.4xlarge":{"efa_devices":1}}'
    node = make_node(LAUNCH_HOOK="ready", MOUNT_SOURCE="", MOUNT_POINT="", EXPECTED=expected, RUNS_TABLE="runs")
    node.in_states("Pending:Wait")
    (node.sandbox / "places").write_text("3\n")
    node.write("var/lib/cdk-training-cluster/set-up", "i-0a1b2c3d4e5f67890\n")
    return node


def test_a_node_is_verified_before_its_group_counts_on_it_and_at_each_boot(verified: NodeSandbox) -> None:
    for arguments in ([], ["--boot"]):
        assert verified.bootstrap(*arguments).returncode == 0
        assert verified.steps[-2:] == ["verify", "hook"]
        assert json.loads(verified.read("var/lib/cdk-training-cluster/verify.json"))["passed"]
    assert verified.completions == [COMPLETED] * 2


def test_a_node_with_a_fault_of_its_host_is_replaced_and_never_called_ready(verified: NodeSandbox) -> None:
    (verified.root / "sys/class/infiniband/rdmap0s6").rename(verified.root / "sys/lost")
    verified.change_settings(EFA="")
    assert verified.bootstrap().returncode == 1
    assert verified.completions == [COMPLETED.replace("CONTINUE", "ABANDON")]
    assert (verified.state["state"], verified.state["step"]) == ("failed", "verify")
    sentence = "verification failed: efa_count: the node has 0 EFA devices"
    assert verified.state["message"].startswith(sentence)
    assert f"bootstrap failed at verify: {sentence}" in verified.read("dev/console")
    assert verified.read("run/cdk-training-cluster/drain/verify").startswith(sentence)


@pytest.mark.parametrize(
    ("table", "places", "message"),
    [
        ("runs", "", "3 nodes of workers were replaced within a day before they entered service, and no more are"),
        ("", "123", "the cluster has no table in which replaced nodes are counted"),
        ("runs", "broken", "whether more nodes of workers may be replaced is not known: aws is broken"),
    ],
)
def test_nodes_are_not_replaced_for_ever_nor_where_it_is_not_known_how_often(
    verified: NodeSandbox, table: str, places: str, message: str
) -> None:
    (verified.sandbox / "places").write_text(places)
    verified.change_settings(RUNS_TABLE=table)
    if places == "broken":
        verified.fail("aws", "put-item")
    verified.write("run/cdk-training-cluster/drain/verify", "verification failed: efa_count\n{}\n")
    said = verified.step("hook.sh --bad")
    assert said.returncode == 0
    assert message in said.stdout
    assert "is not replaced, and takes no job: verification failed: efa_count\n" in said.stdout
    assert verified.completions == []


def test_of_many_nodes_that_fail_together_three_a_day_are_replaced(verified: NodeSandbox) -> None:
    (verified.sandbox / "places").write_text("")
    with mock_aws():
        table = boto3.client("dynamodb", region_name="us-east-1")
        table.create_table(
            TableName="runs",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("run", "key")],
            KeySchema=[{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
            BillingMode="PAY_PER_REQUEST",
        )

        def place_of(node: str, *, days: float = 0) -> int | None:
            """Let DynamoDB answer what the node asks; return the place that it gets."""
            verified.becomes(node)
            verified.write("var/lib/cdk-training-cluster/set-up", node)
            (verified.sandbox / "calls").write_text("")
            verified.step("hook.sh --bad")
            asked = [call.partition("--cli-input-json ")[2] for call in verified.calls if "put-item" in call]
            assert len(asked) == 3
            for place, request in enumerate(asked, start=1):
                later = re.sub(r'(?<="N":")\d+', lambda now: str(int(now[0]) + round(days * 86_400)), request)
                with contextlib.suppress(table.exceptions.ConditionalCheckFailedException):
                    table.put_item(**json.loads(later))
                    return place
            return None

        assert [place_of(f"i-{number}") for number in (0, 1, 1, 2, 3, 0)] == [1, 2, 2, 3, None, 1]
        assert [place_of("i-4", days=days) for days in (0.99, 1.01)] == [None, 1]


@pytest.mark.parametrize("hook", ["ready", ""])
def test_a_node_that_failed_its_verification_says_so_until_it_passes_and_is_ready_then(
    verified: NodeSandbox, hook: str
) -> None:
    (verified.sandbox / "bin/timedatectl").write_text("#!/bin/bash\nexit 0\n")
    port = "sys/class/infiniband/rdmap0s6/ports/1/state"
    verified.write(port, "1: DOWN\n")
    verified.change_settings(LAUNCH_HOOK=hook)
    for arguments in ([], ["--boot"]):
        assert verified.bootstrap(*arguments).returncode == 1
        assert (verified.state["state"], verified.state["step"]) == ("failed", "verify")
        assert verified.state["message"].startswith("verification failed: efa_state: rdmap0s6 is 1: DOWN")
    # Another instance would have the fault too.
    assert verified.completions == []
    counted = [call for call in verified.calls if "put-metric-data" in call]
    assert ["VerificationFailed" in call for call in counted] == [True, True]
    verified.write(port, "4: ACTIVE\n")
    assert verified.bootstrap("--boot").returncode == 0
    assert (verified.state["state"], verified.completions) == ("ready", [COMPLETED] * bool(hook))


def test_a_verification_hides_no_set_up_that_failed(verified: NodeSandbox) -> None:
    verified.fail("modprobe", "efa")
    assert verified.bootstrap().returncode == 1
    for _ in range(2):
        assert verified.bootstrap("--boot").returncode == 1
        assert (verified.state["step"], verified.completions) == ("efa", [])
    said = json.loads(verified.read("var/lib/cdk-training-cluster/verify.json"))
    assert [check["name"] for check in said["checks"] if not check["passed"]] == ["set_up"]


def test_a_node_made_of_the_image_of_another_is_not_replaced_before_it_is_set_up(verified: NodeSandbox) -> None:
    assert verified.bootstrap().returncode == 0
    verified.becomes("i-0f0f0f0f0f0f0f0f0")
    (verified.root / "sys/class/infiniband/rdmap0s6").rename(verified.root / "sys/lost")
    before = len(verified.steps)
    assert verified.bootstrap("--boot").returncode == 0
    assert len(verified.steps) == before
    # Its set-up has begun meanwhile.
    (verified.root / "var/lib/cdk-training-cluster/set-up").unlink()
    assert verified.bootstrap("--boot").returncode == 1
    assert verified.completions == [COMPLETED]
