"""Write what `training-cluster plan` says into the blocks of README.md and docs/plan.md that show it.

    python scripts/show_plans.py

Each block keeps the parts that it shows; a part is known by the first word of its heading.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

_PROJECT = Path(__file__).parents[1]
_DOCUMENTS = ("README.md", "docs/plan.md")
_COLUMNS = "110"
_SHOWN = re.compile(r"^\$ (training-cluster plan [^\n]*)\n(.*?)(?=^```)", re.DOTALL | re.MULTILINE)


def parts(text: str) -> dict[str, list[str]]:
    """Return the lines of each part by the first word of its heading, without empty ones.

    Args:
        text: What the command wrote.
    """
    found: dict[str, list[str]] = {}
    word = ""
    for line in filter(None, map(str.rstrip, text.splitlines())):
        if not line.startswith((" ", "- ")):
            word = line.split()[0]
        found.setdefault(word, []).append(line)
    return found


def renewed(match: re.Match[str]) -> str:
    """Return a command with what it says now, in the parts that are shown.

    Args:
        match: The command and what is shown.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "COLUMNS": _COLUMNS, "XDG_CACHE_HOME": cache}
        command = shlex.split(match[1])
        said = subprocess.run(command, env=environment, cwd=_PROJECT, stdout=subprocess.PIPE, text=True, check=True)
    shown = parts(match[2])
    lines = [line for word, part in parts(said.stdout).items() if word in shown for line in part]
    return "\n".join([f"$ {match[1]}", *lines, ""])


def main() -> int:
    """Write the documents; return the exit status."""
    for name in _DOCUMENTS:
        file = _PROJECT / name
        file.write_text(_SHOWN.sub(renewed, file.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
