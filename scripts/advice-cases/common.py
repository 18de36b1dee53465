"""Small models, data and one training loop for the logs with known causes."""

import argparse
import json
import math
import pathlib
import pydoc_data.topics

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)


class Gpt(nn.Module):
    """A causal transformer on bytes."""

    def __init__(self, width=48, layers=2, heads=4, context=48):
        super().__init__()
        self.token = nn.Embedding(256, width)
        self.place = nn.Parameter(0.02 * torch.randn(context, width))
        block = lambda: nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList(block() for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 256)
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.token(tokens) + self.place[:length]
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.out(self.norm(x))


def mlp(inputs=64, width=64, outputs=10, depth=2, norm=False):
    """A ReLU network; with `norm`, batch normalisation makes each layer independent of its scale."""
    parts = []
    for layer in range(depth):
        parts.append(nn.Linear(inputs if layer == 0 else width, width))
        parts += [nn.BatchNorm1d(width)] if norm else []
        parts.append(nn.ReLU())
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def cnn(channels=8, outputs=10):
    """A convolutional network for images of 12 x 12."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * 9, outputs),
    )


def text(batch=16, context=48, seed=0):
    """Batches of bytes from the reference texts that Python ships with."""
    source = "\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
    data = torch.tensor(list(source.encode()), dtype=torch.long)
    generator = torch.Generator().manual_seed(seed)

    def batch_at(step):
        starts = torch.randint(len(data) - context - 1, (batch,), generator=generator)
        rows = torch.stack([data[s : s + context + 1] for s in starts])
        return rows[:, :-1], rows[:, 1:]

    return batch_at


def clusters(batch=32, inputs=64, classes=10, samples=4000, noise=1.5, seed=0, shape=None):
    """Batches of a classification problem: Gaussian clusters with two centres a class."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(2 * classes, inputs, generator=generator)
    which = torch.randint(2 * classes, (samples,), generator=generator)
    x = centres[which] + noise * torch.randn(samples, inputs, generator=generator)
    y = which % classes

    def batch_at(step):
        chosen = torch.randint(samples, (batch,), generator=generator)
        return (x[chosen] if shape is None else x[chosen].view(batch, *shape)), y[chosen]

    return batch_at


def cross_entropy(model, batch, reduction="mean"):
    outputs = model(batch[0])
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), batch[1].reshape(-1), reduction=reduction)


def random_bytes(batch, weight=1.0):
    """A loss for a batch replaced by random bytes, `weight` times as heavy."""
    return lambda model, _: weight * cross_entropy(model, (torch.randint(256, batch[0].shape), torch.randint(256, batch[1].shape)))


def constant(rate, warmup=0):
    return lambda step: rate * min(1.0, step / warmup) if warmup else rate


def cosine(rate, steps, warmup=100, floor=0.0):
    """Linear warm-up, then half a cosine down to `floor` times the rate."""
    def at(step):
        if step <= warmup:
            return rate * step / warmup
        share = (step - warmup) / (steps - warmup)
        return rate * (floor + (1 - floor) * (1 + math.cos(math.pi * share)) / 2)
    return at


def norm_of(model):
    """The gradient norm before clipping; infinite or NaN if a gradient is."""
    return torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf).item()


def clip_to(model, threshold):
    if threshold is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), threshold)


def train(model, batch_at, optimizer, rate, steps, clip=None, loss_at=None, first=1, skip_non_finite=False, log_after_clipping=False, stop_at=math.inf):
    """Trains and returns the rows of the log. `loss_at(step)` may give another loss for a step.
    Stops early where the mean loss of ten steps is above `stop_at`."""
    rows = []
    for step in range(first, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad()
        loss = ((loss_at(step) if loss_at else None) or cross_entropy)(model, batch_at(step))
        loss.backward()
        norm = norm_of(model)
        clip_to(model, clip)
        norm = norm_of(model) if log_after_clipping else norm
        if math.isfinite(norm) or not skip_non_finite:
            optimizer.step()
        rows.append(row(step, loss.item(), norm, rate(step)))
        if sum(r["loss"] for r in rows[-10:]) > 10 * stop_at:
            break
    return rows


def row(step, loss, norm, rate):
    number = lambda x: float(f"{x:.6g}")
    return {"step": step, "loss": number(loss), "grad_norm": number(norm), "lr": number(rate)}


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def write_cases(folder, cases):
    """Writes cases.json with a case a line, the format check.py reads.
    Where the steps are "non-finite", they are those of the log whose norm is infinite or NaN."""
    for name, case in cases.items():
        if case.get("steps") == "non-finite":
            rows = map(json.loads, (folder / name).read_text().splitlines()) if (folder / name).exists() else []
            case["steps"] = [r["step"] for r in rows if not math.isfinite(r["grad_norm"])]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    (folder / "cases.json").write_text("{\n" + lines + "\n}\n")


def adam(model, betas=(0.9, 0.95), decay=0.0):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=betas, weight_decay=decay)


def sgd(model, momentum=0.9, decay=0.0):
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=momentum, weight_decay=decay)


CASES = {}
BAD = ["diverged", "diverging", "spikes"]


def case(name, **expected):
    """Registers a function that returns a log, as rows or as a string in its format, with what a good
    answer to it finds."""
    def register(make):
        CASES[name] = ({**expected, "max_rate_factor": 1.0}, make)
        return make
    return register


def main(seed):
    """Writes the registered logs and their cases.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", help="logs to write, without their endings; all if none is named")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, (_, make) in CASES.items():
        if not given.names or name.rsplit(".", 1)[0] in given.names:
            torch.manual_seed(seed)
            log = make()
            if isinstance(log, str):
                (given.out / name).write_text(log)
            else:
                write_jsonl(given.out / name, log)
            print(name, flush=True)
    write_cases(given.out, {name: expected for name, (expected, _) in CASES.items()})
