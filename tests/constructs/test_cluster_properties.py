"""Whatever the node groups: a legal cluster synthesizes and passes cfn-lint, an illegal one says what is wrong."""

import json
import re
from typing import Any

import pytest
from aws_cdk.assertions import Template
from cfnlint import api
from cfnlint.config import ManualArgs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cdk_training_cluster.nodes.rules import CLUSTER_RULES, IDLE_RULES, NODE_GROUP_RULES, Level
from cluster_breaks import OF_GROUPS_TOGETHER, OF_ONE_GROUP
from cluster_plans import SAMPLE, ClusterPlan, Sample
from cluster_strategies import CLASSES, Broken, legal_clusters
from drawn_examples import examples
from setting_breaks import OF_ONE_SETTING, OF_THE_CLUSTER
from synthesis import new_stack

# Each legal cluster costs seconds to lint, each illegal one a few hundredths to make.
_LEGAL, _ILLEGAL = 5, 4

# A failure is not made smaller, which would take minutes: it shows the plan of the cluster as it is.
_common: dict[str, Any] = {
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
}
_legal_examples = settings(examples(_LEGAL), **_common)
_illegal_examples = settings(examples(_ILLEGAL), **_common)

# Which region has which types changes from week to week, and is nothing that a template could be wrong in.
_NOT_THE_TEMPLATE_S = ["E3628"]

_BREAKS = {
    **OF_ONE_GROUP,
    **OF_GROUPS_TOGETHER,
    **{f"the setting {name}": [strategy] for name, strategy in OF_ONE_SETTING.items()},
    **{f"the cluster: {name}": [strategy] for name, strategy in OF_THE_CLUSTER.items()},
}


def _synthesized(plan: ClusterPlan) -> dict[str, Any]:
    stack = new_stack()
    plan.make(stack)
    return dict(Template.from_stack(stack).to_json())


def _findings(template: dict[str, Any]) -> list[str]:
    config = ManualArgs(regions=["us-east-1"], ignore_checks=_NOT_THE_TEMPLATE_S)
    return [str(found) for found in api.lint(json.dumps(template), config=config)]


@given(legal_clusters())
@_legal_examples
def test_any_legal_cluster_synthesizes_to_what_cfn_lint_finds_nothing_in(plan: ClusterPlan) -> None:
    assert _findings(_synthesized(plan)) == []


@pytest.mark.parametrize("name", _BREAKS)
@given(data=st.data())
@_illegal_examples
def test_any_illegal_cluster_is_refused_with_the_setting_by_a_value_error(name: str, data: st.DataObject) -> None:
    broken: Broken = data.draw(st.one_of(_BREAKS[name]))
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the text is looked at below
        broken.plan.make(new_stack())
    assert issubclass(refused.type, ValueError)
    assert re.search(broken.says, str(refused.value)), str(refused.value)
    if name in OF_ONE_GROUP or name in OF_GROUPS_TOGETHER:
        # Of the others, which are right, nothing is said.
        assert all(any(f"'{group}'" in line for group in broken.of) for line in str(refused.value).splitlines())


def test_every_rule_that_refuses_something_is_broken_by_one_of_them() -> None:
    # The rules about idle nodes have a table of their own.
    alone = {rule.id for rule in NODE_GROUP_RULES if rule.level is Level.ERROR and rule not in IDLE_RULES}
    assert set(OF_ONE_GROUP) == alone
    assert set(OF_GROUPS_TOGETHER) == {rule.id for rule in CLUSTER_RULES if rule.level is Level.ERROR}


@pytest.mark.parametrize("sample", SAMPLE.values(), ids=list(SAMPLE))
def test_the_sample_of_legal_clusters_is_legal(sample: Sample) -> None:
    assert _findings(_synthesized(sample.plan)) == []


def test_the_sample_uses_every_way_to_buy() -> None:
    assert {group["call"] for sample in SAMPLE.values() for group in sample.plan.groups} == set(CLASSES)
