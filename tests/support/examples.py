"""The example cluster files, and what the app makes of them in a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from max_seconds import MAX_SECONDS

PROJECT = Path(__file__).parents[2]
EXAMPLES = sorted(path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("clusters/*.yaml"))

# What takes seconds for each example runs over these with every change, and over all with `make test-all`.
_WITH_EVERY_CHANGE = ("base-pod", "hardened", "spot-elastic")


def swept(example: str | Path, every_change: Sequence[str] = _WITH_EVERY_CHANGE, target: str | None = None) -> Any:
    """Return an example as a test's parameter, for tests that take seconds for each.

    Args:
        example: The path of the example.
        every_change: The names of those that run with every change.
        target: The target of make that runs one of them. Default: - those that run with every change do.
    """
    name = Path(example).stem
    mark = pytest.mark.sweep if target is None else pytest.mark.sweep(target)
    return pytest.param(example, id=name, marks=() if name in every_change else mark)


SWEPT_EXAMPLES = [swept(example) for example in EXAMPLES]
EXAMPLES_TOGETHER = [
    pytest.param([example for example in EXAMPLES if Path(example).stem in _WITH_EVERY_CHANGE], id="every-change"),
    pytest.param(EXAMPLES, id="all", marks=pytest.mark.sweep),
]
"""The same for what looks at several at once."""

# What the CDK CLI gives to each app.
_CONTEXT = {"aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}

_ASSET = re.compile(r"[0-9a-f]{64}")


def run_app(
    example: str | Path,
    output: Path,
    *,
    variables: Mapping[str, str] | None = None,
    python: str = sys.executable,
    app: Path = PROJECT / "app.py",
) -> subprocess.CompletedProcess[str]:
    """Run the app on a cluster file, as the CDK CLI does.

    Args:
        example: The cluster file.
        output: Where the cloud assembly is written to.
        variables: Environment variables to set. Default: - CDK's validation is off.
        python: The interpreter. Default: - this one.
        app: The app's file. Default: - the project's.
    """
    context = json.loads((PROJECT / "cdk.json").read_text())["context"] | _CONTEXT | {"cluster": str(example)}
    environment = {
        **os.environ,
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(output),
        "CDK_VALIDATION": "false",
        **(variables or {}),
    }
    return subprocess.run(
        [python, str(app)],
        env=environment,
        cwd=app.parent,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def templates(output: Path) -> dict[str, Any]:
    """Return the templates of a cloud assembly by stack.

    Args:
        output: The cloud assembly.
    """
    return {
        path.name.removesuffix(".template.json"): json.loads(path.read_text())
        for path in sorted(output.glob("*.template.json"))
    }


def without_asset_hashes(value: Any) -> Any:
    """Return a template with the hashes of assets taken out, so that it tells of resources only.

    Args:
        value: The template.
    """
    return json.loads(_ASSET.sub("<asset>", json.dumps(value)))
