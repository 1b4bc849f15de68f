"""The CDK app: the two stacks of one cluster file, named with `cdk deploy --all -c cluster=<file>`."""

import gc
from pathlib import Path

# The process ends within seconds, and holds no memory that is worth a quarter of a second of them.
gc.disable()

from cdk_training_cluster_stacks.app import synthesize  # noqa: E402 - the imports are most of what is collected

synthesize(Path(__file__).parent)
