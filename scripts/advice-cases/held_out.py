"""Writes the held-out logs with known causes, in several formats: held_out.py --out FOLDER [NAME...]"""

import contextlib
import io
import math
import pathlib
import tempfile

import torch
from torch import nn

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
    row,
    sgd,
    text,
    train,
)


class Recurrent(nn.Module):
    """An LSTM on bytes."""

    def __init__(self, width=64):
        super().__init__()
        self.token = nn.Embedding(256, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, 256)

    def forward(self, tokens):
        return self.out(self.lstm(self.token(tokens))[0])


def table(rows, names, separator=",", comma=False):
    """Writes rows as CSV with other column names."""
    number = lambda x: str(x).replace(".", ",") if comma else str(x)
    lines = [separator.join(names)] + [separator.join(map(number, r.values())) for r in rows]
    return "\n".join(lines) + "\n"


IMAGES = [333, 610, 611, 1004]


@case("images-unscaled.csv", cause="CNN, SGD unclipped; at four steps the images were not normalised (8 times too large) and mislabelled, and the loss recovered",
      flags=["--clip", "none", "--optimizer", "sgd"], findings=["spikes"], steps=IMAGES, max_steps=80,
      forbidden=["healthy", "diverged", "diverging", "norm_scale"], actions=["guard"], threshold=[4.0, 50], max_fires=0.1)
def images_unscaled():
    model = cnn(12)
    batch_at = clusters(batch=48, inputs=144, noise=2.0, seed=21, shape=(1, 12, 12))

    def with_bad(step):
        x, y = batch_at(step)
        return (8 * x, (y + 1) % 10) if step in IMAGES else (x, y)
    rows = train(model, with_bad, sgd(model, 0.5), constant(0.01, 40), 1300)
    return table(rows, ["iter", "train_loss", "gnorm", "lr"])


def hugging_face(steps, every, clip, rate, bad=(), as_printed=False):
    """Trains a small GPT-2 with transformers.Trainer and returns its trainer_state.json, or what it printed."""
    import transformers

    batch_at = text(steps * 16, 32, seed=22)
    tokens, _ = batch_at(0)
    data = [{"input_ids": t, "labels": t} for t in tokens]
    config = transformers.GPT2Config(vocab_size=256, n_positions=32, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)

    class Trainer(transformers.Trainer):
        def compute_loss(self, model, inputs, *rest, **more):
            if self.state.global_step + 1 not in bad:
                return super().compute_loss(model, inputs, *rest, **more)
            noise = torch.randint(256, inputs["input_ids"].shape)
            return 40 * super().compute_loss(model, {"input_ids": noise, "labels": noise}, *rest, **more)

    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=16, learning_rate=rate, max_grad_norm=clip, logging_steps=every,
            warmup_steps=60, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=3, lr_scheduler_type="constant_with_warmup")
        trainer = Trainer(transformers.GPT2LMHeadModel(config), options, train_dataset=data)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            trainer.train()
        trainer.save_state()
        state = (pathlib.Path(folder) / "trainer_state.json").read_text()
    return printed.getvalue() if as_printed else state


@case("trainer-sparse.json", cause="transformers.Trainer, GPT-2, AdamW clipped at 3, healthy; logged every 8 steps", batch=16,
      flags=["--clip", "3", "--optimizer", "adam"], findings=["healthy", "subsampled"],
      forbidden=BAD + ["norm_scale", "always_clipped", "norms_after_clipping"], actions=["keep"])
def trainer_sparse():
    return hugging_face(1200, 8, 3.0, 2e-3)


SHARD = [240, 241, 242, 480]


@case("trainer-bad-batches.json", cause="transformers.Trainer, GPT-2, AdamW with max_grad_norm 1e9; random tokens with 40 times the loss at four steps", batch=16,
      flags=["--clip", "none", "--optimizer", "adam"], findings=["spikes"], steps=SHARD, max_steps=80,
      forbidden=["healthy", "diverged", "norm_scale"], actions=["guard"], threshold=[1.0, 30], max_fires=0.15)
def trainer_bad_batches():
    return hugging_face(700, 1, 1e9, 2e-3, SHARD)


@case("trainer-printed.log", cause="the printed log of transformers.Trainer, GPT-2, AdamW clipped at 0.05, a twentieth of the median norm; the loss falls as it should", batch=16,
      flags=["--clip", "0.05", "--optimizer", "adam"], findings=["always_clipped"],
      forbidden=["diverged", "diverging", "norm_scale", "never_clipped", "norms_after_clipping"], actions=["keep", "guard"], max_fires=0.2)
def trainer_printed():
    return hugging_face(600, 1, 0.05, 1e-3, as_printed=True)


