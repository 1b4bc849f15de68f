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
Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Return what fills a folder of a name once in a run, whichever worker asks first."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, fill: Callable[[Path], None]) -> Path:
        folder = shared / name
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "made").exists():
                folder.mkdir()
                fill(folder)
                (folder / "made").touch()
        return folder

    return made


@pytest.fixture(scope="session")
def assembly_of(once: Once) -> Callable[[Path], Path]:
    """Return what makes the cloud assembly of a cluster file without AWS, once for all files with its contents."""

    def made(cluster_file: Path) -> Path:
        def fill(folder: Path) -> None:
            ended = run_app(cluster_file, folder / "out", variables={"PYTHONHASHSEED": "0", **_WITHOUT_AWS})
            assert ended.returncode == 0, ended.stderr

        return once(f"assembly-{sha256(cluster_file.read_bytes()).hexdigest()[:16]}", fill) / "out"

    return made
