"""Decisions at their borders: the breaker at exactly its share, and a warning of nodes of several owners."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_idle.context import IdleContext
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.instances import Instance, Owner
from cluster_idle.sent_warnings import SentWarning
from cluster_idle.units import make_unit
from cluster_idle.verdicts import Unit
from idle_function_settings import Group, idle_settings

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
BUSY = Evidence(state=EvidenceState.BUSY, reason="works")
DARK = Evidence(state=EvidenceState.UNKNOWN, reason="its metrics are missing", was_known=True)
SENT = NOW - timedelta(minutes=30)


def node(id: str, owner: Owner, node_group: str = "") -> Instance:
    launched = NOW - timedelta(days=1)
    return Instance(id=id, instance_type="g5.xlarge", launched=launched, owner=owner, node_group=node_group)


@pytest.mark.parametrize(("dark", "trips"), [(1, False), (2, False), (3, True)])
def test_the_breaker_trips_above_its_share_and_not_at_it(dark: int, trips: bool) -> None:
    nodes = [node(f"i-{number}", Owner.itself(f"i-{number}")) for number in range(4)]
    evidence = {one.id: DARK if number < dark else BUSY for number, one in enumerate(nodes)}
    context = IdleContext(settings=idle_settings(max_unknown_share=0.5), now=NOW, evidence=evidence)

    assert (decide(nodes, context).breaker is not None) is trips


def unit_of_two_owners(idle_until: datetime, idle_since: datetime, owners: Sequence[str] = "ab") -> Unit:
    """Return two nodes of a group, each of an Auto Scaling group of its own, that were warned of."""
    every = [Owner.of(AUTO_SCALING_GROUP, name) for name in "ab"]
    nodes = [node(f"i-{owner.id}", owner, "workers") for owner in every]
    sent = SentWarning(
        idle_since=idle_since,
        stop_at=NOW,
        nodes=2,
        owners=tuple(one.key for one in every if one.id in owners),
        idle_until=idle_until,
    )
    context = IdleContext(
        settings=idle_settings(groups={"workers": Group()}),
        now=NOW,
        evidence={one.id: Evidence(state=EvidenceState.IDLE, reason="", idle_since=idle_since) for one in nodes},
        warnings={"workers": sent},
    )
    return make_unit("workers", nodes, nodes, context, waits=False)


@pytest.mark.parametrize(
    ("idle_since", "owners", "counts"),
    [(SENT, "ab", True), (SENT + timedelta(minutes=5), "ab", False), (SENT, "a", False)],
    ids=["idle since it was sent", "idle since later", "another owner came"],
)
def test_a_warning_counts_for_nodes_that_were_idle_when_it_was_sent_and_their_owners(
    idle_since: datetime, owners: str, counts: bool
) -> None:
    assert unit_of_two_owners(SENT, idle_since, owners).warned is counts


def test_the_decision_about_a_gang_compares_no_node_with_every_other(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner.of(AUTO_SCALING_GROUP, "asg")
    compared: list[object] = []

    def compare(one: object, other: object) -> bool:
        compared.append(one)
        return one is other

    nodes = [node(f"i-{number}", owner, "workers") for number in range(200)]
    idle = Evidence(state=EvidenceState.IDLE, reason="", idle_since=SENT)
    context = IdleContext(
        settings=idle_settings(groups={"workers": Group()}), now=NOW, evidence={one.id: idle for one in nodes}
    )
    monkeypatch.setattr(Instance, "__eq__", compare)

    decide(nodes, context)

    assert len(compared) <= len(nodes)


@pytest.mark.parametrize(("minutes", "renews"), [(34, False), (35, True)])
def test_a_warning_is_renewed_before_it_is_older_than_the_metrics_that_a_run_reads(
    minutes: int, renews: bool
) -> None:
    sent = NOW - timedelta(minutes=minutes)

    assert unit_of_two_owners(sent, sent).renew is renews
