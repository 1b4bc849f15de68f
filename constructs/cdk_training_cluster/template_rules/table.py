"""The table of all rules about a synthesized template, and what it says of one."""

from collections.abc import Iterator, Mapping, Sequence

from cdk_training_cluster.template_rules.block_rules import BLOCK_RULES
from cdk_training_cluster.template_rules.fleet_rules import FLEET_RULES
from cdk_training_cluster.template_rules.group_rules import GROUP_RULES
from cdk_training_cluster.template_rules.interface_rules import INTERFACE_RULES
from cdk_training_cluster.template_rules.market_rules import MARKET_RULES
from cdk_training_cluster.template_rules.reservation_rules import RESERVATION_RULES
from cdk_training_cluster.template_rules.rule import TemplateRule
from cdk_training_cluster.template_rules.segment_rules import SEGMENT_RULES
from cdk_training_cluster.template_rules.target_rules import TARGET_RULES
from cdk_training_cluster.template_rules.template import Finding, Template

RULES: tuple[TemplateRule, ...] = (
    *BLOCK_RULES,
    *MARKET_RULES,
    *RESERVATION_RULES,
    *TARGET_RULES,
    *SEGMENT_RULES,
    *FLEET_RULES,
    *GROUP_RULES,
    *INTERFACE_RULES,
)


def broken_rules(
    definition: Mapping[str, object], rules: Sequence[TemplateRule] = RULES, *, size: int | None = None
) -> Iterator[tuple[TemplateRule, tuple[Finding, ...]]]:
    """Yield each rule that a template breaks, with the places where it does, in the order of the template.

    Args:
        definition: The template.
        rules: The rules to go by. Default: - all of them.
        size: How many bytes its file has. Default: - not known.
    """
    template = Template(definition, size)
    if not template.owners:
        return
    for rule in rules:
        found = tuple(dict.fromkeys(rule.find(template)))
        if found:
            yield rule, found
