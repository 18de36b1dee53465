"""One rank of a data-parallel run: ``ddp_worker.py RANK WORLD PORT OUT``. Also the run itself."""

import json
import os
import sys

import torch

import toclip.torch

STEPS, BATCH = 200, 8


def problem(step):
    """A batch with outliers, the same whoever asks."""
    g = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 20, generator=g, dtype=torch.double)
    noise = 10.0 * torch.randn(BATCH, 1, generator=g, dtype=torch.double)
    return x, noise * (torch.rand(BATCH, 1, generator=g) < 0.1)


def sharded(model, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(model, mesh=init_device_mesh("cpu", (world,)))


def train(rank=0, world=1, how="ddp"):
    """``ddp`` and ``fsdp`` share gradients, ``own`` does not."""
    shared = how != "own"
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1).double()
    if world > 1 and how == "fsdp":
        model = sharded(model, world)
    elif world > 1 and how == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    # Each rank's own gradient is that of half a batch.
    size = BATCH if shared else BATCH // 2
    monitor = toclip.torch.Monitor(batch_size=size, flush=7, shared=shared)
    for step in range(STEPS):
        x, y = (part[rank::world] for part in problem(step))
        optimizer.zero_grad()
        (0.5 * (model(x) - y).square()).mean().backward()
        monitor.clip_(model.parameters(), max_norm=2.0)
        optimizer.step()
    return monitor


if __name__ == "__main__":
    rank, world, port, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    found = {}
    for how in ("ddp", "own", "fsdp"):
        found[how] = train(rank, world, how).merged().to_json()
    with open(f"{out}.{rank}", "w") as file:
        json.dump(found, file)
    # The answer is on disk and every rank has it. Leaving by the front door runs the destructors of
    # gloo's threads, which have been seen to abort the process ("terminate called without an active
    # exception") on a busy machine; that is not what is tested here.
    torch.distributed.barrier()
    os._exit(0)
