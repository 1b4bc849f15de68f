"""What training runs report: names that jobs, constructs and the command `training-cluster` share."""

from enum import StrEnum

RUN_DIMENSION = "Run"
"""The dimension that holds a run's name, beside the cluster's."""

REPORTS = "#reports"
"""The key of the runs' table below which the last report of each run lies, by its name."""


class RunMetric(StrEnum):
    """The metrics of a run, in the namespace of jobs; `cluster_job.metrics` in `job/` says what each is."""

    LOSS = "Loss"
    SAMPLES_PER_SECOND = "SamplesPerSecond"
    STEP_SECONDS = "StepSeconds"
    MFU = "Mfu"
    GOODPUT = "Goodput"
    LOST_SECONDS = "LostSeconds"
    COST = "CostUsd"
    COST_SHARE = "CostPercentOfCap"
    SECONDS_WITHOUT_STEP = "SecondsWithoutStep"
    SLOW_RANKS = "SlowRanks"
    CHECKPOINT_FAILURES = "CheckpointFailures"
    NON_FINITE_LOSS = "NonFiniteLoss"
    GPU_UTILIZATION = "GpuUtilization"
    LOW_UTILIZATION = "LowUtilization"
