"""The messages of a budget that acts: what was spent, what happens to which node group, and the commands."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from cluster_common.messages import subject
from cluster_common.operator_commands import group_command, keep_command
from cluster_common.times import format_minutes, time_text
from cluster_contract.spend import OnExceed, SpendFunctionSettings, usd_text
from cluster_spend.acts import Acts, amounts
from cluster_spend.groups import NodeGroup
from cluster_spend.reports import Spend

_MAX_UNKNOWN = 20


def warning_message(
    settings: SpendFunctionSettings,
    spend: Spend,
    groups: Sequence[NodeGroup],
    *,
    due: Sequence[str],
    stop_at: datetime,
) -> tuple[str, str]:
    """Return the subject and the text of the message that node groups are going to be stopped.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        groups: Its node groups.
        due: The names of those that are going to be stopped.
        stop_at: When.
    """
    lines = [*_spent(settings, spend), ""]
    stopping = [group for group in groups if group.name in due]
    if not stopping:
        lines += ["The spend function stops no node group:", *_others(groups)]
        return _head(settings, "budget reached, nothing to stop"), "\n".join(lines)
    lines.append(f"At {time_text(stop_at)} the spend function stops these node groups:")
    for group in stopping:
        lines += [f"- {_effect(group)}", *_keep(settings, group, stop_at)]
    lines += [
        *_others(groups),
        "",
        "To prevent every stop, raise the budget's monthly_usd above what the cluster will have cost by then, and "
        "deploy before that time.",
    ]
    left = format_minutes(stop_at - spend.now)
    return _head(settings, f"budget reached, {_names(due)} will be stopped in {left}"), "\n".join(lines)


def done_message(
    settings: SpendFunctionSettings, spend: Spend, acts: Acts, names: Sequence[str], kept: Sequence[NodeGroup] = ()
) -> tuple[str, str]:
    """Return the subject and the text of the message that node groups were stopped, or get no new nodes.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        acts: What the budget did.
        names: The names of the node groups.
        kept: Node groups that were warned of, and that a tag keeps.
    """
    limits = acts.effect is OnExceed.NO_NEW_NODES
    what, start = "were stopped, and stay stopped until a start command", "To start it again"
    if limits:
        what, start = "get no new nodes until a start command", "To end the limit"
    lines = [*_spent(settings, spend), ""]
    if acts.month != spend.month.name:
        lines = [f"Cluster {settings.cluster} reached {usd_text(acts.usd)} in {acts.month} (UTC).", ""]
    lines.append(f"These node groups {what}:")
    for name in names:
        lines.append(f"- {name}. {start}:")
        lines.append(f"  {group_command('start', settings.cluster, name, settings.region)}")
    lines += [_kept(group) for group in kept]
    following = min((each for each in amounts(settings) if each > spend.month.usd), default=None)
    verb = "limit" if limits else "stop"
    until = "this month" if following is None else f"before the cluster has cost {usd_text(following)} this month"
    lines += ["", f"After a start command the spend function does not {verb} that node group again {until}."]
    did = "get no new nodes" if limits else "stopped"
    return _head(settings, f"budget reached, {_names(names)} {did}"), "\n".join(lines)


def cancelled_message(
    settings: SpendFunctionSettings, spend: Spend, acts: Acts, names: Sequence[str]
) -> tuple[str, str]:
    """Return the subject and the text of the message that node groups are not stopped after all.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        acts: The warning.
        names: The names of the node groups.
    """
    why = "The budget was changed since the warning"
    if acts.month != spend.month.name:
        why = f"{acts.month} has ended since the warning"
    lines = [*_spent(settings, spend), "", f"{why}: the spend function will not stop {_names(names)}."]
    return _head(settings, f"{_names(names)} will not be stopped"), "\n".join(lines)


def reason(settings: SpendFunctionSettings, spend: Spend) -> str:
    """Return why the power function is to stop or limit node groups."""
    return f"{usd_text(spend.month.usd)} spent in {spend.month.name}, the budget is {usd_text(settings.monthly_usd)}"


def _spent(settings: SpendFunctionSettings, spend: Spend) -> Iterator[str]:
    share = spend.month.usd / Decimal(str(settings.monthly_usd)) * 100
    yield (
        f"Cluster {settings.cluster} has cost {usd_text(spend.month.usd)} in {spend.month.name} (UTC), {share:.0f} % "
        f"of its budget of {usd_text(settings.monthly_usd)}, and cost {usd_text(spend.usd_per_hour)} an hour at "
        f"{time_text(spend.now)}."
    )
    if spend.unknown:
        names = ", ".join(spend.unknown[:_MAX_UNKNOWN])
        yield f"Not counted, because their prices are not known: {names}. State them in the budget's prices."


def _effect(group: NodeGroup) -> str:
    if group.waits:
        return f"{group.name} is stopped already: from then on no window of its schedule starts it."
    parts = [f"{group.name}: {group.nodes} nodes, {usd_text(group.usd_per_hour)} an hour."]
    for owner in group.owners:
        parts.append(f"The {owner.owner.noun} {owner.name} {owner.owner.emptied}.")
    return " ".join(parts)


def _keep(settings: SpendFunctionSettings, group: NodeGroup, stop_at: datetime) -> Iterator[str]:
    if group.owners and not group.waits:
        targets = [(owner.owner, owner.name) for owner in group.owners]
        yield "  To keep it for 12 hours more:"
        yield f"  {keep_command(targets, stop_at, settings.region)}"


def _others(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for group in groups:
        if group.reserved:
            yield (
                f"- {group.name} is not stopped: its nodes use {group.reserved}, which is billed whether or not they "
                "run."
            )
        elif group.is_stopped:
            yield f"- {group.name} is stopped already."
        elif group.kept:
            yield _kept(group)


def _kept(group: NodeGroup) -> str:
    return f"- {group.name} is not stopped: {group.kept}. When the tag ends, the spend function warns of its stop."


def _names(names: Sequence[str]) -> str:
    return " and ".join(names)


def _head(settings: SpendFunctionSettings, text: str) -> str:
    return subject(f"{settings.cluster}: {text}")
