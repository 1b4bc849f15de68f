"""Builds the stacks of a cluster file in memory."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import App

from cdk_training_cluster.validation.templates.checks import collect_refusals
from cdk_training_cluster_file import ClusterFile, with_places
from cdk_training_cluster_file.problems import Location, sentences_of
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack

# What of a file makes too much of something that AWS limits for a stack or a function as a whole.
_CAUSES: tuple[tuple[str, Location], ...] = (
    (r"settings of cluster_hydration must fit", ("datasets",)),
    (r"act of the health policy must", ("health", "act")),
    (r"settings of cluster_billing must fit", ("budget",)),
    (r"budget\.prices must state", ("budget", "prices")),
    (r"settings of \w+ must fit|stack .* would have .* resources|The template of a stack", ("node_groups",)),
)


@contextmanager
def built_stacks(cluster: ClusterFile, *, synthesize: bool = False) -> Iterator[tuple[App, ClusterStack]]:
    """Yield the app and the stack with the nodes; nothing is written that stays.

    Args:
        cluster: What the file says.
        synthesize: Whether templates are made and checked afterwards, as `cdk synth` does. Default: - they are not.

    Raises:
        ValueError: A construct refuses its settings, or a template breaks a rule.
        RuntimeError: CDK refuses a template.
    """
    with TemporaryDirectory() as directory:
        # What CDK's own validation finds ends no synthesis.
        app = App(outdir=directory, builtin_cloud_formation_validation=False)
        refusals = collect_refusals(app)
        foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
        yield app, ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
        if synthesize:
            app.synth()
        if refusals:
            raise ValueError("\n".join(refusals))


@contextmanager
def refusals_in(file: str | Path, *, relative_to: Path | None = None) -> Iterator[None]:
    """Say of what constructs and CDK refuse which file it is in and, where one part of it is the cause, the line.

    Args:
        file: The cluster file. Errors name it as it is given here.
        relative_to: The directory that a relative path starts from. Default: - the current directory.

    Raises:
        ClusterFileError: A construct or CDK refuses what the file says.
    """
    try:
        yield
    except (ValueError, RuntimeError) as error:
        sentences = sentences_of(error)
        if sentences is None:
            raise
        raise with_places(file, map(_placed, sentences), relative_to=relative_to) from error


def _placed(sentence: str) -> tuple[Location, str]:
    where = next((where for pattern, where in _CAUSES if re.match(pattern, sentence)), ())
    # The place says the setting's name.
    return where, sentence.removeprefix(f"{'.'.join(map(str, where))} ")
