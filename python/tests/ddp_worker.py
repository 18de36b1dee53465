"""One rank of a data-parallel run: ``ddp_worker.py RANK WORLD MEETING OUT``. Also the run itself."""

import torch
import two_ranks

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


def sharded_first(model, by_parameter):
    """FSDP's first version, which keeps parameters in one flat piece or one by one."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(
        model, device_id=torch.device("cpu"), use_orig_params=by_parameter
    )


def train(rank=0, world=1, how="ddp"):
    """A monitor of the run, and its norms: ``ddp`` and ``fsdp`` share gradients, ``own`` does not."""
    shared, first = how != "own", how.startswith("fsdp1")
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1).double()
    if first:  # whose own norm is in single precision
        model = model.float()
    if world > 1 and how == "fsdp":
        model = sharded(model, world)
    elif world > 1 and first:
        model = sharded_first(model, how.endswith("by parameter"))
    elif world > 1 and how == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    # Each rank's own gradient is that of half a batch.
    size = BATCH if shared else BATCH // 2
    monitor = toclip.torch.Monitor(batch_size=size, flush=7, shared=shared)
    norms = []
    for step in range(STEPS):
        x, y = (part[rank::world].float() if first else part[rank::world] for part in problem(step))
        optimizer.zero_grad()
        (0.5 * (model(x) - y).square()).mean().backward()
        norms.append(monitor.clip_(model if first else model.parameters(), max_norm=2.0))
        optimizer.step()
    return monitor, [float(norm) for norm in norms]


def refused():
    """The error message for parameters that are shards."""
    model = sharded_first(torch.nn.Linear(20, 1), by_parameter=True)
    model(problem(0)[0].float()).sum().backward()
    try:
        toclip.torch.Monitor().clip_(model.parameters(), 1.0)
    except ValueError as error:
        return str(error)


def ranks(rank, world):
    """What the monitor says of the two ranks' gradients, and the same computed from both halves of each batch."""
    torch.manual_seed(0)
    inner = torch.nn.Linear(20, 1).double()
    model = torch.nn.parallel.DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    monitor = toclip.torch.Monitor(flush=7)
    monitor.compare_ranks(model, every=5)
    expected = []
    for step in range(60):
        halves = [[part[k::world] for part in problem(step)] for k in range(world)]
        if step % 5 == 0:
            losses = [(0.5 * (inner(x) - y).square()).mean() for x, y in halves]
            grads = [torch.autograd.grad(loss, list(inner.parameters())) for loss in losses]
            flat = [torch.cat([part.reshape(-1) for part in each]) for each in grads]
            other = flat[1 - rank]
            expected.append([float(other.norm()), float(other @ flat[rank])])
        x, y = halves[rank]
        optimizer.zero_grad()
        (0.5 * (model(x) - y).square()).mean().backward()
        monitor.clip_(model.parameters(), max_norm=2.0)
        optimizer.step()
    monitor.flush()
    found = monitor._series.compared.tolist()
    return {"found": found, "expected": expected}


def everything(rank, world):
    found = {}
    for how in ("ddp", "own", "fsdp"):
        found[how] = train(rank, world, how)[0].merged().to_json()
    for how in ("fsdp1", "fsdp1 by parameter"):
        found[how] = train(rank, world, how)[1]
    found["refused"] = refused()
    found["ranks"] = ranks(rank, world)
    return found


if __name__ == "__main__":
    two_ranks.take_part(everything)
