"""The effect of a stop on idle nodes and their data, described for messages; what owns the nodes decides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cluster_common import operator_commands
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.instances import Instance, Owner
from cluster_idle.verdicts import Unit

_MAX_IDS = 20


@dataclass(frozen=True, kw_only=True)
class StopEffect:
    """The effect of a stop on those nodes of a unit that one owner has, or none.

    Attributes:
        instances: The nodes.
        verb: What is done with them.
        meaning: What that means for them and for what is on them, a sentence or more.
        way_back: The command that brings them back.
    """

    instances: tuple[Instance, ...]
    verb: str
    meaning: str
    way_back: str


def stop_effects(settings: IdleFunctionSettings, unit: Unit, only: frozenset[str] | None = None) -> list[StopEffect]:
    """Return the effects of a stop on a unit's nodes: one for each owner, and one for nodes without an owner.

    Args:
        settings: The function's settings.
        unit: The unit.
        only: The ids of the nodes that are stopped. Default: - all.
    """
    parts: dict[Owner | None, list[Instance]] = {}
    for instance in (one for one in unit.instances if only is None or one.id in only):
        owner = None if instance.owner.is_instance else instance.owner
        parts.setdefault(owner, []).append(instance)
    return [
        _of_instances(settings, instances) if owner is None else _of_owner(settings, unit, owner, instances)
        for owner, instances in parts.items()
    ]


def verbs(settings: IdleFunctionSettings, units: Sequence[Unit], only: frozenset[str] | None = None) -> str:
    """Return what is done with nodes: `stopped`, `terminated`, or both."""
    return " or ".join(sorted({effect.verb for unit in units for effect in stop_effects(settings, unit, only)}))


def keep_command(settings: IdleFunctionSettings, unit: Unit) -> str:
    """Return the command that keeps a unit for half a day longer; one kept node keeps all that go together."""
    return keep_targets(settings, unit.targets, unit.stop_at)


def keep_targets(settings: IdleFunctionSettings, targets: Sequence[Owner], begin: datetime) -> str:
    """Return the command that keeps what carries tags for half a day from a time on."""
    found = [(target.traits, target.id) for target in targets]
    return operator_commands.keep_command(found, begin, settings.region)


def start_instances(settings: IdleFunctionSettings, ids: Sequence[str]) -> str:
    """Return the command that starts instances."""
    return f"aws ec2 start-instances --region {settings.region} --instance-ids {' '.join(ids[:_MAX_IDS])}"


def start_group(settings: IdleFunctionSettings, node_group: str) -> str:
    """Return the command that starts a node group."""
    return operator_commands.group_command("start", settings.cluster, node_group, settings.region)


def _of_instances(settings: IdleFunctionSettings, instances: Sequence[Instance]) -> StopEffect:
    hibernates = all(one.hibernates for one in instances)
    memory = "The memory is kept on the root volume. " if hibernates else ""
    return StopEffect(
        instances=tuple(instances),
        verb="hibernated" if hibernates else "stopped",
        meaning=f"{memory}EBS volumes stay, and are billed; data on instance store is lost; the capacity goes back "
        "to "
        "EC2, so a later start may fail for want of capacity.",
        way_back=start_instances(settings, [one.id for one in instances]),
    )


def _of_owner(settings: IdleFunctionSettings, unit: Unit, owner: Owner, instances: Sequence[Instance]) -> StopEffect:
    description = owner.description[:1].upper() + owner.description[1:]
    if unit.name == instances[0].id:
        meaning = f"{description} gets smaller by one node; data on the node's disks is lost."
    else:
        meaning = f"{description} {owner.traits.emptied if owner.traits else ''}."
    return StopEffect(
        instances=tuple(instances),
        verb="terminated",
        meaning=meaning,
        way_back=start_group(settings, instances[0].node_group),
    )
