import pytest

from cluster_common.messages import subject


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
