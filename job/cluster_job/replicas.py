"""Replicas that go on without a lost one, on torchft: the survivors, newcomers and hot spares of one run.

Each replica holds a whole copy of the model: a node, or a few that share one. At each step torchft's Lighthouse says
which replicas there are; a newcomer gets the state from a peer's memory, and a step in which one was lost is done
again by the others. https://meta-pytorch.org/torchft/
"""

import socket
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torchft import Manager, ProcessGroupGloo, ProcessGroupNCCL

from cluster_job.environment import Environment
from cluster_job.saving import Wish
from cluster_job.sharing import active_replicas, share
from cluster_job.torch_ranks import TorchRanks
from cluster_job.work import Place

BUCKET_BYTES = 64 * 2**20
"""How much of the gradients is summed in one call."""

LIGHTHOUSE_RETRIES = 10
"""How often the Lighthouse is asked again before the replica ends: it may be restarted."""


class Replicas:
    """This process's replica among the others.

    Timeouts are ordered, so that each layer gives up before the one above it: a collective after `patience`, a
    request within the replica after twice that, a quorum after four times. The Lighthouse's `--heartbeat_timeout_ms`
    must be at most `patience`, its `--join_timeout_ms` at least twice: one that is slow but alive is waited for.
    https://github.com/pytorch/torchtitan/issues/2899

    Args:
        state_dict: Returns the state to give.
        load_state_dict: Takes the state from a peer.
        global_batch: The samples of one step over all ranks.
        environment: This process's place in its replica.
        sizes: How many replicas may take samples.
        patience: The seconds that a replica may be slower than the others in a step.
    """

    def __init__(
        self,
        state_dict: Callable[[], Any],
        load_state_dict: Callable[[Any], None],
        *,
        global_batch: int,
        environment: Environment,
        sizes: range,
        patience: float,
    ) -> None:
        if not sizes or sizes[0] < 1 or sizes.step < 1:
            raise ValueError(f"sizes must be a rising range of at least one replica, got {sizes}")
        if patience < 1:
            raise ValueError(f"patience must be at least 1 second, got {patience}")
        self._global_batch = global_batch
        self._environment = environment
        self._sizes = sizes
        self._wish = self._agreed = 0
        collective = timedelta(seconds=patience)
        cuda = torch.cuda.is_available()
        self._device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")
        address, port = self._store()
        self._group = (ProcessGroupNCCL if cuda else ProcessGroupGloo)(timeout=collective)
        self.manager = Manager(
            pg=self._group,
            state_dict=state_dict,
            load_state_dict=load_state_dict,
            min_replica_size=sizes[0],
            use_async_quorum=False,  # shares follow from who is there
            timeout=2 * collective,
            quorum_timeout=4 * collective,
            connect_timeout=collective,
            rank=environment.rank,
            world_size=environment.world_size,
            store_addr=address,
            store_port=port,
            replica_id=environment.node,
            hostname=socket.gethostname(),
            quorum_retries=LIGHTHOUSE_RETRIES,
        )
        """torchft's own manager, for its wrappers such as `torchft.DistributedDataParallel`."""

    def _store(self) -> tuple[str | None, int | None]:
        """Return where the replica's processes meet; a single process needs no launcher for that."""
        if self._environment.world_size > 1:
            return None, None  # torchrun's
        self._own_store = dist.TCPStore(socket.gethostname(), 0, is_master=True, wait_for_workers=False)
        return socket.gethostname(), self._own_store.port

    @property
    def done(self) -> int:
        """How many steps are done: each counts on all replicas."""
        return int(self.manager.current_step())

    def resume(self, step: int) -> None:
        """Begin with a step: that after the checkpoint which was restored.

        Args:
            step: The step's number.
        """
        self.manager.load_state_dict({"step": step, "batches_committed": 0})

    def start(self) -> int:
        """Wait for the quorum of a step, take the state from a peer if this replica is behind; return the step."""
        while True:
            self.manager.start_quorum()
            if self.manager.errored() is None and self.active:
                return self.done
            time.sleep(0 if self.active else 1)  # too few: others are on their way
            self.manager.should_commit()

    @property
    def active(self) -> int:
        """How many replicas take samples of this step; 0: too few are there."""
        return active_replicas(self.manager.num_participants(), self._sizes)

    @property
    def replica(self) -> int:
        """The number of this replica in this step; from `active` on it is a hot spare."""
        return int(self.manager.participating_rank() or 0)

    @property
    def place(self) -> Place:
        """This process's place among the ranks of all replicas; a hot spare's rank is beyond them, and it costs."""
        ranks = self._environment.world_size
        rank = self.replica * ranks + self._environment.rank
        nodes = int(self.manager.num_participants()) * self._environment.nodes
        return Place(rank=rank, world_size=self.active * ranks, nodes=nodes)

    def share(self, step: int) -> range:
        """Return the indices of the samples that this rank takes of a step; a hot spare takes none.

        Args:
            step: The step's number.
        """
        place = self.place
        if place.rank >= place.world_size:
            return range(0)
        return share(step, global_batch=self._global_batch, rank=place.rank, world_size=place.world_size)

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Add up the gradients of all replicas in place; a hot spare's are zero.

        With the loss of a step divided by the global batch, their sum is the gradient of the whole batch's mean.

        Args:
            parameters: The model's parameters.
        """
        gradients = [_gradient(parameter) for parameter in parameters if parameter.requires_grad]
        agreed = self._sum(gradients)
        self._agreed = agreed or 0
        if agreed is None:
            # Breaks the connections to the others: one that exchanges nothing with the lost replica would wait
            # `patience` for this one. The next quorum connects all again, since the step is not committed.
            self._group.abort()

    def _sum(self, gradients: list[torch.Tensor]) -> int | None:
        """Return the highest wish, or None after the first failure.

        One collective at a time: two replicas would wait for each other in the next, each with its connections open.
        """
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            self.manager.allreduce(flat, reduce_op=dist.ReduceOp.SUM).wait()
            if self.manager.errored():
                return None
            for gradient, summed in zip(bucket, flat.split([one.numel() for one in bucket]), strict=True):
                gradient.copy_(summed.view_as(gradient))
        wish = torch.tensor([self._wish], device=self._device)
        self.manager.allreduce(wish, reduce_op=dist.ReduceOp.MAX).wait()
        return None if self.manager.errored() else int(wish.item())

    def commit(self) -> bool:
        """Return whether the step counts: then the optimizer is to step. If not, the step is done again."""
        committed = bool(self.manager.should_commit())
        if not committed:
            self._agreed = 0
            print(  # noqa: T201 - the job's log
                f"Step {self.manager.current_step()} is done again: {self.manager.errored()}".splitlines()[0],
                file=sys.stderr,
            )
        return committed

    def ranks(self, group: TorchRanks) -> "ReplicaRanks":
        """Return the ranks of all replicas, for checkpoints.

        Args:
            group: The ranks of this replica.
        """
        return ReplicaRanks(self, group)

    def agree(self, wish: int) -> int:
        """Return what the replicas agreed on with the gradients of this step, and give a wish to the next.

        Args:
            wish: This replica's wish.
        """
        agreed, self._agreed, self._wish = self._agreed, 0, wish
        return agreed


class ReplicaRanks:
    """The ranks of all replicas, of which the first writes checkpoints.

    Args:
        replicas: The replicas.
        group: The ranks of this replica.
    """

    def __init__(self, replicas: Replicas, group: TorchRanks) -> None:
        self._replicas = replicas
        self._group = group
        self._wish = 0

    @property
    def rank(self) -> int:
        """This rank's number: 0 is the first of the first replica."""
        return self._replicas.replica * self._group.world_size + self._group.rank

    @property
    def world_size(self) -> int:
        """How many ranks a replica has."""
        return self._group.world_size

    @property
    def writes(self) -> bool:
        """Whether this rank holds a part of what is written: the first replica writes."""
        return self._replicas.replica == 0

    def leaves(self, drained: bool) -> bool:  # noqa: ARG002 - another node of this replica may be drained
        """Return whether this rank ends for a drain: its replica does, and the others go on.

        Args:
            drained: Whether this node is drained.
        """
        return self._wish == Wish.DRAIN

    def from_first(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever rank 0 makes
        """Return on every rank of this replica what `make` returns on its first.

        Args:
            make: Called on the first rank only.
        """
        return self._group.from_first(make)

    def all(self, value: bool) -> bool:
        """Return whether a value is true on all ranks of this replica.

        Args:
            value: This rank's value.
        """
        return self._group.all(value)

    def agree(self, wish: int) -> int:
        """Return the highest wish of all ranks of all replicas.

        Args:
            wish: This rank's wish.
        """
        self._wish = self._group.agree(wish)
        return self._replicas.agree(self._wish)


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    gradient = parameter.grad
    return gradient.to_local() if hasattr(gradient, "to_local") else gradient


def _buckets(gradients: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Return the gradients in groups of one kind and not too many bytes, the same on every replica."""
    buckets: list[list[torch.Tensor]] = []
    room = 0
    for gradient in gradients:
        size = gradient.numel() * gradient.element_size()
        if not buckets or size > room or gradient.dtype != buckets[-1][0].dtype:
            buckets.append([])
            room = BUCKET_BYTES
        buckets[-1].append(gradient)
        room -= size
    return buckets
