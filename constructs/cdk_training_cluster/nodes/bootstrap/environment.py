"""The environment variables of a node: the default, what is refused, and what deserves a warning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from constructs import IConstruct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.validation.checks import is_unknown, shown

HARMFUL_ENVIRONMENT = "cdk-training-cluster:harmfulEnvironment"
"""The id of the warning about a variable that breaks or slows a job."""

NEEDLESS_ENVIRONMENT = "cdk-training-cluster:needlessEnvironment"
"""The id of the warning about a variable that does nothing any more."""

# NCCL must not take a container bridge, a virtual pair, the loopback or ECS's way to credentials, `ecs-eth0` in the
# containers of AWS Batch, for the way to the other nodes.
# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
# https://github.com/NVIDIA/nccl/issues/859
DEFAULT_ENVIRONMENT: Mapping[str, str] = {"NCCL_SOCKET_IFNAME": "^docker,lo,veth,ecs"}
"""What every node gets unless the user sets it otherwise."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_CHEATSHEET = "https://github.com/aws-samples/awsome-distributed-training/blob/main/1.architectures/efa-cheatsheet.md"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"


@dataclass(frozen=True)
class _Advice:
    warning: str
    reason: str
    source: str
    value: str | None = None
    """The only value that the advice is about, in lower case. Default: - any."""


_ADVICE: Mapping[str, _Advice] = {
    "RDMAV_FORK_SAFE": _Advice(HARMFUL_ENVIRONMENT, "it breaks fork() on current kernels", _CHEATSHEET),
    "FI_EFA_FORK_SAFE": _Advice(
        HARMFUL_ENVIRONMENT,
        "it is obsolete: kernels since 5.15 keep registered memory across fork() by themselves",
        _CHEATSHEET,
    ),
    "FI_EFA_ENABLE_SHM_TRANSFER": _Advice(
        HARMFUL_ENVIRONMENT, "it is obsolete: shared memory is on by default, and NCCL has its own", _CHEATSHEET
    ),
    "NCCL_PROTO": _Advice(
        HARMFUL_ENVIRONMENT,
        "it was for aws-ofi-nccl up to 1.5 and takes the faster protocols away from small messages",
        _CHEATSHEET,
        "simple",
    ),
    "NCCL_BUFFSIZE": _Advice(
        HARMFUL_ENVIRONMENT,
        "another size than NCCL's own costs bandwidth or GPU memory",
        f"{_CHEATSHEET} and {_NCCL}#nccl-buffsize",
    ),
    "FI_PROVIDER": _Advice(NEEDLESS_ENVIRONMENT, "aws-ofi-nccl since 1.6 finds EFA by itself", _CHEATSHEET, "efa"),
    "FI_EFA_USE_DEVICE_RDMA": _Advice(
        NEEDLESS_ENVIRONMENT, "libfabric since 1.18 uses RDMA wherever the device has it", _CHEATSHEET
    ),
}


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a node's variables, the user's before the defaults, sorted by name.

    Args:
        environment: The user's variables.

    Raises:
        ValueError: A name is not a variable's name, or a value has more than one line.
    """
    problems = []
    for name, value in environment.items():
        if not _NAME.fullmatch(name):
            problems.append(
                "environment names must be letters, digits and underscores and not start with a digit, got "
                f"{shown(name)}"
            )
        elif not is_unknown(value) and any(character in value for character in "\n\r\0"):
            problems.append(f"environment value of {name} must be a single line of text, got {shown(value)}")
    if problems:
        raise ValueError("\n".join(problems))
    return dict(sorted({**DEFAULT_ENVIRONMENT, **environment}.items()))


def warn_about_environment(scope: IConstruct, environment: Mapping[str, str]) -> None:
    """Warn about variables that current libfabric and aws-ofi-nccl are better without.

    Args:
        scope: The construct the warnings are shown for.
        environment: The user's variables.
    """
    for name, value in sorted(environment.items()):
        advice = _ADVICE.get(name)
        if advice is not None and advice.value in {None, value.lower()}:
            warn(
                scope,
                advice.warning.removeprefix("cdk-training-cluster:"),
                f"environment sets {name}={value}: {advice.reason}. Leave it out; see {advice.source}.",
            )
