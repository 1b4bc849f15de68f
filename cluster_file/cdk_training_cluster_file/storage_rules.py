"""What the file system, the data sets and the checkpoints of a cluster file demand of each other."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from cdk_training_cluster.storage.dataset import contradictions, overlaps
from cdk_training_cluster.storage.file_system_rules import file_system_problems
from cdk_training_cluster_file.checkpoints import CheckpointSettings
from cdk_training_cluster_file.model import BESIDE_EXISTING, DatasetSettings, FileSystemSettings
from cdk_training_cluster_file.parts import Complaint, Part, beside_its_place, entries, right_settings, valid


def datasets_need_a_file_system(file: Part) -> Iterator[Complaint]:
    """A dataset is a directory of the file system."""
    if file.get("datasets") and not get_close_matches("file_system", file):  # a misspelt one is there
        yield (
            ("datasets",),
            "must have a file system to appear in; add one, such as file_system: {storage_capacity_gib: 1200}",
        )


def an_existing_file_system_stays_as_it_is(file: Part) -> Iterator[Complaint]:
    """Nothing here changes a file system that exists already."""
    part = file.get("file_system")
    if isinstance(part, Mapping) and "existing" in part:
        for name in part:
            if name in FileSystemSettings.model_fields and name not in BESIDE_EXISTING:
                yield (
                    ("file_system", name),
                    "must be left out beside existing, which names a file system that is made already; change that "
                    "with aws fsx update-file-system, or leave existing out",
                )


def the_file_system_is_what_fsx_makes(file: Part) -> Iterator[Complaint]:
    """What FSx says of a file system's settings beside each other is in the library's table."""
    part, datasets = file.get("file_system"), file.get("datasets")
    if not isinstance(part, Mapping) or "existing" in part:
        return
    settings, wrong = right_settings(FileSystemSettings, part)
    if settings is None or wrong & {"deployment_type", "storage_type"}:
        return
    links = (len(datasets) if isinstance(datasets, list) else 0) + (_exported(file) is not None)
    for problem in file_system_problems(settings.to_settings(links)):
        name = str(problem.setting[0])
        if name == "datasets":
            yield (name if datasets else "checkpoints",), problem.message
        elif name not in wrong:
            yield ("file_system", *([name] if name in part else [])), beside_its_place(problem)


def datasets_are_what_fsx_takes(file: Part) -> Iterator[Complaint]:
    """What FSx says of data sets and checkpoints together is in the library's table; what one contradicts, too."""
    for at, part in entries(file, "datasets"):
        settings = valid(DatasetSettings, part)
        for setting, sentences in ({} if settings is None else contradictions(settings)).items():
            yield from ((("datasets", at, setting), sentence) for sentence in sentences)
    read = [(at, part, _dataset(at, part)) for at, part in entries(file, "datasets")]
    made = [(at, part, dataset) for at, part, dataset in read if dataset is not None]
    exported = _exported(file)
    for problem in overlaps([*(dataset for *_, dataset in made), *([] if exported is None else [exported])]):
        match problem.setting:
            case ("datasets", int() as number, str()) if number == len(made):
                yield ("checkpoints",), problem.message
            case ("datasets", int() as number, str() as name):
                at, part, _ = made[number]
                yield ("datasets", at, *([name] if name in part else [])), problem.message
            case _:
                yield problem.setting, problem.message


def _exported(file: Part) -> DatasetSettings | None:
    """Return the exported directory of checkpoints as the data set that it is to FSx."""
    settings = (
        valid(CheckpointSettings, file["checkpoints"]) if isinstance(file.get("checkpoints"), Mapping) else None
    )
    exported = None if settings is None else settings.directory_settings
    if exported is None:
        return None
    bucket = exported.bucket or "checkpoints-of-the-foundation"
    return DatasetSettings(file_system_path=exported.file_system_path, prefix=exported.prefix, bucket=bucket)


def exported_checkpoints_need_a_file_system(file: Part) -> Iterator[Complaint]:
    """What is exported is a directory of the file system."""
    if _exported(file) is not None and not get_close_matches("file_system", file):
        yield (
            ("checkpoints",),
            "must have a file system to be exported from; add one, such as file_system: {storage_capacity_gib: 1200}"
            ", or write checkpoints: {express: {}}",
        )


def _dataset(at: int, part: Part) -> DatasetSettings | None:
    """Read a data set; where it is not known what it links, it links what no other does."""
    apart = {"file_system_path": part.get("file_system_path"), "bucket": f"not-known-{at}"}
    return valid(DatasetSettings, part) or valid(DatasetSettings, apart)
