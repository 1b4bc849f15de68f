"""What a node says of itself in its own tags: the second source beside its reports, before anything is done to it.

A node's role lets it write tags on its own instance alone. Nodes run this module, with Python 3.9 and its standard
library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cluster_contract.tags import FAULTS_TAG, VERIFIED_TAG

_DRAINED, _PASSED, _FAILED = "drained", "passed", "failed"

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
_MAX_VALUE = 256


class Claim(NamedTuple):
    """What a node's tags say.

    Attributes:
        boot_id: During which boot the node wrote its faults. Empty: it has written none.
        drained: Whether it takes no job, and no process uses an accelerator.
        faults: The names of its faults that a reboot or another node ends.
        verified_boot: During which boot it was verified last. Empty: it was not.
        passed: Whether it passed.
        failed: The checks that it failed.
    """

    boot_id: str = ""
    drained: bool = False
    faults: frozenset[str] = frozenset()
    verified_boot: str = ""
    passed: bool = False
    failed: frozenset[str] = frozenset()


def faults_value(boot_id: str, faults: Iterable[str], *, drained: bool) -> str:
    """Return the value of the tag with a node's faults.

    Args:
        boot_id: The node's boot.
        faults: The names of its faults, the gravest first: what does not fit is left out.
        drained: Whether it is drained.
    """
    return _fitting([boot_id, *([_DRAINED] if drained else []), *faults])


def verified_value(boot_id: str, failed: Sequence[str], at: str) -> str:
    """Return the value of the tag with a node's last verification.

    Args:
        boot_id: The node's boot.
        failed: The checks that it failed. Empty: it passed.
        at: When it was verified.
    """
    return _fitting([_FAILED if failed else _PASSED, at, boot_id or "-", *failed])


def read_claim(tags: Mapping[str, str]) -> Claim:
    """Return what the tags of an instance say.

    Args:
        tags: Its tags.
    """
    boot_id, *said = tags.get(FAULTS_TAG, "").split() or [""]
    result, _, verified_boot, *failed = [*tags.get(VERIFIED_TAG, "").split(), "", "", ""]
    return Claim(
        boot_id=boot_id,
        drained=_DRAINED in said[:1],
        faults=frozenset(said) - {_DRAINED},
        verified_boot=verified_boot,
        passed=result == _PASSED,
        failed=frozenset(filter(None, failed)),
    )


def _fitting(words: Sequence[str]) -> str:
    value = ""
    for word in words:
        longer = f"{value} {word}".strip()
        if len(longer) > _MAX_VALUE:
            break
        value = longer
    return value
