"""Fleets, series, owners and policies as they may be, for properties of the idle function."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from cluster_common.keep_tags import KeepTags
from cluster_common.owners.groups import OwnedNode
from cluster_common.owners.kinds import AUTO_SCALING_GROUP, SPOT_FLEET
from cluster_contract.idle import PERIOD, IdleScope, Policy
from cluster_contract.owners import OwnerSettings
from cluster_idle.context import IdleContext, OwnerState
from cluster_idle.evidence import NodeReadings, Series, weigh
from cluster_idle.instances import Instance, Owner
from cluster_idle.sent_warnings import Refusal, SentWarning
from idle_function_settings import Group, idle_settings

NOW = datetime(2026, 11, 2, 12, 3, 20, tzinfo=UTC)
TICK = timedelta(minutes=5)

_STATUSES = st.sampled_from(["Complete"] * 8 + ["PartialData", "InternalError", "Forbidden"])
_AGES = st.sampled_from([0, 10, 40, 95, 200, 1440, -5]).map(lambda minutes: timedelta(minutes=minutes))


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A cluster as it may be.

    Attributes:
        instances: Its instances.
        series: What each has reported of its utilization since it was last started.
        context: What is decided from.
    """

    instances: tuple[Instance, ...]
    series: dict[str, Series]
    context: IdleContext


def policies() -> st.SearchStrategy[Policy]:
    """Return policies as a construct may write them."""
    return st.builds(
        Policy,
        below=st.sampled_from([1.0, 5.0, 20.0]),
        window=st.sampled_from([15, 30, 60]).map(lambda minutes: timedelta(minutes=minutes)),
        coverage=st.sampled_from([0.5, 0.75, 0.9, 1.0]),
        grace=st.sampled_from([0, 30]).map(lambda minutes: timedelta(minutes=minutes)),
        warning=st.sampled_from([10, 30]).map(lambda minutes: timedelta(minutes=minutes)),
        scope=st.sampled_from(IdleScope),
        dry_run=st.booleans(),
        off=st.sampled_from([False] * 9 + [True]),
    )


@st.composite
def series(draw: st.DrawFn) -> Series:
    """Return what a node may have reported: idle or busy, with gaps, late, ahead of the clock, or nothing."""
    value = draw(st.sampled_from([0.0, 0.5, 0.5, 50.0]))
    periods = draw(st.sets(st.integers(-2, 30), max_size=34) | st.just(set(range(31))) | st.just(set(range(1, 31))))
    late = draw(st.sampled_from([-2, -2, -2, 0, 1, 2, 3, 5]))
    other = draw(
        st.dictionaries(st.integers(-1, 30), st.sampled_from([0.0, 4.9, 5.0, 99.0, float("nan")]), max_size=2)
    )
    start = _floor(NOW)
    points = [
        (start - number * PERIOD, other.get(number, value))
        for number in sorted(periods | set(other))
        if number >= late
    ]
    return Series(points=tuple(points), status=draw(_STATUSES))


def keep_tags() -> st.SearchStrategy[KeepTags]:
    """Return what tags may say about keeping: nothing, most of the time."""
    return st.builds(
        KeepTags,
        keep=st.sampled_from([None] * 12 + ["true", "false"]),
        keep_until=st.sampled_from([None] * 12 + ["2026-11-02T18:00Z", "2026-11-01", "soon"]),
    )


@st.composite
def warnings(draw: st.DrawFn, unit: str, owners: tuple[str, ...]) -> SentWarning:
    """Return the warning of a unit as it may be, sent or not, counting or not."""
    sent = NOW - timedelta(minutes=draw(st.integers(-10, 120)))
    return SentWarning(
        idle_since=sent - timedelta(hours=1),
        stop_at=sent + timedelta(minutes=30),
        nodes=draw(st.sampled_from([2, 9])),
        owners=owners,
        dry_run=draw(st.sampled_from([False] * 5 + [True])),
        idle_until=draw(st.sampled_from([sent] * 5 + [None])),
        reported=draw(st.booleans()),
        refusals={unit: Refusal(at=NOW, code="no")} if draw(st.sampled_from([False] * 5 + [True])) else {},
    )


