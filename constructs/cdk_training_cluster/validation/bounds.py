"""What annotations say of settings beside their kind: `Annotated[float, Number(above=0, maximum=50)]`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from aws_cdk import Duration

from cdk_training_cluster.validation.checks import MAX_INTEGER, is_finite, is_unknown, milliseconds, shown
from cdk_training_cluster.validation.texts import cluster_name_problems, text_problems


def written(number: float) -> str:
    """Return a number as people write it, without an exponent unless it is huge.

    Args:
        number: The number.
    """
    return f"{number:g}" if abs(number) >= _HUGE else f"{number:.6f}".rstrip("0").rstrip(".")


_HUGE = 1e15


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number within bounds.

    Attributes:
        above: What it must be greater than. Default: - nothing.
        minimum: The smallest that is allowed. Default: - what is above `above`.
        maximum: The greatest that is allowed. Default: - any.
        known: Whether it must be known when the template is made. Default: - it may be a token.
    """

    above: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    known: bool = False

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if not isinstance(value, bool) and is_unknown(value):
            if self.known:
                yield (
                    f"{setting} must be known when the template is made, got a token, which is known at deployment "
                    "only: write the number"
                )
        elif not is_finite(value):
            yield f"{setting} must be a number {self._bounds}, got {shown(value)}"
        elif not self._has(value):  # type: ignore[arg-type]  # a number here
            yield f"{setting} must be {self._bounds}, got {shown(value)}"

    @property
    def limits(self) -> Mapping[str, float]:
        """The bounds as pydantic's fields have them."""
        given = {"gt": self.above, "ge": self.minimum, "le": self.maximum}
        return {name: bound for name, bound in given.items() if bound is not None}

    def _has(self, value: float) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
        )

    @property
    def _bounds(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f"from {written(self.minimum)} to {written(self.maximum)}"
        lower = f"above {written(self.above or 0)}" if self.minimum is None else f"at least {written(self.minimum)}"
        return lower if self.maximum is None else f"{lower} and at most {written(self.maximum)}"


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A whole number of at least some size.

    Attributes:
        minimum: The smallest that is allowed.
        maximum: The greatest that is allowed. Default: - the greatest that AWS knows.
        advice: How to mend it, if that is not plain. Default: - nothing.
    """

    minimum: int
    maximum: int = MAX_INTEGER
    advice: str = ""

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if is_unknown(value):
            return
        if not isinstance(value, int) or isinstance(value, bool):
            yield f"{setting} must be a whole number of at least {self.minimum}, got {shown(value)}{self.advice}"
        elif value < self.minimum:
            yield f"{setting} must be at least {self.minimum}, got {shown(value)}{self.advice}"
        elif value > self.maximum:
            yield f"{setting} must be at most {self.maximum}, got {shown(value)}"

    @property
    def limits(self) -> Mapping[str, int]:
        """The bounds as pydantic's fields have them."""
        return {"ge": self.minimum, "le": self.maximum}


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """A `Duration` within bounds.

    Attributes:
        minimum: The shortest that is allowed, in minutes.
        maximum: The longest that is allowed, in minutes.
        step: What it must be a multiple of, in minutes. Default: - whole seconds.
    """

    minimum: int
    maximum: int
    step: int | None = None

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if not isinstance(value, Duration):
            yield f"{setting} must be a Duration, such as Duration.minutes(60), got {shown(value)}"
            return
        given = milliseconds(value)
        if given is None:
            if value.unit_label() != "seconds":
                yield (
                    f"{setting} must be in seconds where it is known at deployment only, got {value.unit_label()}: "
                    "use Duration.seconds()"
                )
            return
        step = 1000 if self.step is None else self.step * 60_000
        if not self.minimum * 60_000 <= given <= self.maximum * 60_000 or given % step != 0:
            least, most = (Duration.minutes(each).to_human_string() for each in (self.minimum, self.maximum))
            steps = "in whole seconds" if self.step is None else f"in steps of {self.step} minutes"
            yield f"{setting} must be from {least} to {most}, {steps}, got {value.to_human_string()}"

    @property
    def limits(self) -> Mapping[str, int]:
        """The bounds of a number of minutes as pydantic's fields have them."""
        return {"ge": self.minimum, "le": self.maximum, **({} if self.step is None else {"multiple_of": self.step})}


@dataclass(frozen=True)
class Text:
    """A text within AWS's documented limits.

    Attributes:
        wanted: What it is, with an example.
        limits: The ids of the rows that it has to keep, the most telling first.
    """

    wanted: str
    limits: tuple[str, ...]

    def __init__(self, wanted: str, *limits: str) -> None:
        object.__setattr__(self, "wanted", wanted)
        object.__setattr__(self, "limits", limits)

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if isinstance(value, str):
            yield from text_problems(setting, value, *self.limits)
        else:
            yield f"{setting} must be {self.wanted}, got {shown(value)}"


@dataclass(frozen=True, kw_only=True)
class Form:
    """A text of a form.

    Attributes:
        pattern: A regular expression for the whole of it.
        wanted: What it is, with an example.
    """

    pattern: re.Pattern[str]
    wanted: str

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if not isinstance(value, str) or not (is_unknown(value) or self.pattern.fullmatch(value)):
            yield f"{setting} must be {self.wanted}, got {shown(value)}"


@dataclass(frozen=True)
class OneOf:
    """One of a few texts or numbers.

    Attributes:
        values: All of them.
        because: What else there is to say of them. Default: - nothing.
    """

    values: Sequence[str | int]
    because: str = ""

    def __call__(self, setting: str, value: object) -> Iterator[str]:
        """Yield why a value is none."""
        if is_unknown(value) or (type(value) in {str, int} and value in self.values):
            return
        *others, last = map(str, self.values)
        yield f"{setting} must be {', '.join(others)} or {last}{self.because}, got {shown(value)}"


def _cluster_name(_: str, value: object) -> Iterable[str]:
    return cluster_name_problems(value)


ClusterName: TypeAlias = Annotated[str, _cluster_name]
"""The name of a cluster, which is a tag, a metric's dimension and in texts."""
