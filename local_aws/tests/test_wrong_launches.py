"""Node groups that EC2 or Auto Scaling refuses fail to deploy for their reason and leave nothing."""

from collections.abc import Callable

import pytest

from local_aws_scene import Template
from template_changes import Change
from wrong_launches import WRONG_LAUNCHES


@pytest.mark.parametrize(
    ("change", "words"), [row[1:] for row in WRONG_LAUNCHES], ids=[row[0] for row in WRONG_LAUNCHES]
)
def test_a_wrong_node_group_fails_for_its_reason_and_leaves_nothing(
    refused: Callable[[Template], tuple[str, str]], nodes: Template, change: Change, words: str
) -> None:
    change(nodes)
    failed, reason = refused(nodes)
    assert failed == "Nodes"
    assert words in reason
