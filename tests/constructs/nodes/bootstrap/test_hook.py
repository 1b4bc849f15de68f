"""When a node tells Auto Scaling that it is ready: new, and started again out of a warm pool."""

from collections.abc import Callable

import pytest

from node_sandbox import COMPLETED, INSTANCE_STORE, NodeSandbox, disk

MakeNode = Callable[..., NodeSandbox]

LOG = "var/log/cdk-training-cluster.log"


@pytest.fixture
def pooled(make_node: MakeNode) -> NodeSandbox:
    """A node of a group with a warm pool; nothing of it is set up."""
    return make_node(LAUNCH_HOOK="ready", disks=[disk("nvme1n1", INSTANCE_STORE)])


def _questions(node: NodeSandbox) -> int:
    return sum("describe-auto-scaling-instances" in call for call in node.calls)


def _set_up(node: NodeSandbox) -> None:
    """Set the node up, and stop it: its disks are empty again."""
    node.in_states("Warmed:Pending:Wait")
    assert node.bootstrap().returncode == 0
    (node.sandbox / "labels/local-nvme").unlink()
    (node.sandbox / "mounted").unlink()
    (node.sandbox / "calls").write_text("")


@pytest.mark.parametrize("state", ["Warmed:Pending:Wait", "Pending:Wait"])
def test_a_new_node_lets_its_group_go_on_when_all_else_is_done(pooled: NodeSandbox, state: str) -> None:
    pooled.in_states(state)
    assert pooled.bootstrap().returncode == 0
    assert pooled.steps[-1] == "hook"
    assert pooled.calls[-1] == COMPLETED
    assert pooled.state["state"] == "ready"


def test_a_node_says_that_it_is_ready_before_it_may_be_stopped(pooled: NodeSandbox) -> None:
    pooled.in_states("Warmed:Pending:Wait")
    (pooled.sandbox / "bin/aws").write_text(
        "#!/bin/bash\necho 'workers-group\tWarmed:Pending:Wait'\n"
        'if [[ $2 == complete* ]]; then cd "$ROOT" && cp "var/lib/cdk-training-cluster/bootstrap.json" '
        'dev/console "$SANDBOX/s3"; fi\n'
    )
    assert pooled.bootstrap().returncode == 0
    assert '"state": "ready"' in (pooled.sandbox / "s3/bootstrap.json").read_text()
    assert (pooled.sandbox / "s3/console").read_text() == "cdk-training-cluster: ready\n"


def test_the_instance_is_found_with_a_token(pooled: NodeSandbox) -> None:
    pooled.in_states("Pending:Wait")
    assert pooled.step("hook.sh").returncode == 0
    assert [call for call in pooled.calls if "169.254.169.254" in call] == [
        "curl --fail --silent --show-error --max-time 5 --request PUT --header "
        "X-aws-ec2-metadata-token-ttl-seconds: 60 http://169.254.169.254/latest/api/token",
        "curl --fail --silent --show-error --max-time 5 --header X-aws-ec2-metadata-token: a-token "
        "http://169.254.169.254/latest/meta-data/instance-id",
    ]
    assert (
        "aws autoscaling describe-auto-scaling-instances --region us-east-1 --instance-ids i-0a1b2c3d4e5f67890 "
        "--query AutoScalingInstances[].[AutoScalingGroupName,LifecycleState] --output text"
    ) in pooled.calls


def test_a_node_of_the_pool_has_its_disks_and_its_file_system_before_its_group_counts_on_it(
    pooled: NodeSandbox,
) -> None:
    _set_up(pooled)
    pooled.in_states("Pending:Wait")
    assert pooled.bootstrap("--boot").returncode == 0
    order = [
        "mkfs.xfs -q -L local-nvme /dev/nvme1n1",
        "mount /opt/dlami/nvme",
        "systemctl start fsx.mount",
        COMPLETED,
    ]
    assert [call for call in pooled.calls if call in order] == order
    assert pooled.calls[-1] == COMPLETED


