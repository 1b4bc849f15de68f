"""The table of all rules about one node group, and what it says of a group before anything is made."""

from collections.abc import Iterator, Mapping, Sequence

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.idle_rules import IDLE_RULES
from cdk_training_cluster.nodes.rules.purchase_rules import PURCHASE_RULES
from cdk_training_cluster.nodes.rules.rule import Level, NodeGroupRule, Situation
from cdk_training_cluster.nodes.rules.type_rules import TYPE_RULES, UNKNOWN_TYPE
from cdk_training_cluster.validation.rule import Problem, Setting, SettingsError, broken

NODE_GROUP_RULES: tuple[NodeGroupRule, ...] = (*TYPE_RULES, *PURCHASE_RULES, *IDLE_RULES)


def node_group_problems(
    nodes: Situation, rules: Sequence[NodeGroupRule] = NODE_GROUP_RULES, *, at: Setting = ()
) -> list[Problem]:
    """Say why a node group cannot be made; nothing if it can.

    Args:
        nodes: The settings, with what holds for them.
        rules: The rules to go by. Default: - all of them.
        at: Where the group stands among settings. Default: - it is the whole.
    """
    of = f"node group {nodes.group.name!r}"
    # Of no type nothing else is known either.
    table = (UNKNOWN_TYPE, *rules) if nodes.infos else (UNKNOWN_TYPE,)
    return list(broken(table, nodes, at=at, of=of))


def check_node_group(
    group: NodeGroup, facts: Sequence[InstanceTypeInfo] = (), availability_zone: str | None = None
) -> Situation:
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
    nodes = Situation.of(group, facts, availability_zone=availability_zone)
    problems = node_group_problems(nodes)
    if problems:
        raise SettingsError(problems)
    return nodes


def node_group_warnings(nodes: Situation, rules: Sequence[NodeGroupRule] = NODE_GROUP_RULES) -> Mapping[str, str]:
    """Say what of a node group that can be made will surprise: a sentence by the rule's id.

    Args:
        nodes: The settings, with what holds for them.
        rules: The rules to go by. Default: - all of them.
    """
    return by_rule(broken(rules, nodes, level=Level.WARNING), f"node group {nodes.group.name!r}: ")


def by_rule(problems: Iterator[Problem], start: str = "") -> Mapping[str, str]:
    """Return all the sentences of each rule, as one warning.

    Args:
        problems: What was found.
        start: What a warning begins with. Default: - nothing.
    """
    found: dict[str, str] = {}
    for problem in problems:
        before = found.get(problem.rule)
        found[problem.rule] = f"{start}{problem.message}" if before is None else f"{before} {problem.message}"
    return found
