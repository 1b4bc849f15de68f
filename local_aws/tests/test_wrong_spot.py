"""Spot Fleets, Spot groups and warm pools that AWS refuses: each fails for its reason and leaves nothing."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from local_aws import LocalAws
from local_aws_scene import Stacks, Template
from spot_scene import spot_fleet
from warm_scene import warm_nodes
from wrong_spot import BLOCK, WRONG_SPOT, WrongSpot


@pytest.fixture(scope="module", autouse=True)
def block(aws: LocalAws) -> Iterator[None]:
    """A Capacity Block that has begun and does not end soon."""
    now = datetime.now(UTC)
    aws.put_capacity_block(
        BLOCK,
        start=now - timedelta(days=1),
        end=now + timedelta(days=7),
        instance_type="p4de.24xlarge",
        instance_count=4,
        availability_zone="us-east-1b",
    )
    yield
    aws.remove_capacity_block(BLOCK)


@pytest.mark.parametrize("base", [spot_fleet, warm_nodes])
def test_the_templates_that_the_table_changes_are_legal(stacks: Stacks, base: Callable[[], Template]) -> None:
    assert stacks.reasons(stacks.create(base())) == {}


@pytest.mark.parametrize("row", WRONG_SPOT, ids=[row.id for row in WRONG_SPOT])
def test_wrong_spot_fails_for_its_reason_and_leaves_nothing(
    refused: Callable[[Template], tuple[str, str]], row: WrongSpot
) -> None:
    failed, reason = refused(row.template())
    assert failed == row.logical_id
    assert row.words in reason
