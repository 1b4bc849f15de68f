"""What the user's shell says about AWS: the rehearsal uses none of it, and says so."""

from collections.abc import Mapping
from pathlib import Path

_FILES = (".aws/config", ".aws/credentials")


def aws_settings(environment: Mapping[str, str], home: Path) -> list[str]:
    """Name the AWS settings that are present and will not be used.

    Args:
        environment: The user's environment.
        home: The user's home directory.
    """
    names = sorted(name for name in environment if name.startswith(("AWS_", "CDK_DEFAULT_")))
    return names + [f"~/{name}" for name in _FILES if (home / name).exists()]
