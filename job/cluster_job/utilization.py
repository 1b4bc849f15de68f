"""Whether the accelerators of a run are used too little while its steps go on.

Two measures, since neither says all. The driver's utilization is the share of time in which any kernel ran: it falls
where GPUs wait for samples, and reads 100 % where they wait for one another in NCCL. The model's FLOPs utilization
falls in both cases, and needs `flops_per_sample`. What cannot be read says nothing.

https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html
"""

from collections import deque
from collections.abc import Sequence
from statistics import fmean

from cluster_job.readings import Gpu

LEAST_GPU_PERCENT = 70.0
"""As Amazon SageMaker's rule LowGPUUtilization, below which most of its readings lie.

https://docs.aws.amazon.com/sagemaker/latest/dg/debugger-built-in-profiler-rules.html
"""

LEAST_MFU_PERCENT = 20.0
"""Half of the 38 to 43 % that are published of 8,192 and 16,384 H100: https://arxiv.org/abs/2407.21783, table 4."""

_KEPT_READINGS = 40  # ten minutes of them: one alone covers a second at most, and may lie between two steps
_FEWEST_READINGS = 20


class GpuUse:
    """The utilization of one node's GPUs in the last ten minutes of steps."""

    def __init__(self) -> None:
        self._percents: deque[float] = deque(maxlen=_KEPT_READINGS)

    def add(self, gpus: Sequence[Gpu]) -> None:
        """Add a reading; one in which a GPU says nothing, as in MIG mode, is left out.

        Args:
            gpus: The job's GPUs on the node.
        """
        percents = [gpu.percent for gpu in gpus if gpu.percent is not None]
        if percents and len(percents) == len(gpus):
            self._percents.append(fmean(percents))

    @property
    def percent(self) -> float | None:
        """The average. None: there are too few readings."""
        return fmean(self._percents) if len(self._percents) >= _FEWEST_READINGS else None


def is_known(gpu_percent: float | None, mfu: float | None) -> bool:
    """Return whether either measure says anything."""
    return gpu_percent is not None or mfu is not None


def low_utilization(gpu_percent: float | None, mfu: float | None) -> str | None:
    """Return in a sentence that GPUs are used too little. None: they are not, or it is not known.

    Args:
        gpu_percent: The average utilization of the run's GPUs.
        mfu: The model's FLOPs utilization in the median step, in percent.
    """
    if gpu_percent is not None and gpu_percent < LEAST_GPU_PERCENT:
        return f"GPUs run kernels for {gpu_percent:.0f} % of the time, and {LEAST_GPU_PERCENT:.0f} % is the least"
    if mfu is not None and mfu < LEAST_MFU_PERCENT:
        return f"GPUs do {mfu:.0f} % of the FLOPs that they can (MFU), and {LEAST_MFU_PERCENT:.0f} % is the least"
    return None
