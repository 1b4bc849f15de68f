"""What every guardrail takes from its cluster, and what it says of arguments that are wrong."""

from collections.abc import Mapping
from typing import Any

import pytest

from cdk_training_cluster import BillingAlarms, CheckpointWatch
from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster.guardrails import GUARDRAILS
from cdk_training_cluster.validation.rule import SettingsError
from public_calls import RIGHT
from synthesis import new_stack

# Each argument that a cluster gives to its guardrails, and what the one that takes 5 for it says.
_SAYS: Mapping[str, str] = {
    "cluster_name": "cluster_name must be text of at most 128 characters, such as 'llama', got 5",
    "alert_topic": "alert_topic must be an ITopic, such as sns.Topic.from_topic_arn(…), got 5",
    "state": "state must be a ClusterState, got 5",
    "powertools_layer": "powertools_layer must be an ILayerVersion, such as "
    "lambda_.LayerVersion.from_layer_version_arn(…), got 5",
    "encryption_key": "encryption_key must be an IKey, such as kms.Key.from_key_arn(…), got 5",
}
_TAKEN_BY_OTHERS = {(BillingAlarms, "cluster_name"), (BillingAlarms, "state"), (CheckpointWatch, "state")}
_TAKEN = [(kind, name) for kind in GUARDRAILS for name in _SAYS if (kind, name) not in _TAKEN_BY_OTHERS]


def given(kind: type[Guardrail], **more: object) -> dict[str, Any]:
    stack = new_stack()
    return {"scope": stack, "id": "It", **RIGHT[kind.__name__](stack), **more}


@pytest.mark.parametrize(("kind", "name"), _TAKEN, ids=[f"{kind.__name__}-{name}" for kind, name in _TAKEN])
def test_a_wrong_value_of_what_all_guardrails_take_is_refused_in_the_same_sentence(
    kind: type[Guardrail], name: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        kind(**given(kind, **{name: 5}))
    assert str(refused.value) == _SAYS[name]
    assert [problem.setting for problem in refused.value.problems] == [(name,)]


@pytest.mark.parametrize("kind", GUARDRAILS)
def test_wrong_values_of_shared_and_own_arguments_are_reported_together(kind: type[Guardrail]) -> None:
    wrong = {name: 5 for name in given(kind) if name not in ("scope", "id", "cluster_name", "name")}
    with pytest.raises(SettingsError) as refused:
        kind(**given(kind, **wrong))
    assert {problem.setting[0] for problem in refused.value.problems} == set(wrong)


@pytest.mark.parametrize("kind", GUARDRAILS)
def test_an_unknown_argument_is_refused_with_the_name_that_is_meant(kind: type[Guardrail]) -> None:
    with pytest.raises(TypeError) as error:
        kind(**given(kind, encryption_keys=None))
    said = f"{kind.__name__}() has no argument 'encryption_keys'; did you mean encryption_key?"
    assert str(error.value) == said


@pytest.mark.parametrize("kind", GUARDRAILS)
def test_an_argument_that_nothing_resembles_is_refused_with_all_that_are_known(kind: type[Guardrail]) -> None:
    with pytest.raises(TypeError) as error:
        kind(**given(kind, q=1))
    before, _, known = str(error.value).partition("known here: ")
    assert before == f"{kind.__name__}() has no argument 'q'; "
    shared = {name for each, name in _TAKEN if each is kind}
    assert {"scope", "id", *given(kind), *shared} <= set(known.split(", "))


@pytest.mark.parametrize(("kind", "name"), sorted(_TAKEN_BY_OTHERS, key=str))
def test_an_argument_that_a_guardrail_does_not_take_is_refused(kind: type[Guardrail], name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) has no argument '{name}'; "):
        kind(**given(kind, **{name: None}))


@pytest.mark.parametrize("kind", GUARDRAILS)
def test_a_guardrail_needs_its_alert_topic(kind: type[Guardrail]) -> None:
    arguments = given(kind)
    del arguments["alert_topic"]
    with pytest.raises(TypeError) as error:
        kind(**arguments)
    assert str(error.value) == f"{kind.__name__}(): missing a required argument: 'alert_topic'"
