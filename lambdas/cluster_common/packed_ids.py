"""Ids of many instances in an item of the state table, of which DynamoDB takes 400 KB.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

import re
from base64 import b85decode, b85encode
from collections.abc import Iterable
from itertools import groupby

_ID = re.compile(r"i-[0-9a-f]{17}")
_DIGITS, _BYTES = 17, 9

# No id begins with an equals sign; a text that does is marked as well.
_PACKED, _TEXT, _MARK = "=ids:", "=text:", "="


def pack(ids: Iterable[str]) -> tuple[str, ...]:
    """Return ids of instances as texts of 11.25 bytes for each id, and other texts as they are, in the same order."""
    packed: list[str] = []
    for is_id, together in groupby(ids, lambda one: _ID.fullmatch(one) is not None):
        if is_id:
            raw = b"".join(int(one.removeprefix("i-"), 16).to_bytes(_BYTES) for one in together)
            packed.append(f"{_PACKED}{b85encode(raw).decode()}")
        else:
            packed += [f"{_TEXT}{one}" if one.startswith(_MARK) else one for one in together]
    return tuple(packed)


def unpack(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that were packed; ids that were not are as they are.

    Raises:
        ValueError: A text is not what `pack` returns.
    """
    ids: list[str] = []
    for text in texts:
        if not text.startswith(_PACKED):
            ids.append(text.removeprefix(_TEXT))
            continue
        raw = b85decode(text.removeprefix(_PACKED))
        if len(raw) % _BYTES:
            raise ValueError(f"packed ids must have {_BYTES} bytes each, got {len(raw)} bytes")
        numbers = (int.from_bytes(raw[start : start + _BYTES]) for start in range(0, len(raw), _BYTES))
        ids += [f"i-{number:0{_DIGITS}x}" for number in numbers]
    return tuple(ids)
