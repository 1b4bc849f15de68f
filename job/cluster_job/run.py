"""A training run as its script sees it: steps, shares of the global batch, checkpoints, metrics."""

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from cluster_job.checkpoints import KEPT, KEPT_DAILY, KEPT_HOURLY, CheckpointFolder
from cluster_job.drain import drain_request
from cluster_job.environment import UNNAMED, Environment, read_environment
from cluster_job.exits import Exit
from cluster_job.handover import Handover
from cluster_job.holding import Hold
from cluster_job.progress import StepFile
from cluster_job.reporter import Reporter
from cluster_job.saving import Saver
from cluster_job.sending import make_hold, make_reporter
from cluster_job.sharing import ANY_SIZE, share
from cluster_job.work import Work

if TYPE_CHECKING:
    from cluster_job.replicas import Replicas

State = MutableMapping[str, Any]
"""What a checkpoint holds by name: objects with `state_dict()` and `load_state_dict()`, or plain values."""


class Run:
    """One training run: what resumes after a failure, at any number of nodes.

    Everything but the global batch comes from the environment. Without a cluster it works on one machine, and
    metrics go to standard output.

    Args:
        global_batch: The samples of one step over all ranks; it stays the same at any world size.
        name: The run's name. Default: - what `cluster-run`, Slurm or Kubernetes calls the job.
        checkpoints: Where checkpoints go: a directory that all nodes share. Default: - what the cluster says, or
            `checkpoints/` in the working directory.
        keep: The number of newest whole checkpoints that are kept, at least 1. Default: - 2.
        keep_hourly: The number of the last hours of which the first checkpoint is kept, too. Default: - 2.
        keep_daily: The same of days in UTC. Default: - 2. The directory needs room for the sum of the three, and for
            one more while it is written.
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
        keep: int = KEPT,
        keep_hourly: int = KEPT_HOURLY,
        keep_daily: int = KEPT_DAILY,
        flops_per_sample: float | None = None,
        cost_cap_usd: float | None = None,
    ) -> None:
        if global_batch < 1:
            raise ValueError(f"global_batch must be at least 1 sample, got {global_batch}")
        if keep < 1:
            raise ValueError(f"keep must be at least 1 checkpoint, got {keep}")
        for setting, value in (("keep_hourly", keep_hourly), ("keep_daily", keep_daily)):
            if value < 0:
                raise ValueError(f"{setting} must be at least 0 checkpoints, got {value}")
        self.global_batch = global_batch
        self.environment: Environment = read_environment()
        self.name = name or self.environment.run
        if self.environment.cluster is not None and self.name == UNNAMED:
            raise ValueError(
                "the run has no name, and would go on from the checkpoint of any other without one: set RUN_NAME, or "
                "give cluster-run --run NAME or Run(name=…)"
            )
        self.checkpoints = checkpoints
        self.keep = keep
        self.keep_hourly = keep_hourly
        self.keep_daily = keep_daily
        self.flops_per_sample = flops_per_sample
        self.cost_cap_usd = cost_cap_usd
        self._count = 0
        self._step = 0
        self._shared: int | None = None
        self._has_reported = False
        self._loss: SupportsFloat | None = None
        self._replicas: Replicas | None = None

    def steps(self, count: int) -> Iterator[int]:
        """Yield the numbers of the steps that are left, from the one after the last checkpoint.

        After a checkpoint for a drain the script ends with exit code 75: what comes after its last step is left to
        the start that goes on.

        Args:
            count: How many steps the whole run has.

        Raises:
            SystemExit: A node is drained, and the state is saved; or another start trains the run.
            RuntimeError: There is a checkpoint, and `restore` was not called; or this was called before.
        """
        if self._count:
            raise RuntimeError("run.steps() was called before: count the steps of all epochs in one loop")
        self._count = count
        self._step = self._saver.first_step() if find_spec("torch") else 0
        self._hold.begin(lambda take: take())
        progress = StepFile.of(os.environ if self.environment.local_rank == 0 else {})
        progress.begin(self._step)
        self._reporter.start()
        try:
            while self._done < count and not self._ended:
                step = self._replicas.start() if self._replicas else self._step
                if step >= count:  # a peer gave the state of the end
                    self._reporter.finish(complete=True)
                    return
                self._step = step + 1
                self._shared, self._has_reported, self._loss = None, False, None
                self._reporter.begin(step)
                yield step
                if not self._has_reported and self._done > step:  # replicas may do it again
                    self._report(step, loss=None, samples=None)
                progress.done(self._done)
            if "_saver" in vars(self):
                with self._reporter.saving():
                    self._saver.finish()
        except BaseException:  # the script failed or left the loop: it is not kept waiting for a last report
            self._reporter.stop()
            raise
        finally:
            self._hold.finish()
        self._reporter.finish(complete=self._done >= count)
        if self._done < count:
            print(f"A node is drained: the run goes on with step {self._done}", file=sys.stderr)  # noqa: T201
            raise SystemExit(Exit.AGAIN)

    @property
    def _done(self) -> int:
        return self._replicas.done if self._replicas else self._step

    @property
    def _ended(self) -> bool:
        return "_saver" in vars(self) and self._saver.draining

    def share(self, step: int, *, rank: int | None = None, world_size: int | None = None) -> range:
        """Return the indices of the samples that this rank takes of a step: each sample goes to exactly one rank.

        They count through the whole run, so that a data set of `n` samples is read as `data[index % n]`.

        Args:
            step: The step's number.
            rank: The rank among those that take different samples. Default: - this process's: with tensor or
                pipeline parallelism give the rank of the data-parallel group.
            world_size: How many of them there are. Default: - all processes.
        """
        if self._replicas and rank is None:
            found = self._replicas.share(step)
        else:
            found = share(
                step,
                global_batch=self.global_batch,
                rank=self.environment.rank if rank is None else rank,
                world_size=self.environment.world_size if world_size is None else world_size,
            )
        self._shared = len(found)
        return found

    def computing(self) -> AbstractContextManager[None]:
        """Say where this rank's own work of a step is, until ranks exchange something: `with run.computing(): …`.

        Ranks that are slower than the others, and what slows a run down, are found by that alone: in synchronous
        training all have the same step time. With several passes in a step their times add up.
        """
        return self._reporter.computing()

    def alive(self) -> None:
        """Say that the job is at work though it does no step, such as in an evaluation of more than five minutes."""
        self._reporter.alive()

    def report(self, *, loss: SupportsFloat, samples: int) -> None:
        """Report a finished step; once a minute rank 0 sends the metrics of the run.

        Args:
            loss: The step's loss on this rank; a tensor is only read once a minute, since a GPU is waited for then.
            samples: How many samples this rank took.
        """
        self._has_reported = True
        if samples:  # the mean of no samples is no number, and no sign of trouble
            self._loss = getattr(loss, "detach", lambda: loss)()
        self._report(self._step - 1, loss=loss, samples=samples)

    def _report(self, step: int, *, loss: SupportsFloat | None, samples: int | None) -> None:
        share = self._shared if self._shared is not None else len(self.share(step))
        place = self._replicas.place if self._replicas else None
        self._reporter.done(step, loss=loss, samples=share if samples is None else samples, share=share, place=place)

    @cached_property
    def _reporter(self) -> Reporter:
        work = Work(
            name=self.name,
            global_batch=self.global_batch,
            flops_per_sample=self.flops_per_sample,
            cost_cap_usd=self.cost_cap_usd,
        )
        return make_reporter(work, self.environment, is_alone=self._replicas is None)

    @cached_property
    def _hold(self) -> Hold:
        return make_hold(self.name, self.environment, is_alone=self._replicas is None)

    def should_checkpoint(self) -> bool:
        """Return whether to save now: the same on every rank, when it is due, and when a node drains or joins.

        Call it once after each step, on every rank. After steps of less than a second it waits for nothing: the
        ranks agree in the background, and the answer comes with the next step.
        """
        return self._saver.should_checkpoint(last=self._last)

    def checkpoint(self, state: State) -> None:
        """Save the state in the background, sharded, with a marker when it is whole.

        When the run ends, after its last step or for a drain, it returns when the checkpoint is durable. After a step
        whose reported loss is no finite number on any rank nothing is written, and a line and an alarm say so.

        Args:
            state: What to save, by name.
        """
        loss = None if self._loss is None else float(self._loss)
        with self._reporter.saving():
            self._saver.checkpoint(state, self._done, last=self._last, loss=loss)

    def restore(self, state: State, *, step: int | None = None, trusted: bool = False) -> bool:
        """Load the newest whole checkpoint that all ranks can read into the state; return whether there was one.

        A checkpoint that is damaged is kept under another name, and the next older one is loaded.

        Args:
            state: What was saved, by name.
            step: The step to go back to: newer checkpoints are kept under other names. A run goes back to a step
                once, so that the argument may stay in the script. Default: - the newest.
            trusted: Whether to read values that an earlier release wrote as a pickle, which can run code of its
                writer. Default: - such a checkpoint is an error.

        Raises:
            ValueError: There is no whole checkpoint of this step.
            RuntimeError: There are checkpoints, and none can be read.
            SystemExit: Another start trains the run.
        """
        is_loaded = self._saver.restore(state, step=step, trusted=trusted)
        if self._replicas:
            self._replicas.resume(self._saver.next_step)
        return is_loaded

    def replicas(
        self,
        state_dict: Callable[[], Any],
        load_state_dict: Callable[[Any], None],
        *,
        sizes: range = ANY_SIZE,
        patience: float = 60,
    ) -> "Replicas":
        """Go on without a lost node: survivors keep training, and a newcomer gets the state from a peer (torchft).

        Call it before `restore` and `steps`, in each process of a replica: a node, or a few that hold one copy of
        the model together.

        Args:
            state_dict: Returns the state to give.
            load_state_dict: Takes the state from a peer.
            sizes: How many replicas may take samples: `range(2, 9, 2)` for 2, 4, 6 or 8. More are hot spares, which
                follow each step and take the place of a lost one. Default: - any number.
            patience: The seconds that a replica may be slower than the others in a step before they go on without
                it.
        """
        if find_spec("torchft") is None:
            raise RuntimeError("Replicas need torchft: pip install 'cdk-training-cluster-job[torchft]'")
        if not os.environ.get("TORCHFT_LIGHTHOUSE"):
            raise ValueError(
                "Replicas ask torchft's Lighthouse who is there: set TORCHFT_LIGHTHOUSE to its address, such as "
                "http://10.0.0.10:29510"
            )
        os.environ.setdefault("RUST_LOG", "warn")  # torchft logs each step otherwise
        from cluster_job.replicas import Replicas  # noqa: PLC0415 - torchft is an extra

        self._replicas = Replicas(
            state_dict,
            load_state_dict,
            global_batch=self.global_batch,
            environment=self.environment,
            sizes=sizes,
            patience=patience,
        )
        return self._replicas

    @property
    def _last(self) -> bool:
        return self._done == self._count

    @cached_property
    def _saver(self) -> Saver:
        if find_spec("torch") is None:
            raise RuntimeError("Checkpoints need torch, and it is not installed: pip install torch")
        from cluster_job.torch_ranks import TorchRanks  # noqa: PLC0415 - torch is slow, and not always there
        from cluster_job.torch_storage import TorchStorage  # noqa: PLC0415

        group = TorchRanks()
        if group.world_size != self.environment.world_size:
            raise RuntimeError(
                f"The launcher started {self.environment.world_size} ranks, and torch.distributed knows "
                f"{group.world_size}: call torch.distributed.init_process_group() before the run is used"
            )
        folder = CheckpointFolder(
            self._place() / self.name,
            keep=self.keep,
            keep_hourly=self.keep_hourly,
            keep_daily=self.keep_daily,
            token=self._hold.begin(group.from_first),
        )
        ranks = self._replicas.ranks(group) if self._replicas else group
        saver = Saver(
            folder,
            ranks=ranks,
            storage=TorchStorage(folder, group),
            drained=lambda: drain_request() is not None,
            handover=Handover.of(os.environ),
            saved=self._reporter.saved,
            refused=self._reporter.refused,
        )
        if self._replicas:
            self._replicas.resume(saver.next_step)
        return saver

    def _place(self) -> Path:
        cluster, variables = self.environment.cluster, os.environ
        places = [self.checkpoints, variables.get("CHECKPOINT_DIR"), variables.get("CHECKPOINT_URL")]
        if cluster is not None:
            places += [cluster.checkpoint_dir, cluster.checkpoint_url]
        place = next((one for one in places if one), "checkpoints")
        if "://" in place:
            raise ValueError(
                f"checkpoints must be a directory, got {place}: mount the bucket with Mountpoint for Amazon S3 and "
                "give Run(checkpoints=…) its directory"
            )
        return Path(place)
