"""Where moto is changed: only what it lacks or does otherwise than AWS, so that what it takes up goes from here."""

from typing import Any

import pytest

from local_aws.install import REPLACEMENTS

_MISSING = [(owner, replacement.__name__) for owner, replacement, why in REPLACEMENTS if why == "missing"]


@pytest.mark.parametrize(("owner", "name"), _MISSING, ids=[name for _, name in _MISSING])
def test_what_is_said_to_be_missing_in_moto_is_missing(owner: Any, name: str) -> None:
    assert not hasattr(owner, name)


def test_what_is_not_missing_is_there_to_be_replaced() -> None:
    others = [(owner, replacement.__name__) for owner, replacement, why in REPLACEMENTS if why != "missing"]
    assert [(owner.__name__, name) for owner, name in others if not hasattr(owner, name)] == []
