"""What AWS refuses, looked for in the synthesized template, where no escape hatch can get past it."""

from cdk_training_cluster.template_rules.plugin import check_templates
from cdk_training_cluster.template_rules.rule import TemplateRule
from cdk_training_cluster.template_rules.table import RULES, broken_rules
from cdk_training_cluster.template_rules.template import Finding

__all__ = ["RULES", "Finding", "TemplateRule", "broken_rules", "check_templates"]
