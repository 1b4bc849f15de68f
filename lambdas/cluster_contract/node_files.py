"""Where the files lie through which the programs of a node work together.

It runs on nodes too, with Python 3.9 and its standard library.
"""

RUN = "/run/cdk-training-cluster"
"""What a reboot removes."""

DRAIN = f"{RUN}/drain"
"""A folder: with any file in it, the node takes no new job, and a running job saves a checkpoint and ends.

A file is named for what drains the node. Its first line is a sentence, its second a JSON object with `code`,
`action`, `deadline` (ISO 8601, or null) and `at`.
"""

HEALTH = f"{RUN}/health.json"
"""What the watchdog of the node sees now."""

HEALTH_SOCKET = f"{RUN}/nvhcd.sock"
"""Where NVIDIA's Resiliency Extension asks for the node's health: `--ft-node-health-check-endpoint`."""

FILE_SYSTEM_LATE = f"{RUN}/file-system-late"
"""Is there since the file system did not answer before a job; gone once it answers before or under one."""

AFFINITY = f"{RUN}/affinity.json"
"""Which CPUs and network cards are near each GPU."""

STATE = "/var/lib/cdk-training-cluster"
"""What a reboot leaves."""

SET_UP = f"{STATE}/bootstrap.json"
"""At which step the set-up of the node is, or failed; after a boot, what each boot makes anew."""

SET_UP_ENDED = f"{STATE}/complete"
"""Is there once all was set up; what the verification found after that is another matter."""

VERIFICATION = f"{STATE}/verify.json"
"""The last verification of the node."""

SPOOL = f"{STATE}/reports"
"""A folder: reports of the node that have not been sent yet."""

SPOOL_IN_MEMORY = f"{RUN}/reports"
"""A folder: likewise, those for which the disk had no room."""

FAULT_HISTORY = f"{STATE}/faults.json"
"""The faults for which the node was drained in the last day."""

SLURM = "/opt/cdk-training-cluster/slurm"
"""A folder: the scripts that Slurm runs, and their settings. It is there under Slurm alone."""

JOB = "/etc/cdk-training-cluster/job.json"
"""What jobs may know: the cluster, the node group, the region, the runs' table and where checkpoints go."""

OPERATOR = "operator"
"""The name of the file in `DRAIN` that an operator's `cluster-node drain` writes."""
