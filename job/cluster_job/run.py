"""A training run as its script sees it: steps, shares of the global batch, checkpoints, metrics."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cluster_job.environment import Environment, read_environment

State = Mapping[str, Any]
"""What a checkpoint holds by name: objects with `state_dict()` and `load_state_dict()`, or plain values."""


class Run:
    """One training run: what resumes after a failure, at any number of nodes.

    Everything but the global batch comes from the environment. Without a cluster it works on one machine, and
    metrics go to standard output.

    Args:
        global_batch: The samples of one step over all ranks; it stays the same at any world size.
        name: The run's name. Default: - what `cluster-run`, Slurm or Kubernetes calls the job.
        checkpoints: Where checkpoints go: a directory or an S3 address. Default: - what the cluster says, or
            `checkpoints/` in the working directory.
        flops_per_sample: The floating-point operations for one sample, forward and backward, from which the
            model's FLOPs utilization (MFU) follows. Default: - MFU is not reported.
        cost_cap_usd: The USD the run may cost; beyond them an alarm's metric rises. Default: - no cap.
    """

    def __init__(
        self,
        global_batch: int,
        *,
        name: str | None = None,
        checkpoints: str | None = None,
        flops_per_sample: float | None = None,
        cost_cap_usd: float | None = None,
    ) -> None:
        if global_batch < 1:
            raise ValueError(f"global_batch must be at least 1 sample, got {global_batch}")
        self.global_batch = global_batch
        self.environment: Environment = read_environment()
        self.name = name or self.environment.run
        self.checkpoints = checkpoints
        self.flops_per_sample = flops_per_sample
        self.cost_cap_usd = cost_cap_usd

    def steps(self, count: int) -> Iterator[int]:
        """Yield the numbers of the steps that are left, from the one after the last checkpoint.

        Args:
            count: How many steps the whole run has.
        """
        raise NotImplementedError

    def share(self, step: int) -> range:
        """Return the indices of the samples that this rank takes of a step: each sample goes to exactly one rank.

        Args:
            step: The step's number.
        """
        raise NotImplementedError

    def report(self, *, loss: float, samples: int) -> None:
        """Report a finished step.

        Args:
            loss: The step's loss on this rank.
            samples: How many samples this rank took.
        """
        raise NotImplementedError

    def should_checkpoint(self) -> bool:
        """Return whether to save now: the same on every rank, when it is due, and at once when a node drains."""
        raise NotImplementedError

    def checkpoint(self, state: State) -> None:
        """Save the state in the background, sharded, with a marker when it is whole.

        Args:
            state: What to save, by name.
        """
        raise NotImplementedError

    def restore(self, state: State) -> bool:
        """Load the last whole checkpoint into the state; return whether there was one.

        Args:
            state: What was saved, by name.
        """
        raise NotImplementedError

    def replicas(self, state_dict: Callable[[], Any], load_state_dict: Callable[[Any], None]) -> object:
        """Go on without a lost node: survivors keep training, and a newcomer gets the state from a peer (torchft).

        Args:
            state_dict: Returns the state to give.
            load_state_dict: Takes the state from a peer.
        """
        raise NotImplementedError
