"""Every rule about node groups: what it says in exact words, where it is silent, and that nothing else says it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cdk_training_cluster import Capacity, NodeGroup, Placement, TrainingCluster, WarmPool
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.rules import (
    CLUSTER_RULES,
    IDLE_RULES,
    NODE_GROUP_RULES,
    ORCHESTRATOR_RULES,
    SCHEDULE_RULES,
    ClusterContext,
    NodeGroupContext,
    node_group_problems,
    node_group_warnings,
    together_problems,
    together_warnings,
)
from cdk_training_cluster.validation.rule import Level, Problem, Rule
from node_group_cases import OTHER, OWN_IMAGE, RESERVED, Case, ClusterCase, node_group
from node_group_cases_cluster import CLUSTER_CASES as OTHER_CLUSTER_CASES
from node_group_cases_markets import MARKET_CASES
from node_group_cases_placement import PLACEMENT_CASES
from node_group_cases_purchases import PURCHASE_CASES
from node_group_cases_reservations import RESERVATION_CASES
from node_group_cases_sharing import SHARING_CASES
from node_group_cases_types import TYPE_CASES
from node_group_cases_warm_pools import WARM_POOL_CASES
from synthesis import ZONE, new_stack, warnings

CASES = {
    **TYPE_CASES,
    **MARKET_CASES,
    **PLACEMENT_CASES,
    **PURCHASE_CASES,
    **SHARING_CASES,
    **WARM_POOL_CASES,
}
CLUSTER_CASES = {**OTHER_CLUSTER_CASES, **RESERVATION_CASES}

# AWS's own, where the documentation of Neuron is kept elsewhere, and those of NVIDIA and SchedMD.
_AWS_DOCUMENT = re.compile(
    r"https://(docs\.aws\.amazon\.com|aws\.amazon\.com|awsdocs-neuron\.readthedocs-hosted\.com|docs\.nvidia\.com|github\.com/NVIDIA|slurm\.schedmd\.com)/\S+"
)


# The rules about idle nodes, schedules and orchestrators have tables of their own.
RULES = tuple(rule for rule in NODE_GROUP_RULES if rule not in (*IDLE_RULES, *SCHEDULE_RULES, *ORCHESTRATOR_RULES))


def _said(case: Case, rules: Sequence[Rule[NodeGroupContext]] = RULES) -> tuple[list[str], dict[str, str]]:
    """Return what rules say of a case: errors, or if there are none, warnings; both without the group's name."""
    start = f"node group {case.group.name!r}: "
    nodes = NodeGroupContext.of(case.group, case.facts, availability_zone=case.zone, orchestrator=case.orchestrator)
    errors = [problem.message for problem in node_group_problems(nodes, rules)]
    warnings = {} if errors else node_group_warnings(nodes, rules)
    assert all(sentence.startswith(start) for sentence in warnings.values())
    return errors, {rule: sentence.removeprefix(start) for rule, sentence in warnings.items()}


def _said_together(
    case: ClusterCase, rules: Sequence[Rule[ClusterContext]] = CLUSTER_RULES
) -> tuple[list[str], dict[str, str]]:
    together = ClusterContext.of(
        case.groups, case.policy, public_subnet=case.public_subnet, node_range=case.node_range
    )
    errors = [str(problem) for problem in together_problems(together, rules)]
    return errors, {} if errors else dict(together_warnings(together, rules))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{rule}-{case}") for rule, cases in CASES.items() for case in cases]
)
def test_a_node_group_is_judged_by_all_rules(case: Case) -> None:
    assert _said(case) == (list(case.errors), dict(case.warnings))


@pytest.mark.parametrize(
    ("shared", "usage_classes", "apart"),
    [
        ("g9.xlarge", ("capacity-block",), False),
        ("g9.xlarge", (), False),
        ("g9.xlarge", ("on-demand", "spot"), True),
        ("g10.xlarge", ("on-demand", "spot"), False),  # of which there are no facts
    ],
)
def test_groups_that_share_a_block_share_a_type_that_may_be_in_it(
    shared: str, usage_classes: tuple[str, ...], apart: bool
) -> None:
    facts = [replace(instance_type_info("g6.xlarge"), name="g9.xlarge", usage_classes=usage_classes)]
    capacity = Capacity.prioritized(capacity_blocks=[RESERVED])
    groups = [
        NodeGroup(name, instance_types=[shared, own], count=1, capacity=capacity)
        for name, own in (("a", "p5.48xlarge"), ("b", "p5en.48xlarge"))
    ]

    problems = together_problems(ClusterContext.of(groups, facts=facts))

    assert [problem.message.split(" for ")[0] for problem in problems] == (
        ["node groups 'a' and 'b' must have a type in common"] if apart else []
    )


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=rule) for rule, cases in CLUSTER_CASES.items() for case in cases]
)
def test_node_groups_are_judged_together(case: ClusterCase) -> None:
    assert _said_together(case) == (list(case.errors), dict(case.warnings))
    assert [problem for group in case.groups for problem in node_group_problems(NodeGroupContext.of(group))] == []


