"""Make what is published of a version: `make release`.

`dist/` gets the sdist and the wheel, `SHA256SUMS`, and `sbom.json`: all that a user gets with the extra `cli`, as
CycloneDX. The same sources give the same bytes: a user can rebuild a published file and compare.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1]


def build(project: Path, directory: Path) -> list[Path]:
    """Build the sdist, and the wheel from the sdist alone; return both.

    Args:
        project: The folder of the project.
        directory: Where they come.
    """
    _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(directory)], cwd=project)
    (sdist,) = directory.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(sdist, unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)], cwd=source)
    return sorted(directory.glob("cdk_training_cluster-*"))


def digests(files: Sequence[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by their names.

    Args:
        files: The files.
    """
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def bill_of_materials(project: Path, wheel: Path) -> dict[str, object]:
    """Return what is installed with the wheel and the extra `cli`, as CycloneDX says it.

    Args:
        project: The folder of the project, whose constraints pin the versions.
        wheel: The wheel.
    """
    with tempfile.TemporaryDirectory() as directory:
        venv, file = Path(directory) / "venv", Path(directory) / "sbom.json"
        _run([sys.executable, "-m", "venv", str(venv)])
        pip = [str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        constraints = str(project / "constraints.txt")
        _run([*pip, "install", "--no-compile", "--constraint", constraints, f"{wheel}[cli]"])
        _run([*pip, "uninstall", "--yes", "pip", "setuptools"])
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        _run([*tool, "--pyproject", str(project / "pyproject.toml"), "--output-file", str(file), str(venv)])
        found: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"error: {' '.join(command[:4])} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def main() -> None:
    """Make and check the release."""
    dist = _PROJECT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    files = build(_PROJECT, dist)
    with tempfile.TemporaryDirectory() as again:
        if digests(files) != digests(build(_PROJECT, Path(again))):
            sys.exit("error: two builds of the same sources differ")
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)])
    (wheel,) = dist.glob("*.whl")
    bill = dist / "sbom.json"
    bill.write_text(json.dumps(bill_of_materials(_PROJECT, wheel), indent=2) + "\n", encoding="utf-8")
    lines = [f"{digest}  {name}\n" for name, digest in digests([*files, bill]).items()]
    (dist / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    sys.stdout.writelines(lines)


if __name__ == "__main__":
    main()
