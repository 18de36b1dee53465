"""Writes the logs of small models with known causes: small.py --out FOLDER [NAME...]"""

import copy
import math
import random

import torch

from common import (
    BAD,
    adam,
    case,
    clip_to,
    clusters,
    cnn,
    constant,
    cosine,
    cross_entropy,
    Gpt,
    main,
    mlp,
    norm_of,
    random_bytes,
    row,
    sgd,
    text,
    train,
)


@case("sgd-healthy.jsonl", cause="MLP, SGD with momentum at a good rate, unclipped: nothing is wrong",
      flags=["--clip", "none", "--optimizer", "sgd"], findings=["healthy"],
      forbidden=BAD + ["norm_scale", "always_clipped", "norms_after_clipping", "non_finite_steps"],
      actions=["keep", "guard"], max_fires=0.1)
def sgd_healthy():
    model = mlp()
    return train(model, clusters(noise=2.5), sgd(model), constant(0.02, 50), 1500)


@case("sgd-diverging.jsonl", cause="GPT, SGD with momentum clipped at 1, the rate grows by 1% a step: the loss climbs, finite, until the run is stopped",
      batch=16, flags=["--clip", "1", "--optimizer", "sgd"], findings=["diverging"],
      forbidden=["healthy", "diverged", "finished"], actions=["lower_rate", "roll_back"])
def sgd_diverging():
    model = Gpt()
    return train(model, text(), sgd(model), lambda s: 0.3 * 1.01 ** max(0, s - 300), 1000, clip=1.0, stop_at=7.0)


BAD_SHARD = list(range(701, 713))


@case("adam-slow-spike.jsonl", cause="GPT, Adam (0.9, 0.999), unclipped; twelve batches in a row are random bytes with 30 times the loss: loss and norm jump, and the loss is still above its old level 690 steps later",
      batch=16, flags=["--clip", "none", "--optimizer", "adam"], findings=["spikes"], steps=BAD_SHARD, max_steps=250,
      forbidden=["healthy", "diverged", "norm_scale"], actions=["guard"], threshold=[1.0, 14], max_fires=0.15)
def adam_slow_spike():
    model = Gpt()
    batch_at = text()
    bad = random_bytes(batch_at(0), 30.0)
    return train(model, batch_at, adam(model, (0.9, 0.999)), constant(3e-3, 100), 1400, loss_at=lambda s: bad if s in BAD_SHARD else None)


@case("one-spike-no-recovery.jsonl", cause="MLP, SGD; one batch had inputs 40 times too large and random labels: every ReLU of the second layer died and the loss stayed where it was thrown",
      flags=["--clip", "none", "--optimizer", "sgd"], findings=["spikes"], steps=[700], max_steps=150,
      forbidden=["healthy", "diverged"], actions=["guard", "roll_back", "clip"], max_fires=0.2)
def one_spike_no_recovery():
    model = mlp()
    batch_at = clusters(noise=2.5)

    def with_outlier(step):
        x, y = batch_at(step)
        return (40 * x, torch.randint(10, y.shape)) if step == 700 else (x, y)
    return train(model, with_outlier, sgd(model), constant(0.02, 50), 1500)


@case("clip-never-fires.jsonl", cause="GPT, AdamW, healthy; the threshold of 100 is far above every norm",
      batch=16, flags=["--clip", "100", "--optimizer", "adam"], findings=["never_clipped"],
      forbidden=BAD + ["always_clipped", "norm_scale", "norms_after_clipping"],
      actions=["keep", "guard", "remove"], max_fires=0.1)
def clip_never_fires():
    model = Gpt()
    return train(model, text(seed=3), adam(model), cosine(2e-3, 2500, floor=0.1), 1300, clip=100.0)


@case("accumulation-summed.jsonl", cause="GPT, AdamW clipped at 1; 16 accumulated gradients were summed instead of averaged: norms 16 times too large",
      batch=64, flags=["--clip", "1", "--optimizer", "adam"], findings=["always_clipped"],
      forbidden=BAD + ["never_clipped", "norms_after_clipping"], actions=["fix_loss", "keep", "guard"], max_fires=0.2)
