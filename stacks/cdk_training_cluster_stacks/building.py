"""Builds the stacks of a cluster file in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from aws_cdk import App

from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.cluster_file import ClusterFile
from cdk_training_cluster_stacks.foundation import FoundationStack


@contextmanager
def built_stacks(cluster: ClusterFile) -> Iterator[tuple[App, ClusterStack]]:
    """Yield the app and the stack with the nodes; nothing is written that stays.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings.
    """
    with TemporaryDirectory() as directory:
        app = App(outdir=directory)
        foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
        yield app, ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
