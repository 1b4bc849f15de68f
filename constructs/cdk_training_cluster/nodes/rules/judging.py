"""What is said of all the node groups of a cluster, before anything is made."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.idle_policy import DEFAULT_IDLE_POLICY, IdlePolicy
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.cluster_rules import together_problems
from cdk_training_cluster.nodes.rules.node_group_rules import node_group_problems
from cdk_training_cluster.nodes.rules.rule import Situation, Together, is_measured
from cdk_training_cluster.validation.rule import Problem
from cdk_training_cluster.validation.words import PYTHON, Words


def look_up(
    groups: Sequence[NodeGroup],
    policy: IdlePolicy | None = None,
    facts: Sequence[InstanceTypeInfo] = (),
    *,
    availability_zone: str | None = None,
    public_subnet: bool = False,
    words: Words = PYTHON,
) -> Together:
    """Look up what holds for a cluster's node groups: the facts about their types, and when nodes are idle.

    Nodes that report no utilization have the policy off: nothing can be known of them.

    Args:
        groups: The node groups.
        policy: The cluster's idle policy. Default: - the library's.
        facts: Facts about types that the catalog does not have. Default: - none.
        availability_zone: The cluster's zone. Default: - not known.
        public_subnet: Whether the nodes' subnet is known to be public. Default: - it is not.
        words: What sentences call settings. Default: - what Python calls them.
    """
    whole = (policy or IdlePolicy()).over(DEFAULT_IDLE_POLICY)
    return Together(
        nodes=[
            Situation.of(group, facts, availability_zone=availability_zone, whole_policy=whole, words=words)
            for group in groups
        ],
        policy=policy,
        public_subnet=public_subnet,
        words=words,
    )


def cluster_problems(together: Together) -> list[Problem]:
    """Say why node groups cannot be made, each by itself and all together; nothing if they can.

    Args:
        together: The node groups, with what holds for them.
    """
    return [
        *_names_twice(together.groups),
        *(
            _where_it_is_said(problem, nodes.group, together.policy)
            for place, nodes in enumerate(together.nodes)
            for problem in node_group_problems(nodes, at=("node_groups", place))
        ),
        *together_problems(together),
    ]


def _names_twice(groups: Sequence[NodeGroup]) -> Iterator[Problem]:
    names = [group.name for group in groups]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            last = len(names) - 1 - names[::-1].index(name)
            yield Problem(
                setting=("node_groups", last, "name"),
                message=f"node_groups must have different names, got {name!r} {names.count(name)} times: rename all "
                "but one",
                rule="nameOnce",
            )


def _where_it_is_said(problem: Problem, group: NodeGroup, policy: IdlePolicy | None) -> Problem:
    """Move what a node group leaves out of its idle policy to the cluster's, or to what the default does not fit."""
    match problem.setting:
        case (*at, "idle_policy", str() as setting):
            # Of the defaults only the warning can be wrong: for a window that somebody gives.
            for name in (setting, "window"):
                for place, given in ((at, group.idle_policy), ([], policy)):
                    if getattr(given, name, None) is not None:
                        return replace(problem, setting=(*place, "idle_policy", name))
    return problem


def idle_warnings(together: Together, policy: IdlePolicy | None) -> Iterator[str]:
    """Say which accelerated nodes are not watched, though the cluster's policy is on.

    Args:
        together: The node groups, each of which can be made.
        policy: The cluster's idle policy. None: the library's.
    """
    if policy is not None and policy.is_off:
        return
    for nodes in together.nodes:
        unmeasured = [info.name for info in nodes.infos if info.is_accelerated and not is_measured([info])]
        if unmeasured and nodes.group.idle_policy is None:
            yield (
                f"node group {nodes.group.name!r}: the accelerators of {' and '.join(unmeasured)} report no "
                "utilization: idle nodes are neither reported nor stopped; confirm with "
                f"{nodes.words.set_idle_off}"
            )
