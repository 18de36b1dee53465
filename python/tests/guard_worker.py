"""One rank of a guarded run: ``guard_worker.py RANK WORLD MEETING OUT``. Also the run itself."""

import math

import torch
import two_ranks

import toclip.torch

STEPS, BATCH = 90, 8
KINDS = ("ddp", "fsdp1", "fsdp2", "tensor parallel")


def problem(step):
    """A batch, the same whoever asks; every fortieth is corrupt, and one is not finite."""
    g = torch.Generator().manual_seed(step)
    x, y = torch.randn(BATCH, 12, generator=g), torch.randn(BATCH, 4, generator=g)
    return x, y, math.nan if step == 77 else 300.0 if step % 40 == 39 else 1.0


def distributed(kind, model, world):
    from torch.distributed.device_mesh import init_device_mesh

    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    mesh = init_device_mesh("cpu", (world,))
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(model, mesh=mesh)
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    # The last layer stays as it is: its gradients are plain tensors, on no mesh.
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def whole(weight):
    return weight.full_tensor() if hasattr(weight, "full_tensor") else weight


def train(kind, rank=0, world=1):
    """Counts, factors and final weights of a run."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)]
    model = torch.nn.Sequential(*layers)
    if world > 1:
        model = distributed(kind, model, world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, foreach=False)
    guard = toclip.torch.Guard(action="skip", multiple=10.0, warmup=10)
    guard.attach(optimizer, model if kind == "fsdp1" else None)
    factors = []
    for step in range(STEPS):
        x, y, scale = problem(step)
        if kind != "tensor parallel":  # whose ranks see the same batch
            x, y = x[rank::world], y[rank::world]
        optimizer.zero_grad()
        ((model(x) - y).square().mean() * scale).backward()
        optimizer.step()
        factors.append(guard.last.factor)
    if kind == "fsdp1" and world > 1:
        from torch.distributed.fsdp import FullyShardedDataParallel

        with FullyShardedDataParallel.summon_full_params(model):
            found = [p.detach().clone() for p in model.parameters()]
    else:
        found = [whole(p.detach()) for p in model.parameters()]
    flat = torch.cat([p.reshape(-1) for p in found]).tolist()
    return {"counts": guard.counts, "factors": factors, "weights": flat}


if __name__ == "__main__":
    two_ranks.take_part(lambda rank, world: {kind: train(kind, rank, world) for kind in KINDS})
