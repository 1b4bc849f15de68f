"""What a documented limit of a text is, and what it says of one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST_SHOWN = 60

# Half of a surrogate pair, which no request can carry.
_HALF = "[\ud800-\udfff]"


@dataclass(frozen=True, kw_only=True)
class TextLimit:
    """What AWS takes for one kind of text.

    Attributes:
        id: The row's name; a finding is acknowledged as `cdk-training-cluster::<id>`.
        places: Where in templates it holds, as `Type Path.Of.Property`; the type may end with `*`.
        allowed: What is allowed, as the end of a sentence that starts with "must have".
        characters: A regular expression for one allowed character.
        form: A regular expression for the whole text, beside that. Empty: there is none.
        minimum: The least number of characters.
        maximum: The greatest number of characters, or of bytes.
        in_bytes: Whether UTF-8 bytes are counted.
        reserved: How it must not start, in lower case; compared without regard to case.
        reserved_ends: How it must not end.
        source: The address of the document.
    """

    id: str
    places: tuple[str, ...]
    allowed: str
    characters: str = r"[\s\S]"
    form: str = ""
    minimum: int = 0
    maximum: int
    in_bytes: bool = False
    reserved: tuple[str, ...] = ()
    reserved_ends: tuple[str, ...] = ()
    source: str

    @property
    def pattern(self) -> str:
        """The whole limit as one regular expression, as JSON Schema knows them too."""
        starts = "".join(f"(?!{_either_case(start)})" for start in self.reserved)
        ends = "".join(f"(?!.*{_escaped(end)}$)" for end in self.reserved_ends)
        form = f"(?={self.form}$)" if self.form else ""
        return f"{starts}{ends}{form}(?:{self.characters}){{{self.minimum},{self.maximum}}}"

    def mend(self, pieces: Sequence[str | None]) -> str | None:
        """Say how to mend a text, or None if AWS takes it.

        Args:
            pieces: The text in its pieces; None is a piece that only the deployment knows. What is certain of the
                whole text is judged: characters and lengths of the known pieces, and the start and end of it.
        """
        known = [piece for piece in pieces if piece is not None]
        text = "".join(known)
        size = len(text.encode(errors="replace")) if self.in_bytes else len(text)
        found = self._wrong_of_a_part(text, size, pieces[0] or "", pieces[-1] or "")
        if found is not None or len(known) < len(pieces):
            return found
        if size < self.minimum:
            return f"lengthen it by {self.minimum - size}" if size else "leave it out, or give one"
        return "write it in that form" if self.form and not re.fullmatch(self.form, text) else None

    def _wrong_of_a_part(self, text: str, size: int, start: str, end: str) -> str | None:
        strange = re.sub(f"^(?:(?!{_HALF})(?:{self.characters}))*", "", text)
        if strange:
            return f"take {strange[0]!r} out"
        if size > self.maximum:
            return f"shorten it by {size - self.maximum}"
        for reserved in self.reserved:
            if start.lower().startswith(reserved):
                return f"{start[: len(reserved)]!r} at the start is reserved for AWS"
        ends = (
            f"{reserved!r} at the end is reserved for AWS"
            for reserved in self.reserved_ends
            if end.endswith(reserved)
        )
        return next(ends, None)

    def problem(self, subject: str, pieces: Sequence[str | None]) -> str | None:
        """Say what is wrong with a text in one sentence, or None if AWS takes it.

        Args:
            subject: What the sentence is about: a setting as its user spelled it, or a property.
            pieces: The text, as `mend` takes it.
        """
        mend = self.mend(pieces)
        if mend is None:
            return None
        return f"{subject} must have {self.allowed}, got {_shown(pieces)}: {mend}"


def _either_case(text: str) -> str:
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else _escaped(one) for one in text)


def _escaped(text: str) -> str:
    # A hyphen needs no backslash, and JSON Schema's regular expressions take none before it.
    return re.escape(text).replace("\\-", "-")


def _shown(pieces: Sequence[str | None]) -> str:
    text = "".join("…" if piece is None else piece for piece in pieces)
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}… ({len(text)} characters)"
