"""The CDK app of one cluster file: what `app.py` and `training-cluster deploy` have the CDK CLI run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from cdk_training_cluster_file import cluster_file_in, read_cluster_file
from cdk_training_cluster_file.problems import plain_errors
from cdk_training_cluster_stacks.building import refusals_in
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack

# A wheel has the CDK's feature flags beside this module; in a checkout they lie at its top.
_FLAGS = tuple(parent / "cdk.json" for parent in (Path(__file__).parent, Path(__file__).parents[2]))


def synthesize(relative_to: Path, flags: Mapping[str, Any] | None = None) -> None:
    """Make the two stacks of the cluster file that the context names, or end with a sentence for each mistake.

    Args:
        relative_to: The directory that a relative path of the file starts from.
        flags: The CDK's feature flags, whatever a cdk.json says. Default: - those of the cdk.json that the CLI reads
    """
    app = cdk.App(post_cli_context=flags)
    with plain_errors():
        file = cluster_file_in(app.node.get_all_context())
        cluster = read_cluster_file(file, relative_to=relative_to)
        with refusals_in(file, relative_to=relative_to):
            foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
            ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
            app.synth()


def feature_flags() -> dict[str, Any]:
    """Return the feature flags that this library is tested with."""
    settings = json.loads(next(path for path in _FLAGS if path.exists()).read_text(encoding="utf-8"))
    return dict(settings["context"])


if __name__ == "__main__":
    synthesize(Path(), feature_flags())