def accumulation_summed():
    model = Gpt(context=32)
    batch_at, optimizer, rate, rows = text(4, 32), adam(model), cosine(2e-3, 1000), []
    for step in range(1, 401):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        losses = [cross_entropy(model, batch_at(step)) for _ in range(16)]
        for loss in losses:
            loss.backward()
        norm = norm_of(model)
        clip_to(model, 1.0)
        optimizer.step()
        rows.append(row(step, sum(loss.item() for loss in losses) / 16, norm, rate(step)))
    return rows


def scaled(model, batch_at, optimizer, rate, steps, clip, dynamic):
    """Mixed precision whose gradients are clipped and logged before the loss scale is removed."""
    scale, good, rows = 65536.0, 0, []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss = cross_entropy(model, batch_at(step))
        (loss * scale).backward()
        if dynamic:  # as half precision would hold them
            for p in model.parameters():
                p.grad = p.grad.half().float()
        norm = norm_of(model)
        if math.isfinite(norm):
            clip_to(model, clip)
            for p in model.parameters():
                p.grad /= scale
            optimizer.step()
            good += 1
        rows.append(row(step, loss.item(), norm, rate(step)))
        if dynamic and not math.isfinite(norm):
            scale, good = scale / 2, 0
        elif dynamic and good == 150:
            scale, good = scale * 2, 0
    return rows


@case("loss-scale-constant.jsonl", cause="GPT, AdamW clipped at 1 before a constant loss scale of 65,536 was removed: the logged norms are 65,536 times too large",
      batch=16, flags=["--clip", "1", "--optimizer", "adam"], findings=["norm_scale", "always_clipped"],
      forbidden=BAD, actions=["fix_loss", "fix_logging"])
def loss_scale_constant():
    model = Gpt()
    return scaled(model, text(), adam(model), cosine(2e-3, 1500), 1000, 1.0, False)


@case("loss-scale-dynamic.jsonl", cause="GPT, AdamW clipped at 1 before a dynamic loss scale was removed: norms of about 100,000 that halve and double, infinite where half precision overflowed",
      batch=16, flags=["--clip", "1", "--optimizer", "adam"], findings=["norm_scale", "non_finite_steps"], steps="non-finite", max_steps=60,
      forbidden=["diverged", "diverging"], actions=["fix_loss", "fix_logging"])
def loss_scale_dynamic():
    model = Gpt()
    return scaled(model, text(seed=1), adam(model), cosine(2e-3, 1500), 1200, 1.0, True)


@case("heavy-tail.jsonl", cause="regression on rare tokens with Student-t targets (2.2 degrees of freedom), SGD, batches of 2: the norms have a heavy tail at every step",
      batch=2, flags=["--clip", "none", "--optimizer", "sgd"], findings=["heavy_tail"],
      forbidden=["diverged", "diverging", "norms_after_clipping", "norm_scale"], actions=["guard", "clip"], max_fires=0.5)
def heavy_tail():
    words = torch.distributions.Categorical(1.0 / torch.arange(1, 301))
    noise = torch.distributions.StudentT(2.2)
    truth = torch.randn(300)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(300, 16, mode="mean"), torch.nn.Linear(16, 1))

    def batch_at(step):
        bags = words.sample((2, 8))
        return bags, 3 * truth[bags].mean(1) + noise.sample((2,))
    squared = lambda step: lambda m, b: (m(b[0]).squeeze(1) - b[1]).square().mean()
    return train(model, batch_at, sgd(model, 0.0), constant(0.005, 50), 2000, loss_at=squared)


@case("norm-drift-healthy.jsonl", cause="MLP with batch normalisation and weight decay, AdamW: the weights shrink, so that the norms rise throughout while the loss falls",
      flags=["--clip", "none", "--optimizer", "adam"], findings=["drift"],
      forbidden=BAD, actions=["keep", "guard"], max_fires=0.2)