def _named(problem: Problem, group: NodeGroup) -> bool:
    """Tell whether a problem names a setting that the group has."""
    part: Any = group
    for name in problem.setting:
        if isinstance(name, str) and not hasattr(part, name):
            return False
        part = getattr(part, name) if isinstance(name, str) else part[name]
    return bool(problem.setting)


@pytest.mark.parametrize("rule", CASES)
def test_what_is_wrong_is_told_with_a_setting_that_there_is(rule: str) -> None:
    for case in CASES[rule]:
        nodes = NodeGroupContext.of(
            case.group, case.facts, availability_zone=case.zone, orchestrator=case.orchestrator
        )
        assert all(_named(problem, case.group) for problem in node_group_problems(nodes))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_without_a_rule_one_of_its_cases_passes_for_right(rule: Rule[NodeGroupContext]) -> None:
    others = [other for other in RULES if other is not rule]
    assert any(_said(case, others) != _said(case) for case in CASES[rule.id])


@pytest.mark.parametrize("rule", CLUSTER_RULES, ids=lambda rule: rule.id)
def test_without_a_rule_about_groups_together_one_of_its_cases_passes_for_right(rule: Rule[ClusterContext]) -> None:
    others = [other for other in CLUSTER_RULES if other is not rule]
    cases = CLUSTER_CASES[rule.id]
    assert any(_said_together(case, others) != _said_together(case) for case in cases)


def test_no_rules_say_nothing() -> None:
    for case in (case for cases in CASES.values() for case in cases):
        assert _said(case, []) == ([], {})
    for shared in (case for cases in CLUSTER_CASES.values() for case in cases):
        assert _said_together(shared, []) == ([], {})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_case_that_it_breaks_and_a_neighbour_that_it_does_not(rule: Rule[NodeGroupContext]) -> None:
    alone = [_said(case, [rule]) for case in CASES[rule.id]]
    assert any(said == ([], {}) for said in alone)
    assert any(bool(errors) is (rule.level is Level.ERROR) for errors, warnings in alone if errors or warnings)


@pytest.mark.parametrize("rule", CLUSTER_RULES, ids=lambda rule: rule.id)
def test_every_rule_about_groups_together_has_both_too(rule: Rule[ClusterContext]) -> None:
    alone = [_said_together(case, [rule]) for case in CLUSTER_CASES[rule.id]]
    assert ([], {}) in alone
    broken = [said for said in alone if said != ([], {})]
    assert broken
    assert all(bool(errors) is (rule.level is Level.ERROR) for errors, _ in broken)
    assert all(set(warnings) <= {rule.id} for _, warnings in broken)


def test_every_rule_has_an_id_of_its_own_and_cases_under_it() -> None:
    ids = [*(rule.id for rule in NODE_GROUP_RULES), *(rule.id for rule in CLUSTER_RULES)]
    assert len(ids) == len(set(ids))
    assert set(CASES) == {rule.id for rule in RULES}
    assert set(CLUSTER_CASES) == {rule.id for rule in CLUSTER_RULES}
    # A warning is acknowledged by it.
    assert all(re.fullmatch(r"[a-z][A-Za-z]*", one) for one in ids)


@pytest.mark.parametrize(
    "source",
    [pytest.param(rule.source, id=rule.id) for table in (NODE_GROUP_RULES, CLUSTER_RULES) for rule in table],
)
def test_every_rule_names_the_document_that_states_it(source: str) -> None:
    assert _AWS_DOCUMENT.fullmatch(source)