def lightning_log(rate, steps, every, clip, seed, warmup=50, squared=False):
    """Trains with Lightning, with its CSVLogger and its per-layer norms, and returns metrics.csv."""
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import CSVLogger
    from lightning.pytorch.utilities import grad_norm

    batch_at = clusters(batch=32, noise=3.0, samples=40000, seed=seed)

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 10))

        def loss(self, batch):
            if squared:
                return (self.net(batch[0]) - nn.functional.one_hot(batch[1], 10)).square().sum(1).mean()
            return cross_entropy(self.net, batch)

        def training_step(self, batch, index):
            loss = self.loss(batch)
            self.log("train_loss", loss)
            self.log("lr", self.optimizers().param_groups[0]["lr"])
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", self.loss(batch))

        def on_before_optimizer_step(self, optimizer):
            self.log_dict(grad_norm(self.net, norm_type=2))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), rate, momentum=0.9)
            return [optimizer], [{"scheduler": torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / warmup)), "interval": "step"}]

    epoch = lambda n: torch.utils.data.DataLoader([batch_at(0) for _ in range(n)], batch_size=None)
    with tempfile.TemporaryDirectory() as folder:
        logger = CSVLogger(folder, flush_logs_every_n_steps=1000)
        trainer = pl.Trainer(max_steps=steps, logger=logger, log_every_n_steps=every, accelerator="cpu", enable_progress_bar=False,
                             enable_checkpointing=False, enable_model_summary=False, gradient_clip_val=clip, num_sanity_val_steps=0)
        trainer.fit(Module(), epoch(500), epoch(5))
        log = (pathlib.Path(logger.log_dir) / "metrics.csv").read_text()
    return log


@case("lightning-diverged.csv", cause="Lightning, MLP with a squared error, SGD unclipped, the rate rising at every step: the loss became NaN",
      flags=["--clip", "none", "--optimizer", "sgd"], findings=["diverged"],
      forbidden=["healthy", "finished"], actions=["lower_rate", "roll_back"])
def lightning_diverged():
    return lightning_log(0.5, 500, 1, None, 23, warmup=1000, squared=True)


@case("lightning-healthy.csv", cause="Lightning, MLP, SGD clipped at 8, healthy; logged every 5 steps, with a validation row an epoch",
      flags=["--clip", "8", "--optimizer", "sgd"], findings=["healthy", "subsampled"],
      forbidden=BAD + ["norm_scale", "always_clipped", "norms_after_clipping", "non_finite_steps"], actions=["keep"])
def lightning_healthy():
    return lightning_log(0.005, 3000, 5, 8.0, 24)


@case("printed-finished.log", cause="LSTM, AdamW clipped at 0.5, healthy, printed as dictionaries without steps; the rate has decayed to zero and the loss is flat", batch=24,
      flags=["--clip", "0.5", "--optimizer", "adam"], findings=["finished"],
      forbidden=BAD + ["norm_scale", "always_clipped", "norms_after_clipping"], actions=["keep", "guard"], max_fires=0.1)
def printed_finished():
    model = Recurrent()
    rows = train(model, text(24, 32, seed=25), adam(model, (0.9, 0.99)), cosine(8e-3, 1600, warmup=80), 1600, clip=0.5)
    lines = ["loading data", "starting to train: 1600 steps"]
    for r in rows:
        lines.append(str({"loss": round(r["loss"], 4), "grad_norm": r["grad_norm"], "learning_rate": r["lr"], "epoch": round(r["step"] / 400, 4)}))
        if r["step"] % 400 == 0:
            lines.append(f"saving a checkpoint of epoch {r['step'] // 400}")
    return "\n".join(lines + ["done"]) + "\n"


@case("clipped-norms.csv", cause="LSTM, Adam; the norm was logged after clipping at 0.3", batch=16,
      flags=["--optimizer", "adam"], findings=["norms_after_clipping"],
      forbidden=["diverged", "diverging", "spikes"], actions=["fix_logging"])
def clipped_norms():
    model = Recurrent(48)
    rows = train(model, text(16, 32, seed=26), adam(model), cosine(3e-3, 1500), 900, clip=0.3, log_after_clipping=True)
    return table(rows, ["global_step", "train/loss", "train/grad_norm", "train/lr"])


@case("summed-loss.csv", cause="CNN, Adam clipped at 1; the squared error was summed over 256 samples and 9 noisy targets: norms in the thousands (semicolons, decimal commas)", batch=256,
      flags=["--clip", "1", "--optimizer", "adam"], findings=["norm_scale", "always_clipped"],
      forbidden=BAD, actions=["fix_loss"])
def summed_loss():
    model, teacher = cnn(8, 9), cnn(8, 9)
    loss = lambda m, x: (m(x) - 5 * teacher(x).detach() - 2.5 * torch.randn(256, 9)).square().sum()
    rows = train(model, lambda s: torch.randn(256, 1, 12, 12), adam(model, (0.9, 0.999)), constant(2e-3, 50), 800, clip=1.0, loss_at=lambda s: loss)
    return table(rows, ["step", "loss", "grad_norm", "lr"], ";", comma=True)


@case("adam-diverging.jsonl", cause="regression with an MLP of three layers, Adam; from step 500 the rate grows by 1% a step by mistake: the loss rises to the end, finite", batch=64,
      flags=["--clip", "none", "--optimizer", "adam"], findings=["diverging"],
      forbidden=["healthy", "diverged", "finished"], actions=["lower_rate", "roll_back"])