def norm_drift_healthy():
    model = mlp(norm=True)
    return train(model, clusters(noise=3.0, batch=64), adam(model, decay=1.0), cosine(3e-3, 2000, floor=0.3), 2000)


@case("finished-cosine.jsonl", cause="GPT, AdamW clipped at 5, healthy; the rate has decayed to zero and the loss is flat",
      batch=16, flags=["--clip", "5", "--optimizer", "adam"], findings=["finished"],
      forbidden=BAD + ["always_clipped", "norm_scale", "norms_after_clipping"], actions=["keep", "guard"], max_fires=0.1)
def finished_cosine():
    model = Gpt()
    return train(model, text(seed=5), adam(model, decay=0.1), cosine(3e-3, 1500), 1500, clip=5.0)


@case("resumed-repeats.jsonl", cause="GPT, AdamW clipped at 5, healthy; killed at step 640 and resumed from the checkpoint of step 500, so that 140 steps are logged twice",
      batch=16, flags=["--clip", "5", "--optimizer", "adam"], findings=["healthy"],
      forbidden=BAD + ["always_clipped", "subsampled", "non_finite_steps"], actions=["keep"])
def resumed_repeats():
    model = Gpt()
    optimizer, rate, batch_at = adam(model), cosine(2e-3, 2500), text(seed=6)
    rows = train(model, batch_at, optimizer, rate, 500, clip=5.0)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    rows += train(model, batch_at, optimizer, rate, 640, clip=5.0, first=501)
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    return rows + train(model, batch_at, optimizer, rate, 1200, clip=5.0, first=501)


@case("short.jsonl", cause="GPT, AdamW clipped at 1, stopped after 40 steps, within the warm-up: too little to judge",
      batch=16, flags=["--clip", "1", "--optimizer", "adam"], findings=[],
      forbidden=BAD + ["norm_scale", "finished", "heavy_tail", "norms_after_clipping"], actions=["cannot_tell", "keep"])
def short():
    model = Gpt()
    return train(model, text(seed=7), adam(model), cosine(2e-3, 1500), 40, clip=1.0)


@case("no-loss-column.jsonl", cause="GPT, AdamW clipped at 5, healthy; the loss was not logged",
      batch=16, flags=["--clip", "5", "--optimizer", "adam"], findings=[],
      forbidden=BAD + ["norm_scale", "norms_after_clipping", "non_finite_steps"], actions=["keep", "cannot_tell"])
def no_loss_column():
    model = Gpt()
    rows = train(model, text(seed=8), adam(model), cosine(2e-3, 2500), 1200, clip=5.0)
    return [{k: v for k, v in r.items() if k != "loss"} for r in rows]


@case("reinforce.jsonl", cause="policy gradient on a bandit with contexts, Adam clipped at 0.5: the loss is noise around zero, of both signs, and the reward rises",
      flags=["--clip", "0.5", "--optimizer", "adam"], findings=[],
      forbidden=["diverged", "diverging", "norm_scale", "finished", "norms_after_clipping"], actions=["keep", "guard", "cannot_tell"], max_fires=0.3)
def reinforce():
    model, teacher, mean = mlp(16, 32, 8), torch.randn(16, 8), [0.0]

    def loss(m, x):
        choice = torch.distributions.Categorical(logits=m(x))
        action = choice.sample()
        reward = (x @ teacher).gather(1, action[:, None]).squeeze(1) + torch.randn(len(x))
        advantage = reward - mean[0]
        mean[0] = 0.95 * mean[0] + 0.05 * reward.mean().item()
        return -(choice.log_prob(action) * advantage).mean() / 10
    return train(model, lambda s: torch.randn(32, 16), adam(model, (0.9, 0.999)), constant(1e-3), 1500, clip=0.5, loss_at=lambda s: loss)


@case("overfit-vanishing.jsonl", cause="MLP, SGD clipped at 5, 200 samples learned by heart: loss and norms fall by a factor of more than 100",
      flags=["--clip", "5", "--optimizer", "sgd"], findings=["drift"],
      forbidden=BAD + ["always_clipped", "norm_scale"], actions=["keep", "guard", "remove"], max_fires=0.2)
