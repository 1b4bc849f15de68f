"""Keep the templates of a release: `make release-templates`.

For every example, `releases/<version>/<example>/` holds the cluster file and the templates that `cdk synth` makes
of it. A test synthesizes the kept cluster files anew and fails if that would replace a file system, a bucket, a
placement group or something that these refer to.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1]


def keep_templates(project: Path) -> None:
    """Write the templates of the version that pyproject.toml names, unless it is released already.

    Args:
        project: The folder of the project.
    """
    version = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    release = project / "releases" / version
    changelog = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    if release.exists() and re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE):
        sys.exit(
            f"error: {version} is released, and its templates are what people have deployed: raise the version in "
            "pyproject.toml to keep those of another release"
        )
    shutil.rmtree(release, ignore_errors=True)
    for cluster_file in sorted(project.glob("clusters/*.yaml")):
        directory = release / cluster_file.stem
        _keep(project, cluster_file, directory)
        print(directory.relative_to(project))


def _keep(project: Path, cluster_file: Path, directory: Path) -> None:
    directory.mkdir(parents=True)
    shutil.copyfile(cluster_file, directory / "cluster.yaml")
    if "[scripts/" in cluster_file.read_text(encoding="utf-8"):
        shutil.copytree(cluster_file.with_name("scripts"), directory / "scripts")
    with tempfile.TemporaryDirectory() as assembly:
        ended = subprocess.run(
            ["cdk", "synth", "--quiet", "--no-notices", "-c", f"cluster={cluster_file}", "--output", assembly],  # noqa: S607 - `make setup` puts it on the path
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            sys.exit(ended.stderr)
        for template in Path(assembly).glob("*.template.json"):
            shutil.copyfile(template, directory / template.name)


if __name__ == "__main__":
    keep_templates(_PROJECT)
