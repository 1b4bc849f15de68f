"""What the deploy tells the function: the cluster, its policy and its node groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from cluster_common.environment import read_settings
from cluster_common.errors import InvalidSettingsError
from cluster_common.tags import CLUSTER_TAG
from cluster_idle.policy import Policy, read_policy

SETTINGS_VARIABLE = "CLUSTER_IDLE_SETTINGS"
TOPIC_VARIABLE = "ALERT_TOPIC_ARN"
POWER_VARIABLE = "POWER_FUNCTION"

_KEYS = ("cluster", "gpus", "groups", "namespace", "policy", "prices", "tag", "tick")
_GROUP_KEYS = ("fleet", "policy", "release")
_NAMESPACE = "CdkTrainingCluster"


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """What the cluster's file says of one node group.

    Attributes:
        policy: Its policy.
        fleet: The id of the Spot Fleet request that owns its nodes. Default: - an Auto Scaling group owns them.
        release: Whether its reservation is lowered while it is stopped, so that stopping saves money.
    """

    policy: Policy
    fleet: str | None = None
    release: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The function's settings, read from its environment.

    Attributes:
        cluster: The cluster's name, the value of the tag on its instances.
        policy: The policy of every instance that no node group's policy is for.
        groups: The cluster's node groups, by name.
        tag: The key of the tag that says which instances are the cluster's.
        namespace: Where the nodes' metrics are.
        tick: How much time passes between two runs.
        prices: What an hour of an instance type costs, in USD, where the function's own list is not to be used.
        gpus: How many NVIDIA GPUs an instance type has, of those that the function does not know.
        region: The region that the function runs in.
        topic_arn: The SNS topic that is told. Default: - only tags and the log are.
        power_function: The name of the function that owns the sizes of node groups. Default: - there is none.
    """

    cluster: str
    policy: Policy = field(default_factory=Policy)
    groups: Mapping[str, GroupSettings] = field(default_factory=dict)
    tag: str = CLUSTER_TAG
    namespace: str = _NAMESPACE
    tick: timedelta = timedelta(minutes=5)
    prices: Mapping[str, float] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    region: str = ""
    topic_arn: str | None = None
    power_function: str | None = None

    def policy_of(self, node_group: str) -> Policy:
        """Return the policy for the nodes of a group, or for those of none."""
        own = self.groups.get(node_group)
        return own.policy if own else self.policy

    @property
    def fleets(self) -> tuple[str, ...]:
        """The ids of the Spot Fleet requests that own nodes."""
        return tuple(group.fleet for group in self.groups.values() if group.fleet)

    @property
    def has_auto_scaling_groups(self) -> bool:
        """Whether Auto Scaling groups own nodes."""
        return any(group.fleet is None for group in self.groups.values())

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read `CLUSTER_IDLE_SETTINGS`, `ALERT_TOPIC_ARN`, `POWER_FUNCTION` and `AWS_REGION`.

        Raises:
            InvalidSettingsError: What is there is not what the construct writes.
        """
        raw = read_settings(environment, SETTINGS_VARIABLE)
        unknown = sorted(set(raw) - set(_KEYS))
        if unknown:
            raise _invalid(f"it takes {', '.join(_KEYS)}, got {', '.join(unknown)}")
        groups, prices, gpus = (raw.get(key, {}) for key in ("groups", "prices", "gpus"))
        if not isinstance(groups, dict):
            raise _invalid(f"groups must be an object, got {groups!r}")
        if not isinstance(prices, dict) or not all(_is_positive(price) for price in prices.values()):
            raise _invalid(f"prices must be USD an hour by instance type, got {prices!r}")
        if not isinstance(gpus, dict) or not all(_is_positive(count) and count % 1 == 0 for count in gpus.values()):
            raise _invalid(f"gpus must be whole numbers by instance type, got {gpus!r}")
        tick = raw.get("tick", 300)
        if not _is_positive(tick):
            raise _invalid(f"tick must be a number of seconds, got {tick!r}")
        try:
            policy = read_policy(raw.get("policy", {}), Policy(), of="the cluster")
            own = {name: _group(name, group, policy) for name, group in sorted(groups.items())}
        except InvalidSettingsError as error:
            raise _invalid(str(error)) from None
        return cls(
            cluster=_text(raw, "cluster"),
            policy=policy,
            groups=own,
            tag=_text(raw, "tag", CLUSTER_TAG),
            namespace=_text(raw, "namespace", _NAMESPACE),
            tick=timedelta(seconds=float(str(tick))),
            prices=prices,
            gpus=gpus,
            region=environment.get("AWS_REGION", ""),
            topic_arn=environment.get(TOPIC_VARIABLE) or None,
            power_function=environment.get(POWER_VARIABLE) or None,
        )


def _group(name: str, raw: object, policy: Policy) -> GroupSettings:
    if not isinstance(raw, dict) or set(raw) - set(_GROUP_KEYS):
        raise InvalidSettingsError(f"a node group takes {', '.join(_GROUP_KEYS)}, got {raw!r} for {name!r}")
    fleet, release = raw.get("fleet"), raw.get("release", False)
    if fleet is not None and not (isinstance(fleet, str) and fleet):
        raise InvalidSettingsError(f"fleet must be an id, got {fleet!r} for {name!r}")
    if not isinstance(release, bool):
        raise InvalidSettingsError(f"release must be true or false, got {release!r} for {name!r}")
    return GroupSettings(policy=read_policy(raw.get("policy", {}), policy, of=name), fleet=fleet, release=release)


def _text(raw: Mapping[str, object], key: str, default: str = "") -> str:
    value = raw.get(key, default)
    if not isinstance(value, str) or not value:
        raise _invalid(f"{key} must be text, got {value!r}")
    return value


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _invalid(message: str) -> InvalidSettingsError:
    return InvalidSettingsError(f"{SETTINGS_VARIABLE}: {message}")
