"""Whatever the node groups: no rule finds fault with a legal cluster, and it synthesizes to what cfn-lint takes."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template
from cfnlint import api
from cfnlint.config import ManualArgs
from hypothesis import HealthCheck, Phase, given, settings

from cdk_training_cluster.nodes.rules import ClusterContext, cluster_problems
from cluster_plans import SAMPLE, ClusterPlan, Sample, node_group
from cluster_strategies import CLASSES, legal_clusters
from drawn_examples import examples
from synthesis import ZONE, new_stack

# A failure is not made smaller, which would take minutes: it shows the plan of the cluster as it is.
_QUICKLY: dict[str, Any] = {
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
}

# Which region has which types changes from week to week, and is nothing that a template could be wrong in.
_NOT_THE_TEMPLATE_S = ["E3628"]


def _problems(plan: ClusterPlan) -> list[str]:
    groups = [node_group(each) for each in plan.groups]
    together = ClusterContext.of(groups, facts=plan.facts, availability_zone=ZONE)
    return [str(problem) for problem in cluster_problems(together)]


@given(legal_clusters())
@settings(examples(60), **_QUICKLY)
def test_no_rule_refuses_a_legal_cluster(plan: ClusterPlan) -> None:
    assert _problems(plan) == []


@given(legal_clusters())
@settings(examples(2), **_QUICKLY)
def test_any_legal_cluster_synthesizes_to_what_cfn_lint_finds_nothing_in(plan: ClusterPlan) -> None:
    stack = new_stack()
    plan.make(stack)
    template = json.dumps(Template.from_stack(stack).to_json())
    config = ManualArgs(regions=["us-east-1"], ignore_checks=_NOT_THE_TEMPLATE_S)
    assert [str(found) for found in api.lint(template, config=config)] == []


@pytest.mark.parametrize("sample", SAMPLE.values(), ids=list(SAMPLE))
def test_the_sample_of_legal_clusters_is_legal(sample: Sample) -> None:
    assert _problems(sample.plan) == []


def test_the_sample_uses_every_way_to_buy() -> None:
    assert {group["call"] for sample in SAMPLE.values() for group in sample.plan.groups} == set(CLASSES)
