"""The table of all rules about one node group, and what it says of a group before anything is made."""

from collections.abc import Mapping, Sequence

from cdk_training_cluster.checks import is_unknown
from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.purchase_rules import PURCHASE_RULES
from cdk_training_cluster.nodes.rules.rule import Level, Rule, Situation
from cdk_training_cluster.nodes.rules.type_rules import TYPE_RULES

NODE_GROUP_RULES: tuple[Rule, ...] = (*TYPE_RULES, *PURCHASE_RULES)


def node_group_problems(
    group: NodeGroup,
    facts: Sequence[InstanceTypeInfo] = (),
    *,
    availability_zone: str | None = None,
    rules: Sequence[Rule] = NODE_GROUP_RULES,
) -> list[str]:
    """Say why a node group cannot be made, a sentence each; none if it can.

    Args:
        group: The settings.
        facts: Facts about types that the catalog does not have. Default: - none.
        availability_zone: The cluster's zone. Default: - not known.
        rules: The rules to go by. Default: - all of them.
    """
    infos, found = [], []
    for name in group.instance_types:
        if is_unknown(name):
            found.append(
                f"instance_types must be known when the template is made, got {name}: interfaces and image follow "
                "from the type; use a context value instead of a parameter"
            )
            continue
        try:
            infos.append(instance_type_info(name, facts))
        except ValueError as error:
            found.append(str(error))
    situation = Situation(group=group, infos=infos, availability_zone=availability_zone)
    if infos:
        errors = (rule for rule in rules if rule.level is Level.ERROR)
        found += [problem for rule in errors for problem in rule.find(situation)]
    return [f"node group {group.name!r}: {problem}" for problem in found]


def node_group_warnings(
    group: NodeGroup, facts: Sequence[InstanceTypeInfo] = (), *, rules: Sequence[Rule] = NODE_GROUP_RULES
) -> Mapping[str, str]:
    """Say what of a node group that can be made will surprise: a sentence by the rule's id.

    Args:
        group: The settings.
        facts: Facts about types that the catalog does not have. Default: - none.
        rules: The rules to go by. Default: - all of them.
    """
    infos = [instance_type_info(name, facts) for name in group.instance_types]
    situation = Situation(group=group, infos=infos)
    return {
        rule.id: f"node group {group.name!r}: {' '.join(sentences)}"
        for rule in rules
        if rule.level is Level.WARNING and (sentences := list(rule.find(situation)))
    }
