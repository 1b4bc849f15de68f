import pytest
from hypothesis import given
from hypothesis import strategies as st

from aws_texts import is_taken
from cluster_common.tags import tag_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("weekend", "weekend"),
        ("idle for 30 min (GPU < 5 %)\nbye", "idle for 30 min GPU 5 bye"),
        ("a_b+c-d=e.f:g/h@i", "a_b+c-d=e.f:g/h@i"),
        ("Grüße", "Grüße"),
        ("aws:thing", "aws thing"),
        ("AWS:thing", "aws thing"),
        ("aws:", "aws"),
        ("x" * 256, "x" * 256),
        ("x" * 257, "x" * 253 + "..."),
        ("", ""),
    ],
)
def test_any_text_becomes_one_that_a_tag_can_hold(text: str, value: str) -> None:
    assert tag_value(text) == value


@given(st.text(max_size=400))
def test_a_tag_value_is_short_tidy_and_stays_as_it_is(text: str) -> None:
    value = tag_value(text)

    assert len(value) <= 256
    assert value == value.strip()
    assert not value.lower().startswith("aws:")
    assert tag_value(value) == value
    assert is_taken("fsxTagValue", value)
    assert is_taken("autoScalingTagValue", value)
