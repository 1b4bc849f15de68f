"""The settings of the health function, which its construct writes, and the names of its metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from cluster_contract.codec import FunctionSettings, Within, variable
from cluster_contract.owners import OwnedGroupSettings

SERIALS_REMEMBERED = timedelta(days=30)
"""For how long a node that comes with an accelerator of a replaced one is replaced as soon as that breaks again."""


@dataclass(frozen=True, kw_only=True)
class HealthPolicySettings:
    """What the health function may do, and how long it waits.

    Attributes:
        max_repairs: How many nodes of a node group are rebooted or replaced within the window at most.
        window: The time in which these repairs are counted.
        drain_timeout: How long a node may go on with its job before it is rebooted or replaced.
        verify_timeout: How long a node may take from its reboot to the report that it is verified.
        impaired_for: For how long EC2's status checks, or its owner's, must have failed before a node is cordoned.
        act: Whether it acts; if not, it reports only.
    """

    max_repairs: Annotated[int, Within(minimum=1)] = 3
    window: Annotated[timedelta, Within(above=0)] = timedelta(hours=24)
    drain_timeout: Annotated[timedelta, Within(minimum=0)] = timedelta(minutes=15)
    verify_timeout: Annotated[timedelta, Within(above=0)] = timedelta(minutes=20)
    impaired_for: Annotated[timedelta, Within(minimum=0)] = timedelta(minutes=15)
    act: bool = False


@dataclass(frozen=True, kw_only=True)
class HealthFunctionSettings(FunctionSettings):
    """The settings of the health function.

    Attributes:
        cluster: The cluster's name, the value of the tag on everything that belongs to it.
        groups: The cluster's node groups, by name.
        policy: What it may do, and how long it waits.
        topic_arn: The SNS topic that is notified. Empty: there is none.
        state_table: The name of the cluster's state table.
        stack_id: The end of the id of the stack that the function and the cluster's Auto Scaling groups belong to:
            `/` and its UUID, since an environment is small.
        region: The region that the function runs in.
    """

    environment_variable = "CLUSTER_HEALTH_SETTINGS"

    cluster: str
    groups: Mapping[str, OwnedGroupSettings] = field(default_factory=dict)
    policy: HealthPolicySettings = HealthPolicySettings()
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    state_table: str = variable("STATE_TABLE")
    stack_id: str = variable("STACK_ID")
    region: str = variable("AWS_REGION")


class HealthMetric(StrEnum):
    """The metrics of the health function, by cluster, one point a tick each."""

    FAULTY_NODES = "HealthFaultyNodes"
    """How many nodes have a fault that a reboot or another node ends, or are under repair."""

    REPAIRED_NODES = "HealthRepairedNodes"
    """How many nodes came back into service after a repair, or were replaced, in this run."""

    WAITING_NODES = "HealthWaitingNodes"
    """How many broken nodes wait for an operator: the budget is spent, they are kept, or no repair would help."""

    BUDGET_SPENT = "HealthBudgetSpent"
    """How many node groups have a faulty node and no repair left in the window."""

    EVALUATIONS = "HealthEvaluations"
    """1 for a run that could read everything its decisions rest on, else 0."""
