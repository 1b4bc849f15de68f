"""When nodes run: `schedule:` in a cluster file, for the cluster and for a node group."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cdk_training_cluster import Schedule
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.model_base import Settings


def _windows(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        Schedule(texts)
    except ValueError as error:
        # The place says what it is.
        raise ValueError(str(error).removeprefix("windows: ").removeprefix("windows ")) from None
    return texts


def _window(text: str) -> str:
    return _windows((text,))[0]


def _holiday(text: str) -> str:
    try:
        Schedule((), holidays=[text])
    except ValueError as error:
        raise ValueError(str(error).replace("holidays must be dates", "must be a date")) from None
    return text


class ScheduleSettings(Settings, ModelOf[Schedule]):
    """When nodes run: the power function starts them with a window and stops them at its end."""

    windows: Annotated[tuple[Annotated[str, AfterValidator(_window)], ...], AfterValidator(_windows)] = Field(
        examples=[["weekdays 08:00-20:00 Europe/Berlin"]]
    )
    """Days (daily, weekdays, weekends, mon,wed or mon-thu), times and an IANA time zone; or two cron expressions,
    0 20 * * 5 to 0 6 * * 1 Europe/Berlin. [] is no schedule, for a group of a cluster that has one."""

    holidays: tuple[Annotated[str, AfterValidator(_holiday)], ...] = Field(default=(), examples=[["2026-12-25"]])
    """Dates on which, in its time zone, no window starts. Left out: none."""

    end: Literal["stop", "idle"] = "stop"
    """What the end of a window does: `stop` stops the nodes, `idle` leaves that to the idle function."""

    warning_minutes: int = 15
    """How long before it stops nodes the alert topic gets a warning: 5 to 240."""
