"""What the function can be asked: the scheduler's run, and what operators want."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from cluster_common.errors import InvalidEventError
from cluster_common.messages import one_line
from cluster_common.owners.kinds import OWNER_KINDS
from cluster_contract.aliases import Alias
from cluster_contract.power import PowerFunctionSettings
from cluster_power.callers import Action, Caller

_EXPECTED = ("expected_size", "expected_instance_ids")
_EXECUTION = "automation_execution_id"
_KEYS = ("action", _EXECUTION, *sorted(_EXPECTED), "instance_ids", "node_groups", "all_or_nothing", "reason")

# Each is a call of its own, and all of them have to fit into the time that the function has.
_MAX_INSTANCES = 100
# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetAutomationExecution.html
_EXECUTION_ID = re.compile(r"[0-9a-f-]{36}")
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{1,17}")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a node group was when its caller decided that it may stop.

    Attributes:
        size: Its desired size; that of all its owners together while a deploy replaces one.
        instance_ids: Its live nodes, at least.
    """

    size: int
    instance_ids: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Command:
    """What was asked, of which node groups, by whom and why.

    Attributes:
        action: What to do.
        node_groups: The node groups' names, sorted.
        by: Who asked, in one line.
        automation_execution_id: The execution of the runbook that asks. Default: - none does.
        reason: Why, in one line.
        instance_ids: The nodes to terminate, in the order they are named in.
        all_or_nothing: Whether a stop is applied at once or not at all; if not, later runs finish what fails now.
        expected: What the node group has to be still. Default: - whatever it is.
    """

    action: Action
    node_groups: Sequence[str]
    by: str
    reason: str
    instance_ids: Sequence[str] = ()
    all_or_nothing: bool = False
    expected: Expected | None = None
    automation_execution_id: str | None = None


def parse_command(event: object, settings: PowerFunctionSettings, caller: Caller) -> Command:
    """Read an event; `{}` is a run of the schedule.

    An unknown key is refused, not ignored: `node_group` for `node_groups` would otherwise stop everything.

    Raises:
        InvalidEventError: The event asks for something that the function does not do, or not for this caller.
    """
    if not isinstance(event, dict):
        raise InvalidEventError(f"the event must be a JSON object, got {event!r}")
    unknown = sorted(str(key) for key in event if key not in _KEYS)
    if unknown:
        raise InvalidEventError(f"the event takes {', '.join(_KEYS)}, got {', '.join(unknown)}")
    try:
        action = Action(event.get("action", Action.TICK))
    except ValueError:
        raise InvalidEventError(f"action must be one of {', '.join(Action)}, got {event['action']!r}") from None
    caller.check(action)
    node_groups = _node_groups(event.get("node_groups"), settings)
    return Command(
        action=action,
        node_groups=node_groups,
        by=caller.by,
        reason=_reason(event),
        instance_ids=_instance_ids(event, action, node_groups, settings),
        all_or_nothing=_all_or_nothing(event, action),
        expected=_expected(event, node_groups),
        automation_execution_id=_execution_id(event, caller),
    )


def _node_groups(names: object, settings: PowerFunctionSettings) -> tuple[str, ...]:
    known = ", ".join(settings.groups)
    if names is None:
        return tuple(settings.groups)
    if not isinstance(names, list) or not names:
        raise InvalidEventError(f"node_groups must be a list of names from {known}, got {names!r}")
    unknown = sorted({str(name) for name in names if not isinstance(name, str) or name not in settings.groups})
    if unknown:
        raise InvalidEventError(
            f"{settings.cluster} has no node group {', '.join(unknown)}; its node groups are {known}"
        )
    return tuple(sorted(set(names)))


def _instance_ids(
    event: dict[str, object], action: Action, node_groups: Sequence[str], settings: PowerFunctionSettings
) -> tuple[str, ...]:
    ids = event.get("instance_ids")
    if action is not Action.TERMINATE:
        if ids is not None:
            raise InvalidEventError(f"instance_ids goes with the action terminate only, got {ids!r} with {action}")
        return ()
    if event.get("node_groups") is None or len(node_groups) != 1:
        raise InvalidEventError(f"terminate takes exactly one name in node_groups, got {event.get('node_groups')!r}")
    kind = settings.groups[node_groups[0]].owner_kind
    if not kind.terminates_nodes:
        raise InvalidEventError(
            f"terminate takes no node group whose owner chooses itself which of its nodes it terminates: "
            f"{node_groups[0]} belongs to a {OWNER_KINDS[kind].noun}"
        )
    if not _are_ids(ids) or not 1 <= len(ids) <= _MAX_INSTANCES:
        raise InvalidEventError(
            f"terminate takes 1 to {_MAX_INSTANCES} ids such as i-0123456789abcdef0 in instance_ids, got {ids!r}"
        )
    return tuple(dict.fromkeys(ids))


def _all_or_nothing(event: dict[str, object], action: Action) -> bool:
    value = event.get("all_or_nothing", False)
    if "all_or_nothing" in event and action is not Action.STOP:
        raise InvalidEventError(f"all_or_nothing goes with the action stop only, got {value!r} with {action}")
    if not isinstance(value, bool):
        raise InvalidEventError(f"all_or_nothing must be true or false, got {value!r}")
    return value


def _expected(event: dict[str, object], node_groups: Sequence[str]) -> Expected | None:
    if not any(key in event for key in _EXPECTED):
        return None
    size, ids = (event.get(key) for key in _EXPECTED)
    one = event.get("node_groups") is not None and len(node_groups) == 1
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    if one and event.get("all_or_nothing") is True and isinstance(size, int) and is_size and _are_ids(ids):
        return Expected(size=size, instance_ids=frozenset(ids))
    raise InvalidEventError(
        "expected_size (0 or more) and expected_instance_ids (a list of ids such as i-0123456789abcdef0) go "
        f"together, with all_or_nothing and exactly one name in node_groups, got {event!r}"
    )


def _are_ids(ids: object) -> TypeGuard[list[str]]:
    return isinstance(ids, list) and all(isinstance(one, str) and _INSTANCE_ID.fullmatch(one) for one in ids)


def _execution_id(event: dict[str, object], caller: Caller) -> str | None:
    execution_id = event.get(_EXECUTION)
    if caller.alias is not Alias.START:
        if execution_id is None:
            return None
        raise InvalidEventError(f"{_EXECUTION} goes with the alias {Alias.START} only, got {execution_id!r}")
    if isinstance(execution_id, str) and _EXECUTION_ID.fullmatch(execution_id):
        return execution_id
    raise InvalidEventError(f"{_EXECUTION} must be the id of the runbook's execution, got {execution_id!r}")


def _reason(event: dict[str, object]) -> str:
    text = event.get("reason", "")
    if not isinstance(text, str):
        raise InvalidEventError(f"reason must be text, got {text!r}")
    return one_line(text) or "no reason given"
