"""What a deployed cluster says of itself, so that commands find it by its name: one SSM parameter.

It holds what its users would have to look for; what AWS answers of the parts that it names, it leaves out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster_contract.codec import Open, encode, read

MAX_CHARACTERS = 4096
"""How long a standard parameter's value may be; a longer one is billed each month.

Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
"""


@dataclass(frozen=True, kw_only=True)
class FunctionDescription(Open):
    """A function of a cluster.

    Attributes:
        invoke: What operators invoke, as the function name of an Invoke.
        log_group: The name of its log group.
    """

    invoke: str
    log_group: str


@dataclass(frozen=True, kw_only=True)
class ClusterDescription(Open):
    """The parts of a deployed cluster.

    Attributes:
        functions: Its functions, by what they are for: `power`, `idle`, `health`, `spend`, `hydration`,
            `checkpoints`, `costs` and `billing_alarms`, as far as it has them.
        alert_topic: The ARN of the topic that they notify.
        state_table: The name of the table that keeps their state.
        resume_document: The name of the runbook that starts node groups.
        dashboard: The name of its CloudWatch dashboard. Default: - empty: it has none.
        orchestrator: What runs jobs, as people call it. Default: - empty: nothing does.
        runs_table: The name of the table in which training runs report. Default: - empty: an earlier release made it.
        security_group: The id of the security group that every EC2 node has. Default: - empty: an earlier release
            made it.
        access: How to reach it: values by the names of the stack's outputs. Default: - none.
    """

    functions: Mapping[str, FunctionDescription]
    alert_topic: str
    state_table: str
    resume_document: str
    dashboard: str = ""
    orchestrator: str = ""
    runs_table: str = ""
    security_group: str = ""
    access: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "ClusterDescription":
        """Read the parameter's value.

        Args:
            text: The value.

        Raises:
            ValueError: It is not what a deployment writes.
        """
        return read(cls, json.loads(text))

    def values(self) -> dict[str, object]:
        """Return the JSON object of the parameter's value."""
        return encode(self)


def kind_of(package: str) -> str:
    """Return what a function is for, by its package among the library's Lambda sources.

    Args:
        package: The package, such as `cluster_power`.
    """
    return package.removeprefix("cluster_")


def description_parameter(cluster: str) -> str:
    """Return the name of the SSM parameter that holds a cluster's `ClusterDescription`.

    Args:
        cluster: The cluster's name.
    """
    return f"/training-cluster/{cluster}/description"
