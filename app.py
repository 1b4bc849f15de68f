"""The CDK app: the two stacks of one cluster file, named with `cdk deploy --all -c cluster=<file>`."""

from pathlib import Path

import aws_cdk as cdk

from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.cluster_file import cluster_file_in, read_cluster_file
from cdk_training_cluster_stacks.foundation import FoundationStack
from cdk_training_cluster_stacks.problems import plain_errors

app = cdk.App()
with plain_errors():
    cluster = read_cluster_file(cluster_file_in(app.node.get_all_context()), relative_to=Path(__file__).parent)

    foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
    ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
    app.synth()
