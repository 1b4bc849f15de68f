"""What the containers of a multi-node job run to meet each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

RENDEZVOUS_PORT: Final = 29_500
"""The port of torchrun's static rendezvous on the main node."""

# Batch tells the other nodes where the main one is, and not that one itself:
# https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html
_TORCHRUN = """\
set -euo pipefail
main=${{AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:-$(hostname -i | cut -d ' ' -f 1)}}
exec torchrun --nnodes "$AWS_BATCH_JOB_NUM_NODES" --node_rank "$AWS_BATCH_JOB_NODE_INDEX" \\
  --nproc_per_node {processes} --master_addr "$main" --master_port {port} "$@"
"""

_NCCL_TEST = "/tmp/nccl_test.py"  # noqa: S108 - in a container of its own


def torchrun_command(script: str, arguments: Sequence[str], processes: str) -> tuple[str, ...]:
    """Return the command that starts a program with torchrun on each node.

    Args:
        script: The program's file in the container.
        arguments: What it is given.
        processes: How many processes a node runs, as torchrun's `--nproc_per_node` takes it.
    """
    return ("bash", "-c", _TORCHRUN.format(processes=processes, port=RENDEZVOUS_PORT), "torchrun", script, *arguments)


def nccl_test_command() -> tuple[str, ...]:
    """Return the command that measures an all-reduce over all GPUs of all nodes."""
    program = (Path(__file__).parent / "nccl_test.py").read_text()
    write = f"cat > {_NCCL_TEST} <<'PROGRAM'\n{program}PROGRAM\n"
    return ("bash", "-c", f"{write}{_TORCHRUN.format(processes='gpu', port=RENDEZVOUS_PORT)}", "torchrun", _NCCL_TEST)