def adam_diverging():
    model, teacher = mlp(20, 48, 4, depth=3), mlp(20, 48, 4, depth=1)
    loss = lambda m, x: (m(x) - 5 * teacher(x).detach()).square().mean()
    rate = lambda s: 2e-3 * 1.01 ** max(0, s - 500)
    return train(model, lambda s: torch.randn(64, 20), adam(model, (0.9, 0.999)), rate, 890, loss_at=lambda s: loss)


@case("amp-overflow.jsonl", cause="GPT, AdamW clipped at 6 after the loss scale was removed: a few steps overflowed and were skipped, nothing is wrong", batch=16,
      flags=["--clip", "6", "--optimizer", "adam"], findings=["non_finite_steps"], steps="non-finite", max_steps=40,
      forbidden=["diverged", "diverging", "norm_scale", "always_clipped"], actions=["keep"])
def amp_overflow():
    model = Gpt()
    batch_at, optimizer, rate, scale, good, rows = text(seed=28), adam(model), cosine(2e-3, 2000), 2.0 ** 20, 0, []
    for step in range(1, 1101):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss = cross_entropy(model, batch_at(step))
        (loss * scale).backward()
        for p in model.parameters():
            p.grad = p.grad.half().float() / scale
        norm = norm_of(model)
        if math.isfinite(norm):
            clip_to(model, 6.0)
            optimizer.step()
        good = good + 1 if math.isfinite(norm) else 0
        scale = scale / 2 if good == 0 else scale * 2 if good % 250 == 0 else scale
        rows.append(row(step, loss.item(), norm, rate(step)))
    return rows


@case("rare-words.jsonl", cause="factorisation of word pairs whose counts follow a power law, Adam, batches of 4: heavy-tailed norms at every step", batch=4,
      flags=["--clip", "none", "--optimizer", "adam"], findings=["heavy_tail"],
      forbidden=["diverged", "diverging", "norms_after_clipping", "norm_scale"], actions=["guard", "clip", "keep"], max_fires=0.5)
def rare_words():
    model = nn.EmbeddingBag(500, 12, mode="mean")
    counts = torch.distributions.Pareto(1.0, 1.6)
    words = torch.distributions.Categorical(1.0 / torch.arange(1, 501))

    def loss(m, step):
        a, b = words.sample((4, 1)), words.sample((4, 1))
        return (counts.sample((4,)) * ((m(a) * m(b)).sum(1) - 1.0).square()).mean()
    return train(model, lambda s: s, adam(model), constant(1e-3, 50), 2000, loss_at=lambda s: loss)


@case("threshold-far-too-small.csv", cause="LSTM, AdamW clipped at 0.01, a thirtieth of the median norm; the loss falls as it should", batch=16,
      flags=["--clip", "0.01", "--optimizer", "adam"], findings=["always_clipped"],
      forbidden=BAD + ["norm_scale", "never_clipped"], actions=["keep", "guard"], max_fires=0.2)
def threshold_far_too_small():
    model = Recurrent()
    rows = train(model, text(16, 32, seed=29), adam(model, (0.9, 0.99)), cosine(4e-3, 1800), 1100, clip=0.01)
    return table(rows, ["Step", "Train Loss", "Gradient Norm", "Learning Rate"])


@case("step-decay.jsonl", cause="MLP with batch normalisation, SGD with weight decay, clipped at 3; the rate falls tenfold at step 900, and the norms change with it: healthy",
      flags=["--clip", "3", "--optimizer", "sgd"], findings=[],
      forbidden=BAD + ["norm_scale", "always_clipped", "non_finite_steps"], actions=["keep", "guard"], max_fires=0.1)
def step_decay():
    model = mlp(norm=True, width=48)
    return train(model, clusters(32, noise=3.0, seed=30), sgd(model, 0.9, 5e-3), lambda s: 0.1 if s < 900 else 0.01, 1800, clip=3.0)


@case("norms-nan-to-the-end.jsonl", cause="autoencoder, Adam; from step 620 the gradient of a square root at zero is NaN at every step, and every update is skipped: the loss is flat",
      flags=["--clip", "1", "--optimizer", "adam"], findings=["diverged"],
      forbidden=["healthy", "finished"], actions=["roll_back", "lower_rate", "fix_loss"])
def norms_nan_to_the_end():
    model = mlp(32, 48, 32)
    data = torch.randn(32, 8, generator=torch.Generator().manual_seed(31))

    def loss_at(step):
        def loss(m, x):
            y = m(x)
            penalty = (y - y.detach()).square().sum().sqrt() if step >= 620 else 0.0
            return (y - x).square().mean() + penalty
        return loss
    batch_at = lambda s: torch.randn(32, 8) @ data.T
    return train(model, batch_at, adam(model, (0.9, 0.999)), constant(2e-3, 50), 800, clip=1.0, loss_at=loss_at, skip_non_finite=True)


if __name__ == "__main__":
    main(seed=17)
