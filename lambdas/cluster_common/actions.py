"""What the events of a function that looks again and again ask for."""

from collections.abc import Sequence
from enum import StrEnum

from cluster_common.errors import InvalidEventError


class Action(StrEnum):
    """What an event asks for."""

    TICK = "tick"
    """Look, do what follows, report and measure."""

    STATUS = "status"
    """Look and report; change nothing."""

    RUN = "run"
    """Begin anew what has ended or failed."""


def parse_action(event: object, takes: Sequence[Action] = (Action.TICK, Action.STATUS)) -> Action:
    """Read an event; `{}` is a tick.

    Args:
        event: The event.
        takes: What the function does. Default: - a tick and a status.

    Raises:
        InvalidEventError: The event asks for something that the function does not do.
    """
    if not isinstance(event, dict):
        raise InvalidEventError(f"the event must be a JSON object, got {event!r}")
    unknown = sorted(str(key) for key in event if key != "action")
    if unknown:
        raise InvalidEventError(f"the event takes the key action only, got {', '.join(unknown)}")
    asked = event.get("action", Action.TICK)
    for action in takes:
        if action == asked:
            return action
    raise InvalidEventError(f"action must be one of {', '.join(takes)}, got {asked!r}")
