"""Where the files that Slurm runs lie on the nodes."""

from typing import Final

from cluster_contract import node_files

FOLDER: Final = node_files.SLURM
"""Where they lie on the nodes; outside of the scripts' folder, which a repeated set-up empties."""

PROLOG: Final = f"{FOLDER}/prolog.sh"
"""Runs as root on each node of a job before the job: what it refuses is drained and the job requeued."""

EPILOG: Final = f"{FOLDER}/epilog.sh"
"""Runs as root on each node of a job after the job."""

HEALTH_CHECK: Final = f"{FOLDER}/health-check.sh"
"""Runs as root on every node, again and again: drains a node where a file asks for it or devices are missing."""
