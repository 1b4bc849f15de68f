"""Make what is published of a version: `make release`.

`dist/` gets the sdists and the wheels of the library and of the package for training jobs, `SHA256SUMS`, and all that
a user gets with the extra `cli` (`sbom.json`) or `torchrun` (`sbom-job.json`), as CycloneDX. The same sources give
the same bytes: a user can rebuild a published file and compare. Bills name the files of this platform by the hashes
that pip reports of what it installed.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parents[1]

_PROJECTS = ((_PROJECT, "cli", "sbom.json"), (_PROJECT / "job", "torchrun", "sbom-job.json"))
"""What is published: the folder of each project, the extra that most users install, and its bill of materials."""


def build(project: Path, directory: Path) -> list[Path]:
    """Build the sdist, and the wheel from the sdist alone; return both.

    Args:
        project: The folder of the project.
        directory: Where they come.
    """
    with tempfile.TemporaryDirectory() as name:
        made, unpacked = Path(name) / "made", Path(name) / "unpacked"
        _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(made)], cwd=project)
        (sdist,) = made.iterdir()
        shutil.unpack_archive(sdist, unpacked, filter="data")
        (source,) = unpacked.iterdir()
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)], cwd=source)
        return [Path(shutil.move(file, directory)) for file in sorted(made.iterdir())]


def digests(files: Sequence[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by their names.

    Args:
        files: The files.
    """
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def bill_of_materials(project: Path, wheel: Path, extra: str) -> dict[str, Any]:
    """Return what is installed with a wheel and an extra, as CycloneDX says it.

    Args:
        project: The folder of the project.
        wheel: The wheel.
        extra: The extra.
    """
    with tempfile.TemporaryDirectory() as directory:
        venv, file = Path(directory) / "venv", Path(directory) / "sbom.json"
        _run([sys.executable, "-m", "venv", str(venv)])
        pip = [str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        constraints = str(_PROJECT / "constraints.txt")
        # What the wheel holds of others lies in it as it was published.
        held = map(str, sorted((project / "constructs").rglob("*.whl")))
        report = Path(directory) / "report.json"
        install = ["install", "--no-compile", "--constraint", constraints, "--report", str(report)]
        _run([*pip, *install, f"{wheel}[{extra}]", *held])
        _run([*pip, "uninstall", "--yes", "pip", "setuptools"])
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        _run([*tool, "--pyproject", str(project / "pyproject.toml"), "--output-file", str(file), str(venv)])
        return finished(json.loads(file.read_text(encoding="utf-8")), json.loads(report.read_text(encoding="utf-8")))


def finished(bill: dict[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bill of materials with the hash of each component's file, and without paths of this machine.

    Args:
        bill: The bill of an environment.
        report: What pip says of the files that it installed there, with the hashes that it compared or computed.

    Source: https://pip.pypa.io/en/stable/reference/installation-report/
    """
    hashes = {
        _normalized(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]["sha256"]
        for one in report["install"]
    }
    for component in bill["components"]:
        name = _normalized(component["name"])
        if name not in hashes:
            sys.exit(f"error: pip names no hash of the file of {component['name']}")
        component["hashes"] = [{"alg": "SHA-256", "content": hashes[name]}]
        elsewhere = [one for one in component.pop("externalReferences", ()) if not one["url"].startswith("file:")]
        component.update({"externalReferences": elsewhere} if elsewhere else {})
    return bill


def _normalized(name: str) -> str:
    """Return a project's name as indexes compare it: https://packaging.python.org/en/latest/specifications/name-normalization/."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"error: {' '.join(command[:4])} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def main() -> None:
    """Make and check the release."""
    dist = _PROJECT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    files = []
    for project, extra, name in _PROJECTS:
        built = build(project, dist)
        with tempfile.TemporaryDirectory() as again:
            if digests(built) != digests(build(project, Path(again))):
                sys.exit("error: two builds of the same sources differ")
        _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)])
        (wheel,) = (file for file in built if file.suffix == ".whl")
        bill = dist / name
        text = json.dumps(bill_of_materials(project, wheel, extra), indent=2) + "\n"
        bill.write_text(text, encoding="utf-8")
        files += [*built, bill]
    lines = [f"{digest}  {name}\n" for name, digest in digests(files).items()]
    (dist / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    sys.stdout.writelines(lines)


if __name__ == "__main__":
    main()
