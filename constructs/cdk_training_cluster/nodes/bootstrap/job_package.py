"""The package for training jobs as nodes get it: its modules, and what tells Python of its entry points."""

import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path

FOLDER = "job"
"""The folder in a node's asset that is put on the path of jobs' Python."""

PACKAGE = "cluster_job"
"""The package in it."""


def job_project() -> Path:
    """Return where the project of the package lies: beside the library in a wheel, in `job/` in a checkout."""
    library = Path(__file__).resolve().parents[2]
    in_wheel = library / "_job"
    return in_wheel if in_wheel.is_dir() else library.parent.parent / "job"


def write_job_package(directory: Path) -> None:
    """Write the package as if it were installed there.

    torchrun finds the rendezvous through the entry points of the installed distributions, which it reads from the
    folders `*.dist-info` on the path: https://packaging.python.org/en/latest/specifications/entry-points/

    Args:
        directory: Where the folder is made.
    """
    source, target = job_project(), directory / FOLDER
    (target / PACKAGE).mkdir(parents=True)
    for module in sorted((source / PACKAGE).glob("*.py")):
        shutil.copyfile(module, target / PACKAGE / module.name)
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, number = project["name"], version("cdk-training-cluster")
    information = target / f"{name.replace('-', '_')}-{number}.dist-info"
    information.mkdir()
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {target}" for point, target in points.items()), "")
    ]
    (information / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
    (information / "METADATA").write_text(metadata, encoding="utf-8")
