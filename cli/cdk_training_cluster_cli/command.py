"""The `training-cluster` command."""

import sys
from importlib.util import find_spec

_NEEDED = ("pydantic", "rich", "typer", "yaml")


def app() -> None:
    """Run the command, or say what to install: it comes with an extra that the constructs do without."""
    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        sys.exit(f"error: {', '.join(missing)} not found; run: pip install 'cdk-training-cluster[cli]'")
    try:
        from cdk_training_cluster_cli.main import training_cluster  # noqa: PLC0415 - see above

        training_cluster()
    except KeyboardInterrupt:  # While modules are imported; after that typer does the same.
        sys.exit(130)
