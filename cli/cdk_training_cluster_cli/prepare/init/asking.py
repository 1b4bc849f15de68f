"""Asks the user on a terminal what the options leave open; elsewhere the options and defaults have to do."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from cdk_training_cluster_cli.money.plan.assumptions import number

_Value = TypeVar("_Value")
Ask = Callable[[str, str | None], str]
"""Asks a question on a terminal, with the answer that Enter gives, and returns what was typed."""


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Where answers come from.

    Attributes:
        ask: Asks on a terminal. None: there is none.
        tell: Says there what is wrong with an answer.
    """

    ask: Ask | None
    tell: Callable[[str], object]

    def answer(
        self,
        option: str,
        given: str | None,
        question: str,
        read: Callable[[str, str], _Value],
        *,
        default: str | None = None,
    ) -> _Value:
        """Return what an option gives; otherwise what is answered to a question; without a terminal, the default.

        Args:
            option: The option.
            given: What was given to it. None: nothing.
            question: The question.
            read: Reads an answer; its first argument is the name of the option that the question stands for.
            default: What holds if nothing is answered. None: an answer is needed.

        Raises:
            ValueError: What was given is wrong, or nothing was given where there is no terminal to ask on.
        """
        if given is not None:
            return read(option, given)
        if self.ask is None:
            if default is None:
                raise ValueError(f"{option} is required where init cannot ask: standard input is no terminal")
            return read(option, default)
        while True:
            try:
                return read(option, self.ask(question, default))
            except ValueError as error:
                self.tell(str(error))


def formed(kind: Any) -> Callable[[str, str], str]:  # noqa: ANN401 - any annotation
    """Return what reads a text of a form that the cluster file has.

    Args:
        kind: The form, such as `fields.ClusterName`.
    """
    form: TypeAdapter[str] = TypeAdapter(kind)

    def read(option: str, text: str) -> str:
        try:
            return form.validate_python(text.strip())
        except ValidationError as error:
            raise ValueError(f"{option} {error.errors()[0]['msg']}, got {text!r}") from None

    return read


def whole(option: str, text: str) -> int:
    """Read a whole number above 0.

    Args:
        option: The option that it was given to.
        text: What was given.

    Raises:
        ValueError: It is none.
    """
    if not text.strip().isdecimal() or not 0 < int(text) <= _MOST:
        raise ValueError(f"{option} must be a whole number from 1 to {_MOST}, got {text!r}")
    return int(text)


def positive(option: str, text: str) -> Decimal:
    """Read a number above 0.

    Args:
        option: The option that it was given to.
        text: What was given.

    Raises:
        ValueError: It is none.
    """
    value = number(option, text)
    if value <= 0:
        raise ValueError(f"{option} must be a number above 0, got {text!r}")
    return value


_MOST = 10_000
