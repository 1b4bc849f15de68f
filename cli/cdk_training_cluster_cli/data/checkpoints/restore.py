"""Restores a checkpoint to a directory or another prefix, and proves what it has written."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from cdk_training_cluster_cli.core.sizes import size_text
from cdk_training_cluster_cli.data.checkpoints.proof import ask_proof
from cdk_training_cluster_cli.data.checkpoints.reading import (
    Advance,
    FileProblemError,
    FileResult,
    Outcome,
    difference,
    for_each,
    pieces_of_file,
    pieces_of_object,
    result_of,
)
from cdk_training_cluster_cli.data.checkpoints.source import Source, StoredObject
from cdk_training_cluster_cli.data.checkpoints.verify import files_below
from cdk_training_cluster_cli.data.checkpoints.workplace import Workplace
from cluster_contract.checkpoints import MARKERS

_NOTHING_TO_COMPARE = "S3 keeps no checksum of it to compare with"


def restore_to_directory(
    source: Source, files: Sequence[StoredObject], target: Path, advance: Advance, *, force: bool
) -> tuple[FileResult, ...]:
    """Copy a checkpoint to a directory, which appears when all of it is there and proven.

    Until then it is in a `Workplace` beside it, where a further attempt goes on. Its markers are written last.

    Args:
        source: Where the checkpoint lies.
        files: Its files.
        target: The directory that is to be the checkpoint.
        advance: Called with the number of bytes that are done since its last call.
        force: Whether to replace what is there and differs.

    Raises:
        ValueError: There is something else at the place, or too little space.
    """
    _check_paths(files)
    work = Workplace(target)
    if target.exists() or target.is_symlink():
        found = _compare_with(source, files, target, advance)
        if found is not None and all(each.outcome is not Outcome.FAILED for each in found):
            work.clear()
            return found
        if not force:
            raise ValueError(_differs(str(target), found))
    work.check({each.path for each in files})
    _check_space(files, work.restored)
    work.make(source.url)
    results = _markers_last(files, (), lambda stored: _download(source, stored, work.restored, advance))
    if all(each.outcome is not Outcome.FAILED for each in results):
        work.finish()
    return results


def _markers_last(
    files: Sequence[StoredObject], done: Sequence[FileResult], act: Callable[[StoredObject], FileResult]
) -> tuple[FileResult, ...]:
    """Do something with each file, and with the markers only when no other file has failed."""
    results = list(done)
    for markers in (False, True):
        if any(each.outcome is Outcome.FAILED for each in results):
            break
        results += for_each([each for each in files if (each.path in MARKERS) is markers], act)
    return tuple(results)


def check_name(name: str) -> None:
    """Refuse a checkpoint whose name is no directory below another.

    Args:
        name: The checkpoint's name.

    Raises:
        ValueError: It is none.
    """
    if _leads_out(name):
        raise ValueError(f"checkpoint {name!r} cannot be a directory below another: restore it to a prefix, s3://…")


def _leads_out(text: str) -> bool:
    path = PurePosixPath(text)
    return path.is_absolute() or not path.parts or ".." in path.parts or "\0" in text or str(path) != text


def _check_paths(files: Sequence[StoredObject]) -> None:
    for stored in files:
        if _leads_out(stored.path):
            raise ValueError(f"{stored.where} cannot be a file below a directory: restore it to a prefix, s3://…")


def _compare_with(
    source: Source, files: Sequence[StoredObject], target: Path, advance: Advance
) -> tuple[FileResult, ...] | None:
    """Compare a directory that is there with the checkpoint. None: it has other files."""
    if not target.is_dir() or files_below(target) != {each.path for each in files}:
        return None

    def one(stored: StoredObject) -> FileResult:
        proof = ask_proof(source.client, stored)
        problem = difference(pieces_of_file(target / stored.path), proof, advance)
        if problem is not None or not proof.algorithm:
            raise FileProblemError(problem or _NOTHING_TO_COMPARE)
        return result_of(stored, proof)

    return for_each(files, one)


def _differs(place: str, found: Sequence[FileResult] | None) -> str:
    if found is None:
        return f"{place} is there and has other files than the checkpoint: --force replaces it"
    wrong = [each for each in found if each.outcome is not Outcome.PROVEN]
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    problem = wrong[0].problem or _NOTHING_TO_COMPARE
    return f"{place} is there and differs in {wrong[0].path} ({problem}){more}: --force replaces it"


def _check_space(files: Sequence[StoredObject], restored: Path) -> None:
    there = sum((restored / path).stat().st_size for path in files_below(restored))
    needed = sum(each.bytes for each in files) - there
    place = next(each for each in (restored, *restored.absolute().parents) if each.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise ValueError(
            f"the checkpoint needs {size_text(needed)} more at {restored}, where {size_text(free)} are free"
        )


def _download(source: Source, stored: StoredObject, restored: Path, advance: Advance) -> FileResult:
    """Write a file, behind what an earlier attempt has written of it, and prove what is on the disk then."""
    proof, path = ask_proof(source.client, stored), restored / stored.path
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_size if path.exists() else 0
    if before > stored.bytes or not proof.algorithm:
        before = 0
    for start in (before, 0):
        with path.open("r+b" if start else "wb") as file:
            file.seek(start)
            for piece in pieces_of_object(source.client, stored, start):
                file.write(piece)
                advance(len(piece))
        problem = difference(pieces_of_file(path), proof)
        if problem is None:
            advance(start)
            return result_of(stored, proof)
        if not start:
            break
    raise FileProblemError(problem or "")


def restore_to_prefix(
    source: Source, files: Sequence[StoredObject], target: Source, name: str, advance: Advance, *, force: bool
) -> tuple[FileResult, ...]:
    """Copy a checkpoint to another prefix, its marker last, and prove each copy by reading it.

    Args:
        source: Where the checkpoint lies.
        files: Its files.
        target: Where it is to lie.
        name: Its name there.
        advance: Called with the number of bytes that are done since its last call.
        force: Whether to replace what is there and differs.

    Raises:
        ValueError: There is something else at the place.
    """
    prefix = f"{target.place.prefix}{name}/"
    place = f"s3://{target.place.bucket}/{prefix}"
    if place == f"{source.url}{name}/" and not any(each.version for each in files):
        raise ValueError(f"{place} is the checkpoint itself: name another place")
    there = target.objects(prefix)
    others = sorted(set(there) - {each.path for each in files})
    if others:
        raise ValueError(
            f"{place} is there and has {others[0]}, which the checkpoint has not: delete it, or name another place"
        )
    kept = {} if force else _already_there(source, files, target, there, place)
    if force:
        # What is half replaced is no complete checkpoint.
        for path in MARKERS & set(there):
            target.client.delete_object(Bucket=target.place.bucket, Key=there[path].key)
    waiting = [each for each in files if each.path not in kept]
    return _markers_last(waiting, tuple(kept.values()), lambda stored: _copy(source, stored, target, prefix, advance))


def _already_there(
    source: Source, files: Sequence[StoredObject], target: Source, there: Mapping[str, StoredObject], place: str
) -> Mapping[str, FileResult]:
    """Return what has been copied before; refuse what differs."""
    candidates = [each for each in files if each.path in there]
    results = for_each(candidates, lambda stored: _prove(source, stored, target, there[stored.path], lambda _: None))
    wrong = [each for each in results if each.outcome is not Outcome.PROVEN]
    if wrong:
        raise ValueError(_differs(place, wrong))
    return {each.path: each for each in results}


def _copy(source: Source, stored: StoredObject, target: Source, prefix: str, advance: Advance) -> FileResult:
    key = f"{prefix}{stored.path}"
    target.client.copy(
        CopySource=stored.asked,  # type: ignore[arg-type]  # its members are those of a CopySource
        Bucket=target.place.bucket,
        Key=key,
        ExtraArgs={"CopySourceIfMatch": f'"{stored.etag}"'},
    )
    head = target.client.head_object(Bucket=target.place.bucket, Key=key)
    copied = StoredObject(
        path=stored.path,
        bucket=target.place.bucket,
        key=key,
        bytes=head["ContentLength"],
        etag=head["ETag"].strip('"'),
    )
    return _prove(source, stored, target, copied, advance)


def _prove(
    source: Source, stored: StoredObject, target: Source, copied: StoredObject, advance: Advance
) -> FileResult:
    """Read a copy, and compare it with the checksum that S3 keeps of the original."""
    proof = ask_proof(source.client, stored)
    problem = difference(pieces_of_object(target.client, copied), proof, advance)
    if problem is not None:
        raise FileProblemError(f"{copied.where}: {problem}")
    return result_of(stored, proof)