def test_a_node_without_a_file_system_mounts_none(make_node: MakeNode) -> None:
    node = make_node(LAUNCH_HOOK="ready", MOUNT_SOURCE="", MOUNT_POINT="", disks=[disk("nvme1n1", INSTANCE_STORE)])
    _set_up(node)
    node.in_states("Pending:Wait")
    assert node.bootstrap("--boot").returncode == 0
    assert node.calls[-1] == COMPLETED
    assert not any("fsx" in call for call in node.calls)


def test_every_later_boot_waits_for_the_network(pooled: NodeSandbox) -> None:
    _set_up(pooled)
    unit = pooled.read("etc/systemd/system/cdk-training-cluster-boot.service")
    assert "Wants=network-online.target\nAfter=network-online.target\n" in unit
    assert "\nBefore=slurmd.service\n" in unit
    assert "ExecStart=/bin/bash /opt/cdk-training-cluster/scripts/bootstrap.sh --boot\n" in unit


def test_a_node_for_which_no_hook_waits_calls_nothing(make_node: MakeNode) -> None:
    node = make_node()
    assert node.bootstrap().returncode == 0
    assert node.bootstrap("--boot").returncode == 0
    assert "hook" not in node.steps
    assert not [call for call in node.calls if call.startswith(("aws", "curl"))]
    assert "network-online" not in node.read("etc/systemd/system/cdk-training-cluster-boot.service")


# When there is nothing to complete


@pytest.mark.parametrize(
    "state",
    [
        *("InService", "Pending:Proceed", "Warmed:Pending:Proceed", "Standby", "Detached"),
        *("Terminating", "Terminating:Wait", "Warmed:Terminating:Wait", "Warmed:Running"),
    ],
)
def test_a_node_that_no_hook_waits_for_is_done(pooled: NodeSandbox, state: str) -> None:
    pooled.in_states(state)
    said = pooled.step("hook.sh")
    assert said.returncode == 0
    assert pooled.completions == []
    assert _questions(pooled) == 1
    assert (
        f"ok: Auto Scaling waits for no answer of i-0a1b2c3d4e5f67890, whose state is '{state}'"
        in said.stdout + said.stderr
    )


@pytest.mark.parametrize("early", ["", "Pending", "Warmed:Pending", "Warmed:Stopped"])
def test_a_node_that_is_quicker_than_auto_scaling_waits_for_it(pooled: NodeSandbox, early: str) -> None:
    _set_up(pooled)
    pooled.in_states(early, early, "Pending:Wait")
    assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.completions == [COMPLETED]
    assert [call for call in pooled.calls if call.startswith("sleep")] == ["sleep 5", "sleep 10"]


def test_an_action_that_is_not_active_is_done_when_the_node_is_in_service(pooled: NodeSandbox) -> None:
    # The hook timed out between the question and the answer.
    pooled.in_states("Pending:Wait", "InService")
    pooled.fail("aws", "complete-lifecycle-action")
    assert pooled.step("hook.sh").returncode == 0
    assert pooled.completions == [COMPLETED]


def test_an_action_that_is_not_active_yet_is_completed_later(pooled: NodeSandbox) -> None:
    pooled.in_states("Pending:Wait")
    pooled.fail("aws", "complete-lifecycle-action")
    (pooled.sandbox / "bin/sleep").write_text('#!/bin/bash\nrm -f "$SANDBOX/fail/aws"\n')
    assert pooled.step("hook.sh").returncode == 0
    assert pooled.completions == [COMPLETED] * 2


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("aws", "describe-auto-scaling-instances"), ("curl", "api/token"), ("curl", "instance-id")],
)
def test_a_passing_fault_is_tried_again(pooled: NodeSandbox, command: str, arguments: str) -> None:
    pooled.in_states("Pending:Wait")
    pooled.fail(command, arguments)
    (pooled.sandbox / "bin/sleep").write_text(f'#!/bin/bash\nrm -f "$SANDBOX/fail/{command}"\n')
    assert pooled.step("hook.sh").returncode == 0
    assert pooled.completions == [COMPLETED]


