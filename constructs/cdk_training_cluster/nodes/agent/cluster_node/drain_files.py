"""The files that drain the node: while there is one, it takes no new job, and a running one saves and ends."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from cluster_contract.node_files import DRAIN, OPERATOR, SLURM
from cluster_contract.times import time_text

from .programs import ROOT

VERIFICATION = "verify"
"""The file of a node that failed its verification."""

_MAX_SENTENCE = 500


def folder() -> Path:
    """Return where the files lie."""
    return Path(ROOT + DRAIN)


def names() -> list[str]:
    """Return the names of the files, sorted."""
    try:
        return sorted(path.name for path in folder().iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return []


def sentence_of(name: str) -> str:
    """Return the first line of a file, or its name where it has none.

    Args:
        name: The file's name.
    """
    try:
        lines = (folder() / name).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[0] if lines and lines[0] else name


def make_folder() -> None:
    """Make the folder, which jobs of all users read, whatever root's umask is."""
    folder().mkdir(parents=True, exist_ok=True)
    for each in (folder().parent, folder()):
        each.chmod(0o755)


def add(name: str, sentence: str, *, code: str, action: str, deadline: datetime | None = None) -> None:
    """Drain the node, or change what is said of it; readers see a file whole or not at all.

    Args:
        name: The file's name.
        sentence: Why, for operators.
        code: The fault or notice.
        action: What ends it.
        deadline: When the node goes. Default: - that is not known.
    """
    facts = {
        "code": code,
        "action": action,
        "deadline": deadline and time_text(deadline),
        "at": time_text(datetime.now(timezone.utc)),
    }
    make_folder()
    # Slurm shows the first line, which must be one.
    line = re.sub(r"\s+", " ", sentence).strip()[:_MAX_SENTENCE]
    new = folder() / f".{name}"
    new.write_text(f"{line}\n{json.dumps(facts)}\n", encoding="utf-8")
    new.chmod(0o644)
    new.replace(folder() / name)


def remove(name: str) -> bool:
    """Remove a file, and say whether it was there.

    Args:
        name: The file's name.
    """
    try:
        (folder() / name).unlink()
    except FileNotFoundError:
        return False
    return True


def drain(arguments: list[str]) -> int:
    """Drain the node for an operator."""
    parser = argparse.ArgumentParser(
        prog="cluster-node drain",
        description="Drain this node: it takes no new job, and a running one saves a checkpoint and ends.",
    )
    parser.add_argument("reason", nargs="+", help="why, for those who look at the node")
    reason = " ".join(parser.parse_args(arguments).reason)
    try:
        add(OPERATOR, f"{_user()} drained the node: {reason}", code=OPERATOR, action="observe")
    except PermissionError:
        return _needs_root("drain")
    sys.stdout.write("The node is drained. To take it back: cluster-node undrain\n")
    return 0


def undrain(arguments: list[str]) -> int:
    """Take the node back for an operator."""
    parser = argparse.ArgumentParser(
        prog="cluster-node undrain",
        description="Let this node take jobs again, after `cluster-node drain` or with --all after faults too.",
    )
    parser.add_argument("--all", action="store_true", help="also after faults and notices, which may come again")
    everything = parser.parse_args(arguments).all
    try:
        removed = [name for name in names() if (everything or name == OPERATOR) and remove(name)]
    except PermissionError:
        return _needs_root("undrain")
    left = names()
    said = [f"Removed: {', '.join(removed)}." if removed else "There was nothing to remove."]
    if left:
        said.append(
            f"The node stays drained by {', '.join(left)}: {sentence_of(left[0])} (undrain --all removes it)."
        )
    elif removed and Path(ROOT + SLURM).is_dir():
        until = "until" if OPERATOR in removed else "for some minutes, or until"
        said.append(f"Slurm keeps it drained {until}: scontrol update nodename=NODE state=resume")
    sys.stdout.write(" ".join(said) + "\n")
    return 1 if left else 0


def _needs_root(command: str) -> int:
    sys.stderr.write(f"cluster-node {command}: only root may do this; call it with sudo\n")
    return 1


def _user() -> str:
    return os.environ.get("SUDO_USER") or pwd.getpwuid(os.geteuid()).pw_name
