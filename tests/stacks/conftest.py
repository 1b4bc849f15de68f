"""Examples' cloud assemblies, each made once in a run and shared by the workers."""

import fcntl
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from examples import run_app

# Whoever has no AWS at hand: no credentials, no profile, and nobody who answers.
_WITHOUT_AWS = {
    "AWS_ACCESS_KEY_ID": "",
    "AWS_PROFILE": "no-such-profile",
    "AWS_ENDPOINT_URL": "http://localhost:1",
}


@pytest.fixture(scope="session")
def assembly_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return what makes the cloud assembly of a cluster file without AWS, once for all files with its contents."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(cluster_file: Path) -> Path:
        output = shared / f"assembly-{sha256(cluster_file.read_bytes()).hexdigest()[:16]}"
        with output.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (output / "manifest.json").exists():
                ended = run_app(cluster_file, output, variables={"PYTHONHASHSEED": "0", **_WITHOUT_AWS})
                assert ended.returncode == 0, ended.stderr
        return output

    return made
