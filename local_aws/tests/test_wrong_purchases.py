"""Templates that buy nodes in a wrong way fail to deploy for their reason and leave nothing behind."""

from collections.abc import Callable, Iterator

import pytest

from capacity_templates import block, given, reserved, segments, spot
from given_capacity import BLOCK, GIVEN, IN_A_GROUP, given_capacity
from local_aws import LocalAws
from local_aws_scene import Stacks, Template
from spot_scene import spot_fleet
from wrong_purchases import WRONG_PURCHASES


@pytest.fixture(scope="module", autouse=True)
def capacity(aws: LocalAws) -> Iterator[None]:
    """What the templates find there."""
    with given_capacity(aws):
        yield


@pytest.mark.parametrize(
    "template",
    [reserved(), given(GIVEN), given(IN_A_GROUP), block(BLOCK), segments([GIVEN, BLOCK]), spot(), spot_fleet()],
    ids=["reserved", "given", "given in a group", "block", "segments", "spot", "fleet"],
)
def test_the_templates_that_the_table_changes_are_legal(stacks: Stacks, template: Template) -> None:
    name = stacks.create(template)
    assert stacks.reasons(name) == {}
    assert stacks.status(name) == "CREATE_COMPLETE"


@pytest.mark.parametrize("words", WRONG_PURCHASES)
def test_a_wrong_purchase_fails_for_its_reason_and_leaves_nothing(
    refused: Callable[[Template], str], words: str
) -> None:
    assert words in refused(WRONG_PURCHASES[words]())
