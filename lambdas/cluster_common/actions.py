"""What the events of a function that looks again and again ask for."""

from enum import StrEnum

from cluster_common.errors import InvalidEventError


class Action(StrEnum):
    """What an event asks for."""

    TICK = "tick"
    """Look, do what follows, report and measure."""

    STATUS = "status"
    """Look and report; change nothing."""


def parse_action(event: object) -> Action:
    """Read an event; `{}` is a tick.

    Raises:
        InvalidEventError: The event asks for something that the function does not do.
    """
    if not isinstance(event, dict):
        raise InvalidEventError(f"the event must be a JSON object, got {event!r}")
    unknown = sorted(str(key) for key in event if key != "action")
    if unknown:
        raise InvalidEventError(f"the event takes action, got {', '.join(unknown)}")
    try:
        return Action(event.get("action", Action.TICK))
    except ValueError:
        raise InvalidEventError(f"action must be one of {', '.join(Action)}, got {event['action']!r}") from None