@st.composite
def clusters(draw: st.DrawFn) -> Drawn:
    """Return a cluster: standalone nodes, gangs, Spot Fleets and what belongs to others."""
    policy = draw(policies())
    groups = {
        "workers": Group(policy=policy, release=draw(st.booleans())),
        "lab": Group(policy=draw(policies())),
        "extras": Group(policy=policy, owner=OwnerSettings.spot_fleet("sfr-extras")),
    }
    owners: dict[Owner, OwnerState] = {}
    kinds = draw(st.lists(st.sampled_from(["alone", "workers", "workers", "lab", "extras", "foreign"]), max_size=9))
    instances = tuple(draw(_instance(f"i-{number:08x}", kind)) for number, kind in enumerate(kinds))
    states = st.sampled_from(["InService"] * 9 + ["Standby"])
    for owner in sorted({one.owner for one in instances if one.owner.traits}):
        if draw(st.sampled_from([True] * 9 + [False])):
            members = frozenset(one.id for one in instances if one.owner == owner)
            unseen = draw(st.sampled_from([frozenset[str]()] * 9 + [frozenset({"i-unseen"})]))
            owners[owner] = OwnerState(
                name=owner.id,
                node_group=next(one.node_group for one in instances if one.owner == owner),
                desired=draw(st.sampled_from([4] * 9 + [0])),
                minimum=0,
                maximum=8,
                in_service=len(members),
                nodes={one: OwnedNode(state=draw(states)) for one in sorted(members | unseen)},
                keep_tags=draw(keep_tags()),
            )
    settings = idle_settings(
        policy=policy,
        groups=groups,
        power_function=draw(st.sampled_from(["power"] * 9 + [""])),
        max_stops=draw(st.integers(1, 5)),
        max_unknown_share=draw(st.sampled_from([0.2, 0.5, 1.0])),
    )
    reported = {one.id: draw(series()) for one in instances}
    evidence = {
        one.id: weigh(
            NodeReadings(utilization=reported[one.id]), settings.policy_of(one.node_group), NOW, TICK, one.launched
        )
        for one in instances
        if one.running and not settings.policy_of(one.node_group).off
    }
    context = IdleContext(
        settings=settings,
        now=NOW,
        evidence=evidence,
        owners=owners,
        spot_requests=draw(st.sampled_from([{}, {"sir-1": ""}, {"sir-1": "it is one-time"}])),
    )
    units = sorted({context.unit(one) for one in instances})
    every = tuple({one.owner.key for one in instances})
    sent = {unit: draw(warnings(unit, every)) for unit in units if draw(st.booleans())}
    context = replace(context, warnings=sent)
    # What a node did before it was started again says nothing of what it does now.
    since = {
        one.id: replace(
            reported[one.id], points=[point for point in reported[one.id].points if point[0] >= one.launched]
        )
        for one in instances
    }
    return Drawn(instances=instances, series=since, context=context)


@st.composite
def _instance(draw: st.DrawFn, id: str, kind: str) -> Instance:
    owner, node_group = {
        "alone": (Owner.itself(id), draw(st.sampled_from(["", "", "workers", "dev"]))),
        "workers": (Owner.of(AUTO_SCALING_GROUP, "workers-asg"), "workers"),
        "lab": (Owner.of(AUTO_SCALING_GROUP, "lab-asg"), "lab"),
        "extras": (Owner.of(SPOT_FLEET, "sfr-extras"), "extras"),
        "foreign": (Owner.foreign("another service"), draw(st.sampled_from(["", "workers"]))),
    }[kind]
    return Instance(
        id=id,
        instance_type="p5.48xlarge",
        launched=NOW - draw(_AGES),
        owner=owner,
        node_group=node_group,
        running=draw(st.sampled_from([True] * 9 + [False])),
        reserved=draw(st.sampled_from([None] * 4 + ["the capacity reservation cr-1"])),
        spot_request=draw(st.sampled_from([None] * 4 + ["sir-1"])),
        ebs_root=draw(st.sampled_from([True] * 9 + [False])),
        keep_tags=draw(keep_tags()),
    )


def _floor(moment: datetime) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() // 300 * 300, tz=UTC)