def overfit_vanishing():
    model = mlp(width=128)
    return train(model, clusters(noise=1.5, samples=200), sgd(model), constant(0.02, 50), 2000, clip=5.0)


BAD_LABELS = [402, 777, 778, 1190, 1501]


@case("bad-batches-clipped.jsonl", cause="MLP, SGD clipped at 5; the inputs were 10 times too large and the labels random at five steps: the threshold held them",
      flags=["--clip", "5", "--optimizer", "sgd"], findings=["spikes"], steps=BAD_LABELS, max_steps=60,
      forbidden=["diverged", "diverging", "always_clipped", "never_clipped", "norm_scale"], actions=["keep"])
def bad_batches_clipped():
    model = mlp()
    batch_at = clusters(noise=2.5)

    def with_bad(step):
        x, y = batch_at(step)
        return (10 * x, torch.randint(10, y.shape)) if step in BAD_LABELS else (x, y)
    return train(model, with_bad, sgd(model), constant(0.02, 50), 1800, clip=5.0)


@case("nan-at-the-end.jsonl", cause="GPT, AdamW clipped at 1, healthy until the loss was made NaN at step 996, and with it the weights: the last five losses are NaN",
      batch=16, flags=["--clip", "1", "--optimizer", "adam"], findings=["diverged"],
      forbidden=["healthy", "finished"], actions=["roll_back", "lower_rate"])
def nan_at_the_end():
    model = Gpt()
    broken = lambda m, b: cross_entropy(m, b) * float("nan")
    return train(model, text(seed=9), adam(model), cosine(2e-3, 2500), 1000, clip=1.0, loss_at=lambda s: broken if s == 996 else None)


@case("large-warm-up.jsonl", cause="GPT with large initial weights, AdamW clipped at 5, warm-up of 200 steps: the norms are huge there and ordinary afterwards",
      batch=16, flags=["--clip", "5", "--optimizer", "adam"], findings=["healthy"],
      forbidden=BAD + ["norm_scale", "always_clipped"], actions=["keep"])
def large_warm_up():
    model = Gpt()
    torch.nn.init.normal_(model.out.weight, std=1.0)
    return train(model, text(seed=10), adam(model), cosine(3e-3, 2500, warmup=200), 1500, clip=5.0)


@case("one-row-an-epoch.jsonl", cause="CNN, Adam unclipped, healthy; one row for each 40 steps, with their means, as a log by epochs has",
      flags=["--clip", "none", "--optimizer", "adam"], findings=["subsampled"],
      forbidden=BAD + ["norm_scale", "always_clipped"], actions=["keep", "guard", "cannot_tell"], max_fires=0.2)
def one_row_an_epoch():
    model = cnn()
    rows = train(model, clusters(inputs=144, noise=3.0, shape=(1, 12, 12)), adam(model, (0.9, 0.999)), constant(1e-3), 2400)
    mean = lambda part, name: sum(r[name] for r in part) / len(part)
    epochs = [rows[i : i + 40] for i in range(0, len(rows), 40)]
    return [row(e[-1]["step"], mean(e, "loss"), mean(e, "grad_norm"), e[-1]["lr"]) for e in epochs]


CORRUPT = sorted(random.Random(4).sample(range(150, 1500), 45))


@case("corrupt-3-percent.jsonl", cause="GPT, AdamW unclipped; 3% of the batches, at random, are random bytes with 60 times the loss",
      batch=16, flags=["--clip", "none", "--optimizer", "adam"], findings=["spikes"], steps=CORRUPT, max_steps=200,
      forbidden=["healthy", "diverged", "norm_scale"], actions=["guard"], threshold=[1.2, 25], max_fires=0.15)
def corrupt_3_percent():
    model = Gpt()
    batch_at = text(seed=11)
    bad = random_bytes(batch_at(0), 60.0)
    return train(model, batch_at, adam(model), cosine(2e-3, 2500), 1500, loss_at=lambda s: bad if s in CORRUPT else None)


if __name__ == "__main__":
    main(seed=0)
