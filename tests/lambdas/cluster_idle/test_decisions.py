"""Decisions at their borders: the breaker at exactly its share, and a warning that stands on several owners."""

from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.owners.groups import AUTO_SCALING_GROUP
from cluster_common.times import time_text
from cluster_idle.clock import Clock, read_clock
from cluster_idle.context import IdleContext, OwnerState
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.idle_tags import IdleTags
from cluster_idle.instances import Instance, Owner
from idle_function_settings import Group, idle_settings

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
BUSY = Evidence(state=EvidenceState.BUSY, reason="works")
DARK = Evidence(state=EvidenceState.UNKNOWN, reason="its metrics are missing", was_known=True)
WARNED = (NOW - timedelta(minutes=30), NOW - timedelta(minutes=20))


def node(id: str, owner: Owner, node_group: str = "") -> Instance:
    launched = NOW - timedelta(days=1)
    return Instance(id=id, instance_type="g5.xlarge", launched=launched, owner=owner, node_group=node_group)


@pytest.mark.parametrize(("dark", "trips"), [(1, False), (2, False), (3, True)])
def test_the_breaker_trips_above_its_share_and_not_at_it(dark: int, trips: bool) -> None:
    nodes = [node(f"i-{number}", Owner.itself(f"i-{number}")) for number in range(4)]
    evidence = {one.id: DARK if number < dark else BUSY for number, one in enumerate(nodes)}
    context = IdleContext(settings=idle_settings(max_unknown_share=0.5), now=NOW, evidence=evidence)

    assert (decide(nodes, context).breaker is not None) is trips


def clock_of_two_owners(warned: tuple[datetime, datetime], idle_since: datetime) -> Clock:
    """Return the clock of two nodes of a group, each of an Auto Scaling group that carries a warning of its own."""
    owners = [Owner.of(AUTO_SCALING_GROUP, name) for name in ("a", "b")]
    nodes = [node(f"i-{owner.id}", owner, "workers") for owner in owners]
    idle = Evidence(state=EvidenceState.IDLE, reason="", idle_since=idle_since)
    context = IdleContext(
        settings=idle_settings(groups={"workers": Group()}),
        now=NOW,
        evidence={one.id: idle for one in nodes},
        owners={
            owner: OwnerState(
                name=owner.id,
                node_group="workers",
                desired=1,
                minimum=0,
                maximum=4,
                in_service=1,
                idle_tags=IdleTags(nodes=2, warned_at=at, stop_text=time_text(NOW), note="idle", noted=True),
            )
            for owner, at in zip(owners, warned, strict=True)
        },
    )
    return read_clock(nodes, nodes, context)


@pytest.mark.parametrize(
    ("idle_since", "is_warned"), [(WARNED[0], True), (WARNED[0] + timedelta(minutes=5), False), (WARNED[1], False)]
)
def test_nodes_of_two_owners_were_idle_since_the_earlier_of_two_warnings(
    idle_since: datetime, is_warned: bool
) -> None:
    assert clock_of_two_owners(WARNED, idle_since).warned is is_warned


@pytest.mark.parametrize(("minutes", "renews"), [(34, False), (35, True)])
def test_the_warnings_of_two_owners_are_renewed_once_the_earlier_is_too_old(minutes: int, renews: bool) -> None:
    earlier = NOW - timedelta(minutes=minutes)

    assert clock_of_two_owners((earlier, WARNED[1]), earlier).renew is renews
