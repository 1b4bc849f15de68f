"""What an escape hatch can break: where each rule finds it, and where it cannot know."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules import RULES, TemplateRule, broken_rules
from escape_hatches import ABSENT, CONDITION, CONFIG, DATA, Changes
from right_escape_hatches import RIGHT
from wrong_escape_hatches import WRONG

Template = dict[str, Any]
Found = dict[str, list[str]]
MakeTemplate = Callable[[str, Changes], Template]


def found(made: Template, rules: Sequence[TemplateRule] = RULES) -> Found:
    return {
        rule.id: [f"{place.logical_id}.{place.location.removeprefix('Properties.')}" for place in places]
        for rule, places in broken_rules(made, rules, size=len(json.dumps(made)))
    }


def expected(row: Sequence[Any]) -> Found:
    update_policy = "Nodes.UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties"
    place = row[3] if len(row) > 3 else next(iter(row[2]))
    return {row[0]: [update_policy if "!" in place else place]}


def _name(row: Sequence[Any]) -> str:
    return f"{row[0]}: {', '.join(row[2] if len(row) > 2 else row[1])}"


@pytest.mark.parametrize("kind", ["on demand", "reservation", "block", "spot", "fleet", "prioritized"])
def test_what_the_library_makes_breaks_no_rule(template: MakeTemplate, kind: str) -> None:
    assert found(template(kind, {})) == {}


@pytest.mark.parametrize("row", WRONG, ids=_name)
def test_a_wrong_template_breaks_its_rule_in_its_place_and_no_other(
    template: MakeTemplate, row: Sequence[Any]
) -> None:
    assert found(template(row[1], row[2])) == expected(row)


@pytest.mark.parametrize("row", WRONG, ids=_name)
def test_a_condition_where_the_mistake_was_breaks_no_rule(template: MakeTemplate, row: Sequence[Any]) -> None:
    decisive, *others = row[2].items()
    assert row[0] not in found(template(row[1], dict([(decisive[0], CONDITION), *others])))


@pytest.mark.parametrize("row", RIGHT, ids=_name)
def test_what_is_allowed_or_not_known_breaks_no_rule(template: MakeTemplate, row: tuple[str, Changes]) -> None:
    assert found(template(row[0], row[1])) == {}


@pytest.mark.parametrize(("kind", "tags"), [("spot", "Nodes.Tags"), ("fleet", f"{CONFIG}.TagSpecifications.0.Tags")])
def test_what_the_library_did_not_make_is_left_alone(template: MakeTemplate, kind: str, tags: str) -> None:
    wrong = {f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}
    assert len(found(template(kind, wrong))) == 1
    assert found(template(kind, {**wrong, tags: [{"Key": "somebody-elses", "Value": "workers"}]})) == {}


def test_a_fleet_may_carry_its_tags_at_the_top(template: MakeTemplate) -> None:
    tags = [{"Key": NODE_GROUP_TAG, "Value": "workers"}]
    changes = {"Fleet.Tags": tags, f"{CONFIG}.TagSpecifications": ABSENT, f"{CONFIG}.Type": "request"}
    assert found(template("fleet", changes)) == {"fleetType": [f"{CONFIG}.Type"]}


@pytest.mark.parametrize("taken", RULES, ids=lambda rule: rule.id)
def test_without_any_one_rule_something_wrong_is_not_found(template: MakeTemplate, taken: TemplateRule) -> None:
    others = [rule for rule in RULES if rule is not taken]
    missed = [row for row in WRONG if found(template(row[1], row[2]), others) != expected(row)]
    assert {row[0] for row in missed} == {taken.id}
