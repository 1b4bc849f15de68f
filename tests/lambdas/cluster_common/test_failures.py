import json

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.errors import PartialFailureError
from cluster_common.failures import Failures

THROTTLED = ClientError({"Error": {"Code": "RequestLimitExceeded", "Message": "slow down"}}, "Describe")


def test_failures_are_raised_together_when_all_was_tried() -> None:
    failures = Failures(Logger(service="test"))

    failures.add("workers", "could not be read", THROTTLED)
    failures.add_sentence("i-1", "is no node of workers")

    assert failures
    with pytest.raises(PartialFailureError) as raised:
        failures.raise_all()
    assert raised.value.failures == (
        "workers: could not be read (RequestLimitExceeded: slow down)",
        "i-1: is no node of workers",
    )


def test_where_nothing_failed_nothing_is_raised() -> None:
    failures = Failures(Logger(service="test"))

    failures.raise_all()

    assert not failures


def test_each_failure_is_logged_at_once_with_its_subject(capsys: pytest.CaptureFixture[str]) -> None:
    failures = Failures(Logger(service="failures"), subject_key="node_group")

    failures.add("workers", "could not be read", THROTTLED, instance_id="i-1")

    record = json.loads(capsys.readouterr().out)
    assert (record["level"], record["node_group"], record["instance_id"]) == ("ERROR", "workers", "i-1")
