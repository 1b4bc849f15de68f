"""What the rules say of node groups, each by itself and all together, before anything is made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.idle_policy import IdlePolicy
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.cluster_rules import CLUSTER_RULES
from cdk_training_cluster.nodes.rules.context import ClusterContext, NodeGroupContext
from cdk_training_cluster.nodes.rules.idle_rules import IDLE_RULES
from cdk_training_cluster.nodes.rules.orchestrator_rules import ORCHESTRATOR_RULES
from cdk_training_cluster.nodes.rules.purchase_rules import PURCHASE_RULES
from cdk_training_cluster.nodes.rules.schedule_rules import SCHEDULE_RULES
from cdk_training_cluster.nodes.rules.sharing_rules import SHARING_RULES
from cdk_training_cluster.nodes.rules.type_rules import TYPE_RULES, UNKNOWN_TYPE
from cdk_training_cluster.validation.rule import Level, Problem, Rule, Setting, SettingsError, broken

NODE_GROUP_RULES: Sequence[Rule[NodeGroupContext]] = (
    *TYPE_RULES,
    *PURCHASE_RULES,
    *SHARING_RULES,
    *IDLE_RULES,
    *SCHEDULE_RULES,
    *ORCHESTRATOR_RULES,
)


def node_group_problems(
    nodes: NodeGroupContext, rules: Sequence[Rule[NodeGroupContext]] = NODE_GROUP_RULES, *, at: Setting = ()
) -> list[Problem]:
    """Say why a node group cannot be made; nothing if it can.

    Args:
        nodes: The settings, with what holds for them.
        rules: The rules to go by. Default: - all of them.
        at: Where the group stands among settings. Default: - it is the whole.
    """
    # Of no type nothing else is known either.
    table = (UNKNOWN_TYPE, *rules) if nodes.infos else (UNKNOWN_TYPE,)
    return list(broken(table, nodes, at=at, of=f"node group {nodes.group.name!r}"))


def check_node_group(
    group: NodeGroup, facts: Sequence[InstanceTypeInfo] = (), availability_zone: str | None = None
) -> NodeGroupContext:
    """Refuse a node group that cannot be made by itself.

    Args:
        group: The settings.
        facts: Facts about types that the catalog does not have. Default: - none.
        availability_zone: The zone that it is made in. Default: - not known.

    Returns:
        The group, with what holds for it.

    Raises:
        SettingsError: AWS would refuse it; every reason, a line each.
    """
    nodes = NodeGroupContext.of(group, facts, availability_zone=availability_zone)
    problems = node_group_problems(nodes)
    if problems:
        raise SettingsError(problems)
    return nodes


def node_group_warnings(
    nodes: NodeGroupContext, rules: Sequence[Rule[NodeGroupContext]] = NODE_GROUP_RULES
) -> Mapping[str, str]:
    """Say what of a node group that can be made will surprise: a sentence by the rule's id.

    Args:
        nodes: The settings, with what holds for them.
        rules: The rules to go by. Default: - all of them.
    """
    return by_rule(broken(rules, nodes, level=Level.WARNING), f"node group {nodes.group.name!r}: ")


def together_problems(
    cluster: ClusterContext, rules: Sequence[Rule[ClusterContext]] = CLUSTER_RULES
) -> list[Problem]:
    """Say why node groups cannot be in one cluster; nothing if they can.

    Args:
        cluster: The cluster's node groups, with what holds for them.
        rules: The rules to go by. Default: - all of them.
    """
    return list(broken(rules, cluster))


def together_warnings(
    cluster: ClusterContext, rules: Sequence[Rule[ClusterContext]] = CLUSTER_RULES
) -> Mapping[str, str]:
    """Say what of node groups that can be in one cluster will surprise: a sentence by the rule's id.

    Args:
        cluster: The cluster's node groups, with what holds for them.
        rules: The rules to go by. Default: - all of them.
    """
    return by_rule(broken(rules, cluster, level=Level.WARNING))


def cluster_problems(cluster: ClusterContext) -> list[Problem]:
    """Say why node groups cannot be made, each by itself and all together; nothing if they can.

    Args:
        cluster: The node groups, with what holds for them.
    """
    return [
        *(
            _where_it_is_said(problem, nodes.group, cluster.policy)
            for place, nodes in enumerate(cluster.nodes)
            for problem in node_group_problems(nodes, at=("node_groups", place))
        ),
        *together_problems(cluster),
    ]


def _where_it_is_said(problem: Problem, group: NodeGroup, policy: IdlePolicy | None) -> Problem:
    """Move what a node group leaves out to the cluster's setting, or to what a default does not fit."""
    match problem.setting:
        case (*_, "schedule") if group.schedule is None:
            return replace(problem, setting=("schedule",))
        case (*at, "idle_policy", str() as setting):
            # Of the defaults only the warning can be wrong: for a window that a policy gives.
            for name in (setting, "window"):
                for place, given in ((at, group.idle_policy), ([], policy)):
                    if getattr(given, name, None) is not None:
                        return replace(problem, setting=(*place, "idle_policy", name))
    return problem


def by_rule(problems: Iterator[Problem], start: str = "") -> Mapping[str, str]:
    """Return all the sentences of each rule as one warning.

    Args:
        problems: What the rules say.
        start: How each warning begins. Default: - with nothing of its own.
    """
    found: dict[str, str] = {}
    for problem in problems:
        before = found.get(problem.rule)
        found[problem.rule] = f"{start}{problem.message}" if before is None else f"{before} {problem.message}"
    return found
