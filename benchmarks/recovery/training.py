"""A small training job as users write it, which says in a file what it does and when."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from cluster_job import Run

WIDTH = int(os.environ.get("WIDTH", "1024"))
LAYERS = int(os.environ.get("LAYERS", "10"))
GLOBAL_BATCH = int(os.environ.get("GLOBAL_BATCH", "24"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
REPLICAS = int(os.environ.get("REPLICAS", "0"))
END = Path(os.environ["END"])
EACH = bool(os.environ.get("EACH"))


def event(name: str, **details: object) -> None:
    """Append what happened to the job's file."""
    line = json.dumps({"at": time.time(), "event": name, "node": os.environ.get("NODE"), **details})
    file = os.open(os.environ["EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def sample(index: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a sample of the data set: a pure function of its index."""
    x = torch.randn(WIDTH, generator=torch.Generator().manual_seed(index))
    return x, x[:16].sum().tanh()


def fingerprint(model: torch.nn.Module) -> float:
    """Return a number that differs when a parameter does."""
    signs = torch.Generator().manual_seed(1)
    with torch.no_grad():
        return sum(
            float((p.double().reshape(-1) * torch.randn(p.numel(), generator=signs)).sum())
            for p in model.parameters()
        )


def sum_gradients(model: torch.nn.Module) -> None:
    """Add up the gradients of all ranks of the process group, if there is one."""
    if dist.is_initialized():
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, summed in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient))


def last_step(step: int) -> bool:
    """Return whether the bench wants the job to end with this step."""
    return END.exists() and step >= int(END.read_text())


def main() -> None:
    """Train until the bench ends the job."""
    torch.set_num_threads(1)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(7)
    layers: list[torch.nn.Module] = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    state = {"model": model, "optimizer": optimizer}
    run = Run(global_batch=GLOBAL_BATCH, name="bench", checkpoints=os.environ["CHECKPOINTS"])

    def load(given: dict[str, Any]) -> None:
        for name, part in state.items():
            part.load_state_dict(given[name])

    replicas = None
    if REPLICAS:
        replicas = run.replicas(
            lambda: {name: part.state_dict() for name, part in state.items()},
            load,
            sizes=range(1, REPLICAS + 1),
            patience=float(os.environ.get("PATIENCE", "60")),
        )
    event("restored", found=run.restore(state))
    present = 0
    for step in run.steps(10**6):
        if replicas and replicas.manager.num_participants() != present:
            present = replicas.manager.num_participants()
            event("joined", present=present)
        optimizer.zero_grad()
        total = torch.zeros(())
        for index in run.share(step):
            x, y = sample(index)
            loss = torch.nn.functional.mse_loss(model(x)[0], y) / GLOBAL_BATCH
            loss.backward()
            total += loss.detach()
        active = replicas.active if replicas else dist.get_world_size() if dist.is_initialized() else 1
        if replicas:
            sum_gradients(model)  # within the replica
            replicas.sum_gradients(model.parameters())
            first, committed = replicas.place.rank == 0, replicas.commit()
        else:
            sum_gradients(model)
            first, committed = run.environment.rank == 0, True
        if not committed:
            event("again", step=step)
            continue
        optimizer.step()
        if first:
            event("step", step=step, active=active, print=fingerprint(model) if EACH or last_step(step) else None)
        if run.should_checkpoint() or ((step + 1) % SAVE_EVERY == 0 and not replicas):
            run.checkpoint(state)
        if last_step(step):
            break
    event("ended")


if __name__ == "__main__":
    main()
    os._exit(0)
