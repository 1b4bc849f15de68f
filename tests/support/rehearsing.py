"""The rehearsal's command, run as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from examples import PROJECT
from max_seconds import MAX_SECONDS


def rehearse(cluster: str | Path, build: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Rehearse a cluster file, and return what the command said and what it found.

    Args:
        cluster: The cluster file.
        build: Where the results are written to.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "rehearsal", "--cluster", str(cluster), "--build", str(build)],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    return ended, json.loads((build / "rehearsal.json").read_text())
