"""Every rule about node groups: what it says in exact words, where it is silent, and that nothing else says it."""

import re
from collections.abc import Sequence

import pytest

from cdk_training_cluster.nodes.rules import (
    CLUSTER_RULES,
    NODE_GROUP_RULES,
    ClusterRule,
    Level,
    Rule,
    cluster_problems,
    node_group_problems,
    node_group_warnings,
)
from node_group_cases import Case, ClusterCase, node_group
from node_group_cases_cluster import CLUSTER_CASES
from node_group_cases_purchases import PURCHASE_CASES
from node_group_cases_types import TYPE_CASES

CASES = {**TYPE_CASES, **PURCHASE_CASES}

# AWS's own: the documentation of Neuron is kept elsewhere.
_AWS_DOCUMENT = re.compile(
    r"https://(docs\.aws\.amazon\.com|aws\.amazon\.com|awsdocs-neuron\.readthedocs-hosted\.com)/\S+"
)


def _said(case: Case, rules: Sequence[Rule] = NODE_GROUP_RULES) -> tuple[list[str], dict[str, str]]:
    """Return what rules say of a case: errors, or if there are none, warnings; both without the group's name."""
    start = f"node group {case.group.name!r}: "
    errors = node_group_problems(case.group, case.facts, availability_zone=case.zone, rules=rules)
    warnings = {} if errors else node_group_warnings(case.group, case.facts, rules=rules)
    said = [*errors, *warnings.values()]
    assert all(sentence.startswith(start) for sentence in said)
    return (
        [sentence.removeprefix(start) for sentence in errors],
        {rule: sentence.removeprefix(start) for rule, sentence in warnings.items()},
    )


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{rule}-{case}") for rule, cases in CASES.items() for case in cases]
)
def test_a_node_group_is_judged_by_all_rules(case: Case) -> None:
    assert _said(case) == (list(case.errors), dict(case.warnings))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=rule) for rule, cases in CLUSTER_CASES.items() for case in cases]
)
def test_node_groups_are_judged_together(case: ClusterCase) -> None:
    assert cluster_problems(case.groups) == list(case.errors)
    assert [problem for group in case.groups for problem in node_group_problems(group)] == []


@pytest.mark.parametrize("rule", NODE_GROUP_RULES, ids=lambda rule: rule.id)
def test_without_a_rule_one_of_its_cases_passes_for_right(rule: Rule) -> None:
    others = [other for other in NODE_GROUP_RULES if other is not rule]
    assert any(_said(case, others) != _said(case) for case in CASES[rule.id])


@pytest.mark.parametrize("rule", CLUSTER_RULES, ids=lambda rule: rule.id)
def test_without_a_rule_about_groups_together_one_of_its_cases_passes_for_right(rule: ClusterRule) -> None:
    others = [other for other in CLUSTER_RULES if other is not rule]
    cases = CLUSTER_CASES[rule.id]
    assert any(cluster_problems(case.groups, others) != cluster_problems(case.groups) for case in cases)


def test_no_rules_say_nothing() -> None:
    for case in (case for cases in CASES.values() for case in cases):
        assert _said(case, []) == ([], {})
    for shared in (case for cases in CLUSTER_CASES.values() for case in cases):
        assert cluster_problems(shared.groups, []) == []


@pytest.mark.parametrize("rule", NODE_GROUP_RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_case_that_it_breaks_and_a_neighbour_that_it_does_not(rule: Rule) -> None:
    alone = [_said(case, [rule]) for case in CASES[rule.id]]
    assert any(said == ([], {}) for said in alone)
    assert any(bool(errors) is (rule.level is Level.ERROR) for errors, warnings in alone if errors or warnings)


@pytest.mark.parametrize("rule", CLUSTER_RULES, ids=lambda rule: rule.id)
def test_every_rule_about_groups_together_has_both_too(rule: ClusterRule) -> None:
    alone = [bool(cluster_problems(case.groups, [rule])) for case in CLUSTER_CASES[rule.id]]
    assert set(alone) == {True, False}


def test_every_rule_has_an_id_of_its_own_and_cases_under_it() -> None:
    ids = [*(rule.id for rule in NODE_GROUP_RULES), *(rule.id for rule in CLUSTER_RULES)]
    assert len(ids) == len(set(ids))
    assert set(CASES) == {rule.id for rule in NODE_GROUP_RULES}
    assert set(CLUSTER_CASES) == {rule.id for rule in CLUSTER_RULES}
    # A warning is acknowledged by it.
    assert all(re.fullmatch(r"[a-z][A-Za-z]*", one) for one in ids)


@pytest.mark.parametrize(
    "source",
    [pytest.param(rule.source, id=rule.id) for table in (NODE_GROUP_RULES, CLUSTER_RULES) for rule in table],
)
def test_every_rule_names_the_document_of_aws_that_states_it(source: str) -> None:
    assert _AWS_DOCUMENT.fullmatch(source)


def test_the_ids_of_warnings_are_those_that_people_have_acknowledged() -> None:
    assert [rule.id for rule in NODE_GROUP_RULES if rule.level is Level.WARNING] == [
        "rareOnSpot",
        "efaUnused",
        "reservationOutsidePlacementGroup",
        "severalTypesInPlacementGroup",
        "spotFleet",
    ]


def test_mistakes_that_have_nothing_to_do_with_each_other_are_told_together() -> None:
    group = node_group(instance_types=["g5.xlarge", "nonsense.48xlarge"], efa=True)
    problems = node_group_problems(group)
    assert [problem.split(":")[1].split()[0] for problem in problems] == ["unknown", "instance"]
