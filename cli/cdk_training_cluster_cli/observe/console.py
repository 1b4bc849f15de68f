"""What a node wrote to its console: its boot, and which step of its set-up failed."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.operate.nodes import find_nodes, named_node

# Types that are not based on the Nitro System have no latest output, only what EC2 posted after the last transition.
_NO_LATEST = "UnsupportedOperation"
_OURS = "cdk-training-cluster: "
_FAILED = "bootstrap failed"


def node_id(cluster: Deployed, text: str) -> str:
    """Return the id of a node that is named by its group and number, such as `workers/0`, and anything else as it is.

    Args:
        cluster: The cluster.
        text: What a user gave.

    Raises:
        ValueError: The group has no such node, or EC2 refuses.
    """
    return named_node(text, find_nodes(cluster.target), cluster.name).id if "/" in text else text


def console_output(cluster: Deployed, instance_id: str) -> str:
    """Return what a node wrote to its console last, at most 64 KB. Empty: nothing is there, or not yet.

    Args:
        cluster: The cluster.
        instance_id: The instance's id.

    Raises:
        ValueError: EC2 refuses.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetConsoleOutput.html
    """
    ec2 = cluster.client("ec2")
    with plain_refusals(f"the console output of {instance_id}", no_instance(cluster, instance_id)):
        try:
            return _output(ec2.get_console_output(InstanceId=instance_id, Latest=True))
        except ClientError as error:
            if error.response["Error"]["Code"] != _NO_LATEST:
                raise
            return _output(ec2.get_console_output(InstanceId=instance_id))


def no_instance(cluster: Deployed, instance_id: str) -> dict[str, str]:
    """Return what it means that EC2 does not know an instance, by the code that it answers with.

    Args:
        cluster: The cluster.
        instance_id: The instance's id.
    """
    said = (
        f"EC2 has no instance {instance_id} in {cluster.target.region}, or no longer: it forgets a terminated one "
        "within an hour or so"
    )
    return {f"InvalidInstanceID.{code}": said for code in ("NotFound", "Malformed")}


def failed_steps(output: str) -> Iterator[str]:
    """Yield what a console says of steps of the set-up that failed.

    Args:
        output: The console's output.
    """
    for line in output.splitlines():
        if _FAILED in line:
            yield line.partition(_OURS)[2].strip() or line.strip()


def _output(answer: Any) -> str:  # noqa: ANN401 - an answer of EC2
    return str(answer.get("Output", ""))
