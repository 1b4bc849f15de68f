"""Trains a small transformer on random tokens with FSDP: what `jobs/fsdp-*` run until this is your program.

With CUDA it uses the GPU of its rank, else the CPU.
https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
"""

# The images of jobs have these.
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

STEPS, BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS = 100, 8, 256, 4096, 512, 4


def main() -> None:
    """Run as one process of many."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, dropout=0.0) for _ in range(LAYERS)]
    model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), *layers, nn.Linear(WIDTH, VOCABULARY)).to(device)
    for layer in (*layers, model):
        fully_shard(layer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    random = torch.Generator().manual_seed(dist.get_rank())
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        tokens = torch.randint(VOCABULARY, (BATCH, TOKENS), generator=random).to(device)
        # It learns to say which token it was given: no data are needed, and the loss falls.
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and dist.get_rank() == 0:
            speed = step * BATCH * TOKENS * dist.get_world_size() / (time.perf_counter() - start)
            print(f"step {step}: loss {loss.item():.3f}, {speed:,.0f} tokens/s", flush=True)  # noqa: T201
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
