"""Whatever the node groups: no rule finds fault with a legal cluster, and it synthesizes to what cfn-lint takes."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template
from cfnlint import api
from cfnlint.config import ManualArgs
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from cluster_plans import ORCHESTRATORS, SAMPLE, ClusterPlan, Sample
from cluster_strategies import CLASSES, legal_clusters
from drawn_examples import examples
from synthesis import new_stack

# A failure is not made smaller, which would take minutes: it shows the plan of the cluster as it is.
_QUICKLY: dict[str, Any] = {
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
}

# Which region has which types changes from week to week, and is nothing that a template could be wrong in.
_NOT_THE_TEMPLATE_S = ["E3628"]


@given(legal_clusters())
@settings(examples(60), **_QUICKLY)
def test_no_rule_refuses_a_legal_cluster(plan: ClusterPlan) -> None:
    assert plan.problems() == []


def _lints(plan: ClusterPlan) -> None:
    stack = new_stack()
    plan.make(stack)
    template = json.dumps(Template.from_stack(stack).to_json())
    config = ManualArgs(regions=["us-east-1"], ignore_checks=_NOT_THE_TEMPLATE_S)
    assert [str(found) for found in api.lint(template, config=config)] == []


# Each way to buy is linted with every change, in one cluster: test_linters.py.
@pytest.mark.sweep("test_any_legal_cluster_of_any_orchestrator_synthesizes_to_what_cfn_lint_finds_nothing_in")
@given(legal_clusters())
@settings(examples(1), **_QUICKLY)
def test_any_legal_cluster_synthesizes_to_what_cfn_lint_finds_nothing_in(plan: ClusterPlan) -> None:
    _lints(plan)


@given(legal_clusters(), st.sampled_from(sorted(ORCHESTRATORS)))
@settings(examples(1), **_QUICKLY)
def test_any_legal_cluster_of_any_orchestrator_synthesizes_to_what_cfn_lint_finds_nothing_in(
    plan: ClusterPlan, orchestrator: str
) -> None:
    taken = plan.for_orchestrator(orchestrator)
    assume(taken.groups and not taken.problems())
    _lints(taken)


@pytest.mark.parametrize("sample", SAMPLE.values(), ids=list(SAMPLE))
def test_the_sample_of_legal_clusters_is_legal(sample: Sample) -> None:
    assert sample.plan.problems() == []


def test_the_sample_uses_every_way_to_buy() -> None:
    assert {group["call"] for sample in SAMPLE.values() for group in sample.plan.groups} == set(CLASSES)