# When it goes wrong


@pytest.mark.parametrize(
    ("state", "fault"),
    [("Pending:Wait", "complete-lifecycle-action"), ("Pending", ""), ("", "")],
    ids=["never completed", "never waiting", "never known"],
)
def test_a_node_that_cannot_say_that_it_is_ready_says_why(pooled: NodeSandbox, state: str, fault: str) -> None:
    pooled.in_states(state)
    if fault:
        pooled.fail("aws", fault)
    assert pooled.bootstrap().returncode == 1
    assert (pooled.state["state"], pooled.state["step"]) == ("failed", "hook")
    assert pooled.state["message"].endswith(
        "error: Auto Scaling did not take the answer that i-0a1b2c3d4e5f67890 is ready, and goes on when the hook "
        "ready ends"
    )
    assert _questions(pooled) == 14


def test_a_node_that_does_not_learn_which_instance_it_is_says_so(pooled: NodeSandbox) -> None:
    pooled.fail("curl")
    assert pooled.bootstrap().returncode == 1
    assert pooled.state["step"] == "hook"
    assert "the instance metadata service does not say which instance this is" in pooled.state["message"]
    assert _questions(pooled) == 0


def test_a_node_whose_set_up_failed_is_never_called_ready(pooled: NodeSandbox) -> None:
    pooled.in_states("Pending:Wait")
    pooled.fail("modprobe", "lustre")
    assert pooled.bootstrap().returncode == 1
    assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.completions == []
    assert pooled.state["step"] == "lustre"
    assert "i-0a1b2c3d4e5f67890 has not been set up to the end" in pooled.read(LOG)


def test_a_set_up_that_was_run_again_and_failed_is_not_called_ready(pooled: NodeSandbox) -> None:
    _set_up(pooled)
    pooled.in_states("Pending:Wait")
    pooled.fail("modprobe", "lustre")
    assert pooled.bootstrap().returncode == 1
    assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.completions == []


def test_a_node_made_of_the_image_of_another_is_not_called_ready_for_it(pooled: NodeSandbox) -> None:
    _set_up(pooled)
    pooled.becomes("i-0f0f0f0f0f0f0f0f0")
    pooled.in_states("Pending:Wait")
    assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.completions == []


@pytest.mark.parametrize(
    ("command", "arguments", "step"),
    [("mkfs.xfs", "", "nvme"), ("systemctl", "start fsx.mount", "hook")],
    ids=["local NVMe", "file system"],
)
def test_a_node_that_lacks_something_after_its_start_is_not_called_ready(
    pooled: NodeSandbox, command: str, arguments: str, step: str
) -> None:
    _set_up(pooled)
    pooled.in_states("Pending:Wait")
    pooled.fail(command, arguments)
    assert pooled.bootstrap("--boot").returncode == 1
    assert (pooled.state["step"], pooled.completions) == (step, [])
    # The next start goes well, and the node was set up.
    (pooled.sandbox / "fail" / command).unlink()
    assert pooled.bootstrap("--boot").returncode == 0
    assert (pooled.state["state"], pooled.completions) == ("ready", [COMPLETED])


def test_a_node_that_could_not_say_so_at_first_says_so_at_its_next_start(pooled: NodeSandbox) -> None:
    pooled.in_states("Pending:Wait")
    pooled.fail("aws", "autoscaling")
    assert pooled.bootstrap().returncode == 1
    (pooled.sandbox / "fail/aws").unlink()
    assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.completions == [COMPLETED]


def test_starting_again_and_again_changes_nothing(pooled: NodeSandbox) -> None:
    _set_up(pooled)
    first = pooled.files()
    for _ in range(2):
        pooled.in_states("Pending:Wait")
        assert pooled.bootstrap("--boot").returncode == 0
    assert pooled.files() == first
