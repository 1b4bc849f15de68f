"""`training-cluster connect`: a shell on a node through Session Manager, with the user's AWS CLI."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence

from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_cli.operate.managed import OFFLINE, offline
from cdk_training_cluster_cli.operate.nodes import find_nodes, named_node

_NEEDED = {
    "aws": "the AWS CLI: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "the Session Manager plugin: "
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html",
}


def run(target: Target, name: str, *, profile: str | None, call: Callable[[Sequence[str]], int]) -> int:
    """Open a shell on a node on this terminal, and return the exit status.

    Args:
        target: The cluster.
        name: The node, as a user names it.
        profile: The profile of the AWS configuration. None: the default one.
        call: Runs a command on this terminal, and returns its exit status.

    Raises:
        ValueError: A program is missing, no live node is named so, the node's agent does not answer, or AWS refuses.
    """
    check_programs(os.environ)
    node = named_node(name, find_nodes(target), target.name)
    if offline(target, [node.id]):
        raise ValueError(f"{node.name} ({node.id}) cannot be reached: {OFFLINE}")
    command = ["aws", "ssm", "start-session", "--target", node.id, "--region", target.region]
    return call([*command, *([] if profile is None else ["--profile", profile])])


def check_programs(environment: Mapping[str, str]) -> None:
    """Refuse to go on without the programs that a session needs.

    Args:
        environment: The environment, whose PATH says where programs are.

    Raises:
        ValueError: One is missing.
    """
    missing = [what for program, what in _NEEDED.items() if not shutil.which(program, path=environment.get("PATH"))]
    if missing:
        raise ValueError(f"connect needs programs that are not installed; install {' and '.join(missing)}")
