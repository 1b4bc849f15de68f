"""The messages: what is stopped, when, why, what that means, and how to keep it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from cluster_common.messages import subject
from cluster_common.operator_commands import tag_command
from cluster_common.times import format_minutes, time_text
from cluster_contract.idle import IdleFunctionSettings
from cluster_contract.prices import on_demand_price
from cluster_contract.tags import KEEP_TAG, KEEP_UNTIL_TAG
from cluster_contract.texts import printable
from cluster_idle.instances import Instance
from cluster_idle.reminders import Reminder
from cluster_idle.stop_effects import (
    StopEffect,
    keep_command,
    keep_targets,
    stop_effects,
    verbs,
)
from cluster_idle.verdicts import Unit

# SNS takes 256 KiB, more than a reader takes.
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_MAX_LINES = 100
_MAX_IDS = 20

_DRY_RUN = "[dry run] "

# Where the stop is nearer than that, only the tag comes in time.
_WORK_KEEPS = (
    "Work on it also prevents the stop, but CPU and network metrics arrive up to 15 minutes late: set the tag if the "
    "stop is nearer."
)


def warning_message(settings: IdleFunctionSettings, units: Sequence[Unit], now: datetime) -> tuple[str, str]:
    """Return the subject and the text of the message that idle nodes are going to be stopped."""
    real = [unit for unit in units if not unit.dry_run] or units
    left = min(unit.stop_at for unit in real) - now
    title = _head(settings, real, f"{_count(real)} idle, {verbs(settings, real)} in {format_minutes(left)}")
    lines = [f"Cluster {settings.cluster}", *_dry_run_lines(units), ""]
    for unit in units[:_MAX_LINES]:
        lines += [*_warning_lines(settings, unit), ""]
    return title, _text(lines, len(units))


def stopped_message(
    settings: IdleFunctionSettings, units: Sequence[Unit], stopped: frozenset[str], deferred: int = 0
) -> tuple[str, str]:
    """Return the subject and the text of the message that idle nodes were stopped, or would have been.

    Args:
        settings: The function's settings.
        units: What was due.
        stopped: The ids of the instances that were stopped; none in a dry run.
        deferred: How many nodes are due as well, and wait for a later run.
    """
    verb = verbs(settings, units, stopped or None)
    done = f"would be {verb} now" if units[0].dry_run else verb
    saved = savings(settings, [one for unit in units for one in unit.instances if one.id in stopped])
    title = _head(settings, units, f"{_count(units, stopped or None)} {done}: idle")
    lines = [f"Cluster {settings.cluster}", *_dry_run_lines(units), ""]
    for unit in units[:_MAX_LINES]:
        lines += stopped_lines(settings, unit, stopped or None)
    if saved:
        lines += ["", f"That saves ${saved:,.2f} an hour, at the On-Demand price."]
    if deferred:
        limit = f"one run stops at most {settings.max_stops}, the longest idle first"
        lines += ["", f"{deferred} more are due and wait for a later run: {limit}."]
    return title, _text(lines, len(units))


def stopped_lines(settings: IdleFunctionSettings, unit: Unit, only: frozenset[str] | None = None) -> list[str]:
    """Return the lines of a message on nodes that were stopped: why, what that means, and how to start them again.

    Args:
        settings: The function's settings.
        unit: The nodes.
        only: The ids of those that were stopped. Default: - all.
    """
    lines = [f"{_name(unit, only)}: utilization {unit.idle_description}, idle since {time_text(unit.idle_since)}."]
    if not unit.dry_run:
        for effect in stop_effects(settings, unit, only):
            lines += [f"  {_of(effect, unit)}{effect.meaning}", f"  To start it again: {effect.way_back}"]
    return lines


def earlier_message(settings: IdleFunctionSettings, texts: Sequence[str]) -> tuple[str, str]:
    """Return subject and text of the message on what an earlier run stopped and did not record as reported."""
    head = [
        f"Cluster {settings.cluster}",
        "",
        "An earlier run stopped these nodes, and could not send this message or record that it was sent:",
        "",
    ]
    return subject(f"{settings.cluster}: stopped by an earlier run: idle"), _text(
        [*head, *texts[:_MAX_LINES]], len(texts)
    )


def reminder_message(settings: IdleFunctionSettings, reminders: Sequence[Reminder], now: datetime) -> tuple[str, str]:
    """Return the subject and the text of the message on tags that keep nodes without a clear end."""
    lines = [f"Cluster {settings.cluster}", ""]
    for reminder in reminders[:_MAX_LINES]:
        lines.append(f"{printable(f'{reminder.name} {reminder.description}', 600)}.")
        lines.append(f"  {_clear_end(settings, reminder, now)}")
    lines += ["", "This reminder is sent every day."]
    tags = "1 tag keeps" if len(reminders) == 1 else f"{len(reminders)} tags keep"
    return subject(f"{settings.cluster}: {tags} nodes without a clear end"), _text(lines, len(reminders))


def _clear_end(settings: IdleFunctionSettings, reminder: Reminder, now: datetime) -> str:
    if not reminder.by_keep:
        return f"To set a clear end: {keep_targets(settings, [reminder.owner], now)}"
    target = reminder.owner.traits, reminder.owner.id
    return f"If it need not be kept: {tag_command([target], KEEP_TAG, 'false', settings.region)}"


def note(settings: IdleFunctionSettings, unit: Unit) -> str:
    """Return what the tag on idle nodes, or on what owns them, says."""
    dry, would = ("dry run - ", "would be ") if unit.dry_run else ("", "")
    return (
        f"{dry}idle since {time_text(unit.idle_since)} - {would}{verbs(settings, [unit])} at "
        f"{time_text(unit.stop_at)} unless it works - to keep it add the tag {KEEP_UNTIL_TAG} = a time"
    )


def dollars(settings: IdleFunctionSettings, instances: Sequence[Instance]) -> float:
    """Return what an hour of some instances costs at the On-Demand price, as far as it is known.

    Spot Instances cost less, and their price moves: they do not count.
    """
    known = (
        settings.prices.get(one.instance_type, on_demand_price(one.instance_type, settings.region))
        for one in instances
        if one.spot_request is None
    )
    return sum(each for each in known if each is not None)


def savings(settings: IdleFunctionSettings, instances: Iterable[Instance]) -> float:
    """Return what an hour without some instances saves: nothing where they are billed all the same."""
    releasing = {name for name, group in settings.groups.items() if group.release}
    return dollars(settings, [one for one in instances if not one.reserved or one.node_group in releasing])


def _warning_lines(settings: IdleFunctionSettings, unit: Unit) -> Iterator[str]:
    cost = dollars(settings, unit.instances)
    yield (
        f"{_name(unit)}: utilization {unit.idle_description}, idle since {time_text(unit.idle_since)}"
        + (f"; ${cost:,.2f} an hour." if cost else ".")
    )
    will = "would be" if unit.dry_run else "will be"
    for effect in stop_effects(settings, unit):
        who = _of(effect, unit)
        when = f"{will if who else will.capitalize()} {effect.verb} at {time_text(unit.stop_at)}"
        yield f"  {who}{when}. {effect.meaning}"
    yield f"  To keep it: {keep_command(settings, unit)}"
    yield f"  {_WORK_KEEPS}"
    yield f"  The tag {KEEP_TAG} = true keeps it without an end."


def _of(effect: StopEffect, unit: Unit) -> str:
    """Name the nodes of an effect, where the others of the unit have another."""
    if len(effect.instances) == len(unit.instances):
        return ""
    ids = [one.id for one in effect.instances]
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    return f"{', '.join(ids[:_MAX_IDS])}{more}: "


def _name(unit: Unit, only: frozenset[str] | None = None) -> str:
    first = unit.instances[0]
    ids = [one for one in unit.ids if only is None or one in only]
    if unit.name == first.id:
        return f"{first.id} ({first.instance_type}{f' of {printable(first.node_group)}' if first.node_group else ''})"
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    types = ", ".join(dict.fromkeys(one.instance_type for one in unit.instances))
    return f"{printable(unit.name)} ({len(ids)} {types}: {', '.join(ids[:_MAX_IDS])}{more})"


def _count(units: Sequence[Unit], only: frozenset[str] | None = None) -> str:
    count = sum(1 for unit in units for one in unit.ids if only is None or one in only)
    return "1 node" if count == 1 else f"{count} nodes"


def _head(settings: IdleFunctionSettings, units: Sequence[Unit], text: str) -> str:
    dry = _DRY_RUN if all(unit.dry_run for unit in units) else ""
    return subject(f"{dry}{settings.cluster}: {text}")


def _dry_run_lines(units: Sequence[Unit]) -> list[str]:
    dry = [printable(unit.name) for unit in units if unit.dry_run]
    if not dry:
        return []
    who = "" if len(dry) == len(units) else f" of {', '.join(dry[:_MAX_IDS])}"
    return ["", f"This is a dry run{who}: nothing is stopped."]


def _text(lines: Sequence[str], count: int) -> str:
    more = (
        f"\n\nAnd {count - _MAX_LINES} more: the idle function's log lists all of them." if count > _MAX_LINES else ""
    )
    return "\n".join(lines).rstrip() + more
