"""The form of a value of a cluster file: a pattern or bounds for editors, and a sentence for readers."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cdk_training_cluster.validation import LIMITS, bounds
from cdk_training_cluster.validation.kinds import problems

# Half of a surrogate pair, which JSON can write and no request can carry.
_HALF = re.compile("[\\ud800-\\udfff]")


@dataclass(frozen=True, kw_only=True)
class Text:
    """Marks a string that has a form: the pattern goes into the JSON Schema, the sentence into the error.

    Args:
        pattern: Regular expression that the whole value has to match.
        must: What the value must be, as the end of a sentence that starts with "must ".
        longest: Most characters that AWS takes.
        because: Where the limit on the length comes from.
        words: Words that it may be, one of which may be meant by what is nearly one.
    """

    pattern: str
    must: str
    longest: int | None = None
    because: str = ""
    words: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        length = {} if self.longest is None else {"maxLength": self.longest}
        # JavaScript's `\w` is ASCII: editors take any other character there, and reading decides.
        pattern = re.sub(r"(\[\\w[^]]*])", r"(?:[^\\x00-\\x7f]|(?=[\\x00-\\x7f])\1)", self.pattern)
        return {**handler(schema), "pattern": f"^{pattern}$", **length}

    def check(self, value: str) -> str:
        """Return the value if it has the form, and say what the form is if not."""
        if self.longest is not None and len(value) > self.longest:
            raise PydanticCustomError(
                "too_long_text",
                "must have at most {longest} characters{because}; this has {length}",
                {
                    "longest": self.longest,
                    "because": f" ({self.because})" if self.because else "",
                    "length": len(value),
                },
            )
        if re.fullmatch(self.pattern, value) is None or _HALF.search(value):
            near = next(iter(get_close_matches(value.lower(), self.words, n=1)), "")
            raise PydanticCustomError("form", "must {must}", {"must": self.must, "near": near})
        return value


@dataclass(frozen=True)
class Choice:
    """Marks a string that is one of a table's: the table goes into the JSON Schema and into the error.

    Args:
        values: All that it may be.
        because: Why it may be nothing else.
    """

    values: tuple[str, ...]
    because: str

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "enum": list(self.values)}

    def check(self, value: str) -> str:
        """Return the value if it is in the table, and say what is if not."""
        if value not in self.values:
            near = next(iter(get_close_matches(value, self.values, n=1)), "")
            all_of_them = f"{', '.join(self.values[:-1])} or {self.values[-1]}, {self.because}"
            raise PydanticCustomError("form", "must be {all}", {"all": all_of_them, "near": near})
        return value


def limited(*limits: str, must: str, before: str = "") -> Text:
    """Return the form that AWS's documented limits give a text: the first one's pattern and the shortest length.

    Args:
        limits: The ids of the rows.
        must: What the value must be.
        before: What else stands before the pattern.
    """
    longest = min(LIMITS[each].maximum for each in limits)
    return Text(pattern=before + LIMITS[limits[0]].pattern, must=must, longest=longest, because="AWS's limit")


def in_the_library(kind: Any) -> AfterValidator:  # noqa: ANN401 - any annotation
    """Hold a value against what an annotation of the library's says.

    Args:
        kind: The annotation.
    """

    def check(value: object) -> object:
        for problem in problems("", value, kind):
            raise ValueError(problem.strip())
        return value

    return AfterValidator(check)


def aws_id(prefix: str, of: str) -> Text:
    """Return the form of the ids that AWS gives.

    Args:
        prefix: What they start with.
        of: What they are the ids of.
    """
    return Text(
        pattern=rf"{prefix}-[0-9a-f]{{8}}(?:[0-9a-f]{{9}})?",
        must=f"be the id of {of}, such as {prefix}-0a1b2c3d4e5f67890",
    )


def text_of(form: bounds.Form, **more: object) -> Any:  # noqa: ANN401 - as pydantic's metadata
    """Return the form that the library has for a text.

    Args:
        form: What the library's annotation carries.
        more: More attributes of `Text`.
    """
    return Text(pattern=re.sub(r"\((?!\?)", "(?:", form.pattern.pattern), must=f"be {form.wanted}", **more)  # type: ignore[arg-type]


def within(allowed: bounds.Number | bounds.Whole | bounds.Minutes, minutes: int = 1) -> Any:  # noqa: ANN401 - as pydantic's Field
    """Return the bounds that the library has for a setting.

    Args:
        allowed: What the library's annotation carries.
        minutes: The minutes of the setting's unit, where a duration is allowed. Default: 1
    """
    limits = allowed.limits
    if isinstance(allowed, bounds.Minutes) and minutes > 1:
        # Whole numbers of a step are whole steps already.
        limits = {
            name: limit // minutes for name, limit in limits.items() if limit != minutes or name != "multiple_of"
        }
    return Field(strict=True, allow_inf_nan=None if isinstance(allowed, bounds.Whole) else False, **limits)
