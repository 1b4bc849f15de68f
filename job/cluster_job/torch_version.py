"""The version of torch that the package is tested with: the package uses names of torch that are not public."""

import re
from pathlib import Path

TESTED_TORCH = "2.13.0"
"""The version that `make test-torch` installs; the Makefile reads it here."""

TESTED_SERIES = TESTED_TORCH.rpartition(".")[0]
"""The versions that the documentation names: patch releases do not change these names."""


def untested_torch(package: Path) -> str:
    """Return a sentence where the installed torch is not the tested one; empty: it is, or the version is unknown.

    Args:
        package: The folder of the package torch.
    """
    file = package / "version.py"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    found = re.search(r"^__version__ = ['\"](\d+\.\d+)(\.[^'\"]*)['\"]", text, re.MULTILINE)
    if found is None or found[1] == TESTED_SERIES:
        return ""
    version = found[1] + found[2]
    return f"torch {version} is not tested: if the job fails to start or to restart, use torch {TESTED_SERIES}"
