"""Settings of the idle function, made by hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster_contract.idle import IdleFunctionSettings, IdleGroupSettings, Policy, PolicySettings
from cluster_contract.owners import OwnerSettings


@dataclass(frozen=True, kw_only=True)
class Group:
    """A node group with the policy itself. Default: - the cluster's."""

    policy: Policy | None = None
    owner: OwnerSettings | None = None
    release: bool = False


def idle_settings(
    *, cluster: str = "base-pod", policy: Policy | None = None, groups: Mapping[str, Group] | None = None, **more: Any
) -> IdleFunctionSettings:
    """Return settings in which each policy stands once.

    Args:
        cluster: The cluster's name.
        policy: The policy of instances of no node group. Default: - the usual one.
        groups: The node groups. Default: - none.
        **more: Other settings.
    """
    whole, given = policy or Policy(), groups or {}
    policies = list(dict.fromkeys([whole, *(group.policy or whole for group in given.values())]))
    signals = tuple(dict.fromkeys(signal for each in policies for signal in each.signals))
    return IdleFunctionSettings(
        cluster=cluster,
        signals=signals,
        policies=tuple(PolicySettings.of(each, signals) for each in policies),
        groups={
            name: IdleGroupSettings(
                policy=policies.index(group.policy or whole),
                owner=group.owner,
                release=group.release,
            )
            for name, group in given.items()
        },
        **more,
    )
