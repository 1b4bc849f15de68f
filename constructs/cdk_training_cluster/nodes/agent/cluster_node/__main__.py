"""The commands of `cluster-node`, by their names."""

from __future__ import annotations

import sys

from . import credentials, drain_files, hydrate, verify, waiting, watch

COMMANDS = {
    "credentials": credentials.main,
    "drain": drain_files.drain,
    "hydrate": hydrate.main,
    "undrain": drain_files.undrain,
    "verify": verify.main,
    "wait-for-dataset": waiting.main,
    "watch": watch.main,
}


def main() -> None:
    """Run the command that the arguments name."""
    command = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        sys.exit(_usage())
    sys.exit(command(sys.argv[2:]))


def _usage() -> int:
    sys.stderr.write(f"cluster-node: give one of {', '.join(COMMANDS)}; each explains itself with --help\n")
    return 2


if __name__ == "__main__":
    main()
