"""What a training job does when a node of its cluster fails: `Run` in the script, `cluster-run` around it."""

from cluster_job.environment import Cluster, Environment, Launcher, read_environment
from cluster_job.run import Run

__all__ = ["Cluster", "Environment", "Launcher", "Run", "read_environment"]
