"""What asks the node's jobs to save and end: one file for each reason, which the node's watchdog writes."""

import json
import os
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


JOB_FOLDER = "TRAINING_CLUSTER_DRAIN"
"""The variable with the folder where `cluster-run` asks its own job, after a signal of Slurm or Kubernetes."""


def drain_request(*folders: Path) -> DrainRequest | None:
    """Return the request that ends first; None: neither the node nor the job is drained.

    A file that cannot be read drains too: it stands for a reason that its writer saw.

    Args:
        folders: Where the files lie. Default: - the node's folder, and the job's own.
    """
    own = os.environ.get(JOB_FOLDER)
    places = folders or (DRAIN_FOLDER, *([Path(own)] if own else []))
    requests = [_read(file) for folder in places for file in _files(folder)]
    return min(requests, key=lambda one: (one.deadline is None, one.deadline or 0, one.code), default=None)


def write_drain_request(folder: Path, request: DrainRequest) -> None:
    """Ask a job to save and end.

    Args:
        folder: The job's own folder.
        request: Why, and until when.
    """
    deadline = None if request.deadline is None else request.deadline.isoformat()
    new = folder / f".{request.code}.new"
    new.write_text(f"{request.sentence}\n{json.dumps({'code': request.code, 'deadline': deadline})}\n")
    new.rename(folder / request.code)


def _files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    except OSError:  # there is none before the first request
        return []


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
