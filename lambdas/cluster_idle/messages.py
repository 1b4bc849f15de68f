"""What people are told: what is stopped, when, why, what that means, and how to keep it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from cluster_common.messages import subject
from cluster_common.times import time_text
from cluster_idle.instances import Instance, Owner, OwnerKind
from cluster_idle.marks import DRY_RUN_NOTE, KEEP_TAG, KEEP_UNTIL_TAG, STOP_AT_TAG
from cluster_idle.policy import minutes
from cluster_idle.prices import price
from cluster_idle.settings import Settings
from cluster_idle.verdicts import Unit

# SNS takes 256 KiB; nobody reads as much.
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_MOST_LINES = 100
_MOST_IDS = 20

_DRY_RUN = "[dry run] "


def warning_message(settings: Settings, units: Sequence[Unit], now: datetime) -> tuple[str, str]:
    """Return the subject and the text of the message that idle nodes are going to be stopped."""
    left = min(unit.stop_at for unit in units) - now
    told = _head(settings, units, f"{_count(units)} idle, stopped in {minutes(left)}")
    lines = [f"Cluster {settings.cluster}", *_dry_run_lines(units), ""]
    for unit in units[:_MOST_LINES]:
        lines += [*_warning_lines(settings, unit), ""]
    return told, _text(lines, len(units))


def stopped_message(
    settings: Settings, units: Sequence[Unit], stopped: frozenset[str], deferred: int = 0
) -> tuple[str, str]:
    """Return the subject and the text of the message that idle nodes were stopped, or would have been.

    Args:
        settings: The function's settings.
        units: What was due.
        stopped: The ids of the instances that were stopped; none in a dry run.
        deferred: How many nodes are due as well, and wait for a later run.
    """
    done = "would be stopped now" if units[0].dry_run else "stopped"
    saved = savings(settings, [one for unit in units for one in unit.instances if one.id in stopped])
    told = _head(settings, units, f"{_count(units, stopped or None)} {done}: idle")
    lines = [f"Cluster {settings.cluster}", *_dry_run_lines(units), ""]
    for unit in units[:_MOST_LINES]:
        lines.append(
            f"{_name(unit, stopped or None)}: utilization {unit.idle_words}, idle since {time_text(unit.idle_since)}."
        )
        if not unit.dry_run:
            lines += [f"  {_meaning(unit)}", f"  {_way_back(settings, unit)}"]
    if saved:
        lines += ["", f"That saves ${saved:,.2f} an hour, at the On-Demand price."]
    if deferred:
        limit = f"a run stops {settings.policy.most_stops} at most, the longest idle first"
        lines += ["", f"{deferred} more are due and wait: {limit}."]
    return told, _text(lines, len(units))


def note(unit: Unit) -> str:
    """Return what the tag on idle nodes, or on what owns them, says."""
    dry, would = (DRY_RUN_NOTE, "would be ") if unit.dry_run else ("", "")
    return (
        f"{dry}idle since {time_text(unit.idle_since)} - {would}{_verb(unit.targets[0], unit)} at "
        f"{time_text(unit.stop_at)} unless it works - to keep it add the tag {KEEP_UNTIL_TAG} = a time"
    )


def dollars(settings: Settings, instances: Sequence[Instance]) -> float:
    """Return what an hour of some instances costs at the On-Demand price, as far as it is known.

    Spot Instances cost less, and their price moves: they do not count.
    """
    known = (
        price(one.instance_type, settings.region, settings.prices) for one in instances if one.spot_request is None
    )
    return sum(each for each in known if each is not None)


def savings(settings: Settings, instances: Iterable[Instance]) -> float:
    """Return what an hour without some instances saves: nothing where they are billed all the same."""
    releasing = {name for name, group in settings.groups.items() if group.release}
    return dollars(settings, [one for one in instances if not one.reserved or one.node_group in releasing])


def _warning_lines(settings: Settings, unit: Unit) -> Iterator[str]:
    cost = dollars(settings, unit.instances)
    yield (
        f"{_name(unit)}: utilization {unit.idle_words}, idle since {time_text(unit.idle_since)}"
        + (f"; ${cost:,.2f} an hour." if cost else ".")
    )
    would = "Would be" if unit.dry_run else "Is"
    yield f"  {would} {_verb(unit.targets[0], unit)} at {time_text(unit.stop_at)}. {_meaning(unit)}"
    yield f"  To keep it: let it work, or {_keep_command(unit)}"
    yield (
        f"  Any value of the tag {KEEP_TAG} keeps it without an end; to start the clock again, remove the tag "
        f"{STOP_AT_TAG}."
    )


def _keep_command(unit: Unit) -> str:
    until = time_text(unit.stop_at + timedelta(hours=12))
    groups = [target for target in unit.targets if target.kind is OwnerKind.AUTO_SCALING_GROUP]
    if groups:
        return (
            f'aws autoscaling create-or-update-tags --tags "ResourceId={groups[0].id},'
            f'ResourceType=auto-scaling-group,Key={KEEP_UNTIL_TAG},Value={until},PropagateAtLaunch=false"'
        )
    # One that is kept keeps all that are stopped together.
    ids = " ".join(target.id for target in unit.targets[:_MOST_IDS])
    return f"aws ec2 create-tags --resources {ids} --tags Key={KEEP_UNTIL_TAG},Value={until}"


def _verb(target: Owner, unit: Unit) -> str:
    first = unit.instances[0]
    if target.kind is OwnerKind.INSTANCE and first.owner.kind is OwnerKind.INSTANCE:
        return "hibernated" if first.hibernates else "stopped"
    return "terminated"


def _meaning(unit: Unit) -> str:
    """Say what becomes of the nodes, and of what is on them."""
    first = unit.instances[0]
    kind = first.owner.kind
    if kind is OwnerKind.INSTANCE:
        lost = "what is on its instance store is lost" + (", but for its memory" if first.hibernates else "")
        return f"Its EBS volumes stay, and are billed; {lost}; its capacity is given back, so a start may fail."
    if unit.name == first.id:
        return f"The node is terminated with what is on its disks, and {first.owner.words} gets smaller by one."
    how = "scaled to zero" if kind is OwnerKind.AUTO_SCALING_GROUP else "given the target zero"
    return (
        f"{_capital(first.owner.words)} is {how}: its nodes are terminated with what is on their disks; their "
        "capacity is given back, so a start may have to wait."
    )


def _way_back(settings: Settings, unit: Unit) -> str:
    if unit.instances[0].owner.kind is OwnerKind.INSTANCE:
        return f"To start it again: aws ec2 start-instances --instance-ids {' '.join(unit.ids[:_MOST_IDS])}"
    order = f'{{"action":"start","node_groups":["{unit.instances[0].node_group}"]}}'
    return (
        f"To start it again: aws lambda invoke --function-name {settings.power_function} "
        f"--cli-binary-format raw-in-base64-out --payload '{order}' /dev/stdout"
    )


def _name(unit: Unit, only: frozenset[str] | None = None) -> str:
    first = unit.instances[0]
    ids = [one for one in unit.ids if only is None or one in only]
    if unit.name == first.id:
        return f"{first.id} ({first.instance_type}{f' of {first.node_group}' if first.node_group else ''})"
    more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
    return f"{unit.name} ({len(ids)} {first.instance_type}: {', '.join(ids[:_MOST_IDS])}{more})"


def _count(units: Sequence[Unit], only: frozenset[str] | None = None) -> str:
    count = sum(1 for unit in units for one in unit.ids if only is None or one in only)
    return "1 node" if count == 1 else f"{count} nodes"


def _head(settings: Settings, units: Sequence[Unit], text: str) -> str:
    dry = _DRY_RUN if all(unit.dry_run for unit in units) else ""
    return subject(f"{dry}{settings.cluster}: {text}")


def _dry_run_lines(units: Sequence[Unit]) -> list[str]:
    dry = [unit.name for unit in units if unit.dry_run]
    if not dry:
        return []
    who = "" if len(dry) == len(units) else f" of {', '.join(dry[:_MOST_IDS])}"
    return ["", f"This is a dry run{who}: nothing is stopped."]


def _text(lines: Sequence[str], count: int) -> str:
    more = f"\n\nAnd {count - _MOST_LINES} more: the log has them all." if count > _MOST_LINES else ""
    return "\n".join(lines).rstrip() + more


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
