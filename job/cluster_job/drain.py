"""What asks the node's jobs to save and end: one file for each reason, which the node's watchdog writes."""

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

DRAIN_FOLDER = Path("/run/cdk-training-cluster/drain")
"""Any file in it means that the node takes no new job, and that a running one checkpoints and ends."""


@dataclass(frozen=True, kw_only=True)
class DrainRequest:
    """Why a node is to be left, and until when.

    Attributes:
        code: The reason's short name, such as `xid-79` or `spot`.
        sentence: The reason as people read it.
        deadline: When the node goes. None: no time is set.
    """

    code: str
    sentence: str
    deadline: datetime | None


def drain_request(folder: Path = DRAIN_FOLDER) -> DrainRequest | None:
    """Return the request that ends first; None: the node is not drained.

    A file that cannot be read drains too: it stands for a reason that its writer saw.

    Args:
        folder: Where the files lie.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError:  # there is none before the first request
        return None
    requests = [_read(file) for file in files]
    return min(requests, key=lambda one: (one.deadline is None, one.deadline or 0, one.code), default=None)


def _read(file: Path) -> DrainRequest:
    try:
        sentence, _, rest = file.read_text(encoding="utf-8").partition("\n")
        found = json.loads(rest or "{}").get("deadline")
        deadline = None if found is None else _utc(str(found))
    except (OSError, ValueError, AttributeError):
        sentence, deadline = "", None
    return DrainRequest(
        code=file.name, sentence=sentence.strip() or f"{file.name} drains the node", deadline=deadline
    )


def _utc(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
