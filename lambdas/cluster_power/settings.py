"""What the deploy tells the function: the cluster, its node groups and where to send messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeGuard

from cluster_common.environment import read_settings
from cluster_common.errors import InvalidSettingsError

SETTINGS_VARIABLE = "CLUSTER_POWER_SETTINGS"
TOPIC_VARIABLE = "ALERT_TOPIC_ARN"
STOPS_VARIABLE = "STOPPED_PARAMETER"

_IDS = ("block", "released", "reservation", "spot_fleet")
_GROUP_KEYS = (*_IDS, "block_ends_early_minutes", "blocks", "count", "listed", "warm_pool")
_CLOSING_NOTICE_SECONDS = 1800
_BLOCK_ENDS_EARLY_MINUTES = 30


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """What the cluster's file says of one node group.

    Attributes:
        count: How many nodes it has.
        block: The id of the Capacity Block that its nodes run in. Default: - none.
        block_ends_early: How long before the block's end EC2 begins to terminate its nodes.
        listed: The ids of the reservations that some of its nodes may run in, whose ends are told and drive nothing.
        blocks: The ids of Capacity Blocks that others of its nodes may run in.
        spot_fleet: The id of the Spot Fleet request that owns its nodes. Default: - an Auto Scaling group owns
            them, and is found by its tags.
        reservation: The id of the capacity reservation that its nodes run in. Default: - none.
        release: Whether that reservation is lowered while the group is stopped.
        warm_pool: Whether it has a warm pool, whose nodes are renewed after a deployment when the group grows.
    """

    count: int
    block: str | None = None
    block_ends_early: timedelta = timedelta(0)
    listed: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    spot_fleet: str | None = None
    reservation: str | None = None
    release: bool = False
    warm_pool: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The function's settings, read from its environment.

    Attributes:
        cluster: The cluster's name, the value of the tag on everything that belongs to it.
        groups: What the cluster's file says of each node group, by name.
        launch_grace: How long nodes may take to launch before their absence is a problem.
        closing_notice: How long before its nodes go people are told that a Capacity Block ends.
        topic_arn: The SNS topic that is told when a problem begins and ends. Default: - only the log is told.
        stopped_parameter: The name of the parameter that says which node groups are stopped.
            Default: - only their tags do.
    """

    cluster: str
    groups: Mapping[str, GroupSettings]
    launch_grace: timedelta
    closing_notice: timedelta = timedelta(seconds=_CLOSING_NOTICE_SECONDS)
    topic_arn: str | None = None
    stopped_parameter: str | None = None

    @property
    def spot_fleets(self) -> dict[str, str]:
        """The ids of the Spot Fleet requests, by node group."""
        return {name: group.spot_fleet for name, group in self.groups.items() if group.spot_fleet}

    @property
    def auto_scaling_groups(self) -> tuple[str, ...]:
        """The node groups that Auto Scaling groups own."""
        return tuple(name for name, group in self.groups.items() if not group.spot_fleet)

    @property
    def reservations(self) -> dict[str, tuple[str, ...]]:
        """The ids of the Capacity Blocks and reservations, by node group, where there are any."""
        ids = {
            name: tuple(one for one in (group.block, *group.blocks, *group.listed, group.reservation) if one)
            for name, group in self.groups.items()
        }
        return {name: found for name, found in ids.items() if found}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read `CLUSTER_POWER_SETTINGS`, `ALERT_TOPIC_ARN` and `STOPPED_PARAMETER`.

        Raises:
            InvalidSettingsError: What is there is not what the construct writes.
        """
        raw = read_settings(environment, SETTINGS_VARIABLE)
        cluster, groups, grace = raw.get("cluster"), raw.get("groups"), raw.get("launch_grace_seconds")
        notice = raw.get("closing_notice_seconds", _CLOSING_NOTICE_SECONDS)
        if not isinstance(cluster, str) or not cluster:
            raise _invalid(f"cluster must be a name, got {cluster!r}")
        if not isinstance(groups, dict):
            raise _invalid(f"groups must give each node group's count, got {groups!r}")
        if not _is_count(grace):
            raise _invalid(f"launch_grace_seconds must be 0 or more, got {grace!r}")
        if not _is_count(notice):
            raise _invalid(f"closing_notice_seconds must be 0 or more, got {notice!r}")
        return cls(
            cluster=cluster,
            groups={name: _group(name, group) for name, group in sorted(groups.items())},
            launch_grace=timedelta(seconds=grace),
            closing_notice=timedelta(seconds=notice),
            topic_arn=environment.get(TOPIC_VARIABLE) or None,
            stopped_parameter=environment.get(STOPS_VARIABLE) or None,
        )


def _group(name: str, raw: object) -> GroupSettings:
    settings = raw if isinstance(raw, dict) else {"count": raw}
    count = settings.get("count")
    if not _is_count(count):
        raise _invalid(f"groups must give each node group's count, got {raw!r} for {name!r}")
    unknown = sorted(set(settings) - set(_GROUP_KEYS))
    if unknown:
        raise _invalid(f"a node group takes {', '.join(sorted(_GROUP_KEYS))}, got {', '.join(unknown)} for {name!r}")
    ids, blocks = {key: _id(settings, key, name) for key in _IDS}, _list(settings, "blocks", name)
    listed = _list(settings, "listed", name)
    if sum(bool(one) for one in (blocks or listed, *ids.values())) > 1:
        raise _invalid(f"{', '.join(_IDS)} and blocks exclude each other, got {raw!r} for {name!r}")
    return GroupSettings(
        count=count,
        block=ids["block"],
        blocks=blocks,
        listed=listed,
        block_ends_early=_ends_early(settings, name, has_block=bool(ids["block"])),
        spot_fleet=ids["spot_fleet"],
        reservation=ids["released"] or ids["reservation"],
        release=ids["released"] is not None,
        warm_pool=_warm_pool(settings, name),
    )


def _list(settings: Mapping[str, object], key: str, name: str) -> tuple[str, ...]:
    value = settings.get(key, [])
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    raise _invalid(f"{key} must be a list of ids, got {value!r} for {name!r}")


def _ends_early(settings: Mapping[str, object], name: str, *, has_block: bool) -> timedelta:
    value = settings.get("block_ends_early_minutes", _BLOCK_ENDS_EARLY_MINUTES if has_block else 0)
    if _is_count(value) and (has_block or "block_ends_early_minutes" not in settings):
        return timedelta(minutes=value)
    raise _invalid(f"block_ends_early_minutes is 0 or more and goes with a block, got {settings!r} for {name!r}")


def _warm_pool(settings: Mapping[str, object], name: str) -> bool:
    value = settings.get("warm_pool", False)
    if isinstance(value, bool):
        return value
    raise _invalid(f"warm_pool is true or false, got {settings!r} for {name!r}")


def _id(settings: Mapping[str, object], key: str, name: str) -> str | None:
    value = settings.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    raise _invalid(f"{key} must be an id, got {value!r} for {name!r}")


def _invalid(message: str) -> InvalidSettingsError:
    return InvalidSettingsError(f"{SETTINGS_VARIABLE}: {message}")


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
