from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.messages import publish, subject
from cluster_contract.events import EVENT_FIELD
from local_aws.texts import refusal_of
from power_scene import FakeSns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("base-pod: nodes of workers are missing", "base-pod: nodes of workers are missing"),
        ("a cluster in Köln", "a cluster in K?ln"),
        ("two\nlines", "two lines"),
        ("an\x1bescape", "an\\x1bescape"),
        ("x" * 99, "x" * 99),
        ("x" * 100, "x" * 99),
    ],
)
def test_a_subject_is_what_sns_takes(text: str, expected: str) -> None:
    assert subject(text) == expected


@given(st.text(max_size=200))
def test_any_text_behind_a_clusters_name_becomes_a_subject(text: str) -> None:
    assert refusal_of("sns", "Publish", {"Subject": subject(f"pod: {text}"), "Message": "x"}) is None


def test_a_message_that_the_topic_took_is_logged_as_an_event(caplog: pytest.LogCaptureFixture) -> None:
    sns: Any = FakeSns()
    publish(sns, "arn:topic", "nodes are idle", "text")
    (record,) = caplog.records
    assert (record.message, getattr(record, EVENT_FIELD)) == ("nodes are idle", "message")
    assert [each["Subject"] for each in sns.messages] == ["nodes are idle"]
