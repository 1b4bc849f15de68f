"""Writes the generated folder, and never over what its user has changed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STAMP = ".generated.json"
"""The file that says what was generated: paths with the SHA-256 of their texts."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was done to a folder.

    Attributes:
        changed: The files that were made or changed.
        removed: Those that were generated before, and are no longer.
    """

    changed: Sequence[str]
    removed: Sequence[str]


def write_folder(
    directory: Path, generated: Mapping[str, str], once: Mapping[str, str], *, force: bool = False
) -> Written:
    """Write the files of a folder.

    Args:
        directory: The folder.
        generated: What is generated anew each time, by path.
        once: What is written where it is missing and is the user's from then on.
        force: Whether files that the user has changed are overwritten.

    Raises:
        ValueError: A generated file was changed by hand, a file of another origin is in the way, or one cannot be
            written or removed.
    """
    before = _read_stamp(directory)
    if not force:
        _refuse_changed(directory, generated, before)
    gone = sorted(path for path in before if path not in generated)
    try:
        changed = [
            path
            for path, text in sorted({**generated, **_missing(directory, once)}.items())
            if _write(directory / path, text)
        ]
        for path in gone:
            (directory / path).unlink(missing_ok=True)
        stamp = {path: _digest(text) for path, text in sorted(generated.items())}
        _write(directory / STAMP, json.dumps(stamp, indent=2) + "\n")
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be written: {error.strerror}") from None
    return Written(changed=changed, removed=gone)


def _missing(directory: Path, once: Mapping[str, str]) -> Mapping[str, str]:
    return {path: text for path, text in once.items() if not (directory / path).exists()}


def _refuse_changed(directory: Path, generated: Mapping[str, str], before: Mapping[str, str]) -> None:
    changed = []
    for path in sorted({*generated, *before}):
        file = directory / path
        if not file.is_file():
            continue
        now = _digest(file.read_text(encoding="utf-8", errors="replace"))
        expected = {before.get(path), _digest(generated[path]) if path in generated else None}
        if now not in expected:
            changed.append(path)
    if changed:
        raise ValueError(
            f"{directory} has files that were changed by hand: {', '.join(changed)}. Put the changes into its "
            "overlay folder, which is never overwritten, or lose them with --force"
        )


def _read_stamp(directory: Path) -> Mapping[str, str]:
    file = directory / STAMP
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(_is_inside(path) for path in content):
        raise ValueError(f"{file} is not what training-cluster manifests has written: remove it and generate anew")
    return {str(path): str(digest) for path, digest in content.items()}


def _is_inside(path: object) -> bool:
    return isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts


def _write(path: Path, text: str) -> bool:
    """Write a file, and tell whether that changed it."""
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
