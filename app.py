"""The CDK app: the two stacks of one cluster file, named with `cdk deploy --all -c cluster=<file>`."""

from pathlib import Path

from cdk_training_cluster_stacks.app import synthesize

synthesize(Path(__file__).parent)
