"""torch's flight recorder: where it writes, and what it says of the collectives of a process.

The recorder keeps the last collectives of each process group, of NCCL and of gloo, and NCCL's watchdog writes them to
a file when a collective times out: `torchfrtrace` compares the files of all ranks.

https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
torch/csrc/distributed/c10d/FlightRecorder.hpp, whose newer names go before the older ones.
"""

import contextlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ENTRIES = "2000"
_NAMES = (
    ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
    ("TORCH_NCCL_DUMP_ON_TIMEOUT",),
    ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
)


@cache
def own_folder() -> Path:
    """Return a folder on the node in which no other user may write: links there would lead to files of this user.

    Where another user has made the folder of that name, it is a new one for each process.
    """
    folder = Path(tempfile.gettempdir()) / f"cdk-training-cluster-{os.getuid()}"
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            folder.chmod(0o700)
            return folder
        return Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    return Path(os.devnull)  # nothing can be written below it


def recorder_variables(run: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the recorder that the user has not set, by their older names neither.

    Args:
        run: The run's name.
        environ: The environment variables.
    """
    values = (_ENTRIES, "1", str(own_folder() / run / "flight-recorder-rank-"))
    return {
        names[0]: value
        for names, value in zip(_NAMES, values, strict=True)
        if not any(environ.get(name) for name in names)
    }


def make_folder(run: str) -> None:
    """Make the folder for the files of a run: torch makes none. A full disk keeps no job from its start.

    Args:
        run: The run's name.
    """
    with contextlib.suppress(OSError):
        (own_folder() / run).mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, kw_only=True)
class Collectives:
    """What one rank says of its collectives.

    Attributes:
        counts: How many each of its process groups has begun, by the group's name.
        last: The last one that is not over, such as `gloo:all_reduce`. Empty: there is none, or it is not known.
    """

    counts: Mapping[str, int]
    last: str = ""


def read_collectives() -> Collectives:
    """Return the collectives of this process; none where torch has no groups, or does not say.

    With CUDA in use only the numbers are read: for the rest the recorder asks CUDA, which may not answer either.
    """
    torch = sys.modules.get("torch")
    counts: dict[str, int] = {}
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return Collectives(counts=counts)
    world = torch.distributed.distributed_c10d._world
    for group, name in list(world.pg_names.items()):
        with contextlib.suppress(RuntimeError, AttributeError):  # a group without a backend that counts
            counts[name] = group._get_sequence_number_for_group()
    last = ""
    if not torch.cuda.is_initialized():
        with contextlib.suppress(AttributeError, RuntimeError, ValueError):
            found = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, True))
            last = next((one["profiling_name"] for one in found["entries"][::-1] if not one["retired"]), "")
    return Collectives(counts=counts, last=last)
