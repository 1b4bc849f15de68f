"""Turns a file into a `HyperPodJob`, or into every problem it has."""

from pathlib import Path

from pydantic import ValidationError

from cdk_training_cluster_file.explaining import explain
from cdk_training_cluster_file.problems import ClusterFileError, Problem
from cdk_training_cluster_file.reading import parsed
from cdk_training_cluster_manifests.hyperpod.job import HyperPodJob


def read_job(file: Path) -> HyperPodJob:
    """Read a job's file.

    Args:
        file: The file.

    Raises:
        ClusterFileError: The file cannot be read, or anything is wrong in it: everything that is, at once.
    """
    source = parsed(str(file), file)
    found = [Problem(message=message, where=where, line=line) for where, line, message in source.written_twice]
    try:
        if not found:
            return HyperPodJob.model_validate(source.value)
    except ValidationError as error:
        found += [
            Problem(message=message, where=where, line=source.line(where) if where else None)
            for where, message in explain(error, HyperPodJob)
        ]
    raise ClusterFileError(str(file), found)
