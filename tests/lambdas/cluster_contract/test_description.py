"""What a deployed cluster says of itself: it is read back whole, also what a newer release wrote."""

import json

import pytest

from cluster_contract.description import ClusterDescription, FunctionDescription

_WRITTEN = ClusterDescription(
    functions={
        "power": FunctionDescription(invoke="arn:aws:lambda:us-east-1:1:function:power:operate", log_group="l")
    },
    alert_topic="arn:aws:sns:us-east-1:1:alerts",
    state_table="state",
    resume_document="resume",
    security_group="sg-1",
)


def test_it_is_read_back_with_what_a_newer_release_added() -> None:
    assert ClusterDescription.parse(json.dumps({**_WRITTEN.values(), "runs": ["new"]})) == _WRITTEN


def test_what_no_deployment_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="got no alert_topic"):
        ClusterDescription.parse("{}")