def test_the_ids_of_warnings_are_those_that_people_have_acknowledged() -> None:
    levels = [(rule.id, rule.level) for rule in NODE_GROUP_RULES] + [(rule.id, rule.level) for rule in CLUSTER_RULES]
    assert [one for one, level in levels if level is Level.WARNING] == [
        "severalArchitectures",
        "rareOnSpot",
        "efaUnused",
        "imex",
        "rootVolume",
        "reservationOutsidePlacementGroup",
        "severalTypesInPlacementGroup",
        "noPlacementGroup",
        "prioritizedBlocks",
        "releaseWarmPool",
        "spotFleet",
        "mpsOfOneGpu",
        "batchReservation",
        "batchFromReservation",
        "batchCapacityBlock",
        "sharedUnknownCount",
        "sharedPrioritized",
        "idleUnmeasured",
        "publicSubnet",
    ]


def test_mistakes_of_one_group_that_have_nothing_to_do_with_each_other_are_told_together() -> None:
    group = node_group(
        instance_types=["g5.xlarge"],
        efa=True,
        count=9,
        capacity=Capacity.from_reservation(RESERVED, availability_zone="us-east-1c", instance_count=8),
        warm_pool=WarmPool(size=10),
    )
    problems = node_group_problems(NodeGroupContext.of(group, availability_zone="us-east-1b"))
    assert [re.sub(r"(: [^:]*)[:;].*", r"\1", str(problem)) for problem in problems] == [
        "node group 'workers': instance type g5.xlarge has no EFA",
        f"node group 'workers': count must be at most 8, as many instances as {RESERVED} has, got 9",
        "node group 'workers': availability_zone of Capacity.from_reservation() must be the cluster's, us-east-1b, "
        "got us-east-1c",
        "node group 'workers': size of warm_pool must be at most the group's count, 9, got 10",
    ]


def test_mistakes_of_several_groups_are_told_together() -> None:
    held = Capacity.from_reservation(RESERVED, instance_count=8)
    groups = [
        node_group(name="a", capacity=held, count=9),
        node_group(name="b", capacity=Capacity.capacity_block(OTHER), placement=Placement.CLUSTER),
        node_group(name="c", capacity=held, count=1),
        node_group(name="d"),
    ]
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        TrainingCluster(new_stack(), "Cluster", availability_zone=ZONE, node_groups=groups)
    assert str(refused.value).splitlines() == [
        f"node group 'a': count must be at most 8, as many instances as {RESERVED} has, got 9: lower count, or "
        "correct instance_count",
        "node group 'b': placement must be left out, or Placement.NONE, for Capacity.capacity_block() with a "
        "Capacity Block, got Placement.CLUSTER: blocks do not support placement groups, and EC2 puts their instances "
        "close together by itself",
        f"node groups 'a' and 'c' must have at most 8 nodes together, as many instances as {RESERVED} has, got 9 + "
        "1: lower a count, or give one a reservation of its own",
    ]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"node_groups": node_group()}, ["node_groups"]),
        ({"node_groups": [{"name": "workers"}, node_group(), None]}, ["node_groups", "node_groups"]),
        ({"network": "vpc-0a1b2c3d", "file_system": "fs-0a1b2c3d"}, ["network", "file_system"]),
        ({"availability_zone": 5}, ["availability_zone"]),
        ({"datasets": ["tokens"]}, ["datasets"]),
        ({"cluster_name": 5}, ["cluster_name"]),
        (
            {"alert_topic": "alerts", "powertools_layer": "tools", "encryption_key": "mine"},
            ["alert_topic", "powertools_layer", "encryption_key"],
        ),
        ({"instance_type_facts": {"name": "p9.48xlarge"}}, ["instance_type_facts"]),
    ],
)
def test_what_no_rule_could_look_at_is_refused_before(settings: dict[str, Any], refused: list[str]) -> None:
    with pytest.raises(ValueError, match="must be") as error:
        TrainingCluster(
            new_stack(), "Cluster", **{"availability_zone": ZONE, "node_groups": [node_group()], **settings}
        )
    assert [line.split(" must be ")[0] for line in str(error.value).splitlines()] == refused


def test_what_is_warned_of_is_made_all_the_same() -> None:
    stack = new_stack()
    groups = [
        node_group(name="a", capacity=Capacity.spot_fleet(), efa=False, machine_image=OWN_IMAGE),
        *(node_group(name=name, capacity=Capacity.from_reservation(OTHER), machine_image=OWN_IMAGE) for name in "bc"),
    ]
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=groups)
    ids = {
        found for warning in warnings(stack) for found in re.findall(r"\[ack: cdk-training-cluster:(\w+)\]", warning)
    }
    assert ids == {"rareOnSpot", "efaUnused", "spotFleet", "sharedUnknownCount"}
