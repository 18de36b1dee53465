"""A group of runs of ``advice.py`` with the same network, batch size and labels, trained together."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from cifar import Cifar10, augment
from models import MODELS
from side_by_side import SideBySide

import toclip

CLASSES, KEPT_ASIDE = 10, 5000
SAVE_SECONDS = 300.0


def rules(batch: int) -> dict[str, Any]:
    """A new rule of each kind, with its usual settings."""
    return {
        "unclipped": toclip.ThresholdRule.fixed("none"),
        "fixed 1": toclip.ThresholdRule.fixed(1.0),
        "autoclip 10": toclip.ThresholdRule.autoclip(10.0),
        # With its default cap of 1 it would equal `fixed 1` whenever norms are larger than 1.
        "zclip": toclip.ThresholdRule.zclip(cap="none"),
        "monitor": toclip.ThresholdRule.monitored(every=200, components=float(batch * CLASSES)),
    }


class Stop:
    """Whether to save and stop: after a signal, or after a time limit."""

    def __init__(self, minutes: float):
        self.until, self.requested = time.time() + 60.0 * minutes, False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self.request)

    def request(self, *_: Any) -> None:
        self.requested = True

    def now(self) -> bool:
        return self.requested or time.time() > self.until


def with_noise(labels: torch.Tensor, noise: float, seed: int) -> torch.Tensor:
    """Replaces a share of the labels by labels drawn from all classes, the true one included."""
    random = torch.Generator().manual_seed(seed)
    hit = torch.rand(len(labels), generator=random) < noise
    drawn = torch.randint(0, CLASSES, (len(labels),), generator=random)
    return torch.where(hit.to(labels.device), drawn.to(labels.device), labels)


class Stream:
    """The batches of one seed, with its own order, shifts, flips and replaced labels."""

    def __init__(self, data: Cifar10, noise: float, seed: int):
        # In practice nobody has clean labels for tuning, so the held-out labels are noisy too.
        labels = with_noise(data.train_labels, noise, seed)
        self.images, self.labels = data.train[:-KEPT_ASIDE], labels[:-KEPT_ASIDE]
        self.aside = data.train[-KEPT_ASIDE:], labels[-KEPT_ASIDE:]
        self.random = torch.Generator(self.images.device).manual_seed(seed)
        self.order = self.labels.new_empty(0)

    def fill(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        if len(self.order) < len(labels):
            self.order = torch.randperm(
                len(self.labels), generator=self.random, device=self.images.device
            )
        index, self.order = self.order[: len(labels)], self.order[len(labels) :]
        images.copy_(augment(self.images[index], self.random))
        labels.copy_(self.labels[index])

    def state(self) -> dict[str, Any]:
        return {"random": self.random.get_state(), "order": self.order}

    def restore(self, state: dict[str, Any]) -> None:
        self.random.set_state(state["random"].cpu())
        self.order = state["order"]


class RuleRecord:
    """A threshold rule, and statistics of its clipping."""

    def __init__(self, rule: Any):
        self.rule = rule
        self.norms: list[float] = []
        self.clipped, self.factors = 0, 0.0
        self.first: int | None = None

    def answer(self, norm: float) -> tuple[float, float]:
        """The factors for the gradient and for the learning rate."""
        threshold = float(self.rule.thresholds(np.array([norm]))[0])
        clips = norm > threshold
        factor = threshold / norm if clips else 1.0
        if clips and self.first is None:
            self.first = len(self.norms)
        self.norms.append(norm)
        self.clipped += clips
        self.factors += factor
        return factor, self.rule.rate_factor

    def summary(self) -> dict[str, Any]:
        finite = np.array(self.norms)[np.isfinite(self.norms)]
        low, middle, high = np.quantile(finite, (0.1, 0.5, 0.99)) if len(finite) else 3 * (math.nan,)
        threshold, rate_factor = self.rule.next()
        return {
            "clip_fraction": self.clipped / len(self.norms), "first_clip": self.first,
            "mean_factor": self.factors / len(self.norms),
            "threshold": threshold, "rate_factor": rate_factor,
            "norm_10": float(low), "norm_50": float(middle), "norm_99": float(high),
        }

    def state(self) -> dict[str, Any]:
        return vars(self) | {"rule": self.rule.to_json()}

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"rule": toclip.ThresholdRule.from_json(state["rule"])})


class Group:
    """Runs that differ in rule, learning rate and seed, with checkpoints."""

    def __init__(
        self, data: Cifar10, setting: dict[str, Any], jobs: list[dict[str, Any]], folder: Path,
        graph: bool = True,
    ):
        self.data, self.setting, self.jobs = data, setting, jobs
        seeds = sorted({job["seed"] for job in jobs})
        self.streams = [Stream(data, setting["noise"], seed) for seed in seeds]
        self.many = SideBySide(
            MODELS[setting["model"]], seeds, [seeds.index(job["seed"]) for job in jobs],
            setting["batch"], F.cross_entropy, data.train.device, graph=graph,
        )
        self.rules = [RuleRecord(rules(setting["batch"])[job["rule"]]) for job in jobs]
        self.done = 0
        name = hashlib.sha256(json.dumps([setting, jobs], sort_keys=True).encode()).hexdigest()
        self.checkpoint = folder / f"group-{name[:12]}.pt"

    def step(self) -> None:
        for stream, images, labels in zip(self.streams, self.many.images, self.many.labels):
            stream.fill(images, labels)
        cosine = 0.5 * (1.0 + math.cos(math.pi * self.done / self.setting["steps"]))
        answers = [rule.answer(norm) for rule, norm in zip(self.rules, self.many.measure())]
        self.many.step(
            [factor for factor, _ in answers],
            [job["rate"] * cosine * more for job, (_, more) in zip(self.jobs, answers)],
        )
        self.done += 1

    def save(self) -> None:
        partial = self.checkpoint.with_suffix(".partial")
        torch.save({
            "done": self.done, "many": self.many.state(),
            "streams": [s.state() for s in self.streams], "watches": [r.state() for r in self.rules],
        }, partial)
        os.replace(partial, self.checkpoint)

    def restore(self) -> None:
        if not self.checkpoint.exists():
            return
        whole = torch.load(self.checkpoint, map_location=self.data.train.device)
        self.done = whole["done"]
        self.many.restore(whole["many"])
        for part, state in zip(self.streams + self.rules, whole["streams"] + whole["watches"]):
            part.restore(state)

    def run(self, stop: Stop, judged: int | None) -> list[dict[str, Any]] | None:
        """The record of each run; ``None`` if the time was up, with the progress saved."""
        self.restore()
        steps, first, began = self.setting["steps"], self.done, time.time()
        saved = began
        while self.done < steps and not stop.now():
            self.step()
            if self.done % 50 == 0:
                pace = (time.time() - began) / (self.done - first)
                self.report(f"step {self.done} of {steps}, {1e3 * pace:.1f} ms per step, "
                         f"{pace * (steps - self.done):.0f} s left")
            if time.time() - saved > SAVE_SECONDS:
                self.save()
                saved = time.time()
        took = f"{self.done - first} steps in {time.time() - began:.0f} s"
        if self.done < steps:
            self.save()
            self.report(f"{took}, saved at step {self.done} of {steps}", last=True)
            return None
        records = self.records(judged)
        self.report(took, last=True)
        return records

    def records(self, judged: int | None) -> list[dict[str, Any]]:
        tested = self.many.judge(self.data.test[:judged], self.data.test_labels[:judged])
        aside = [self.many.judge(*(part[:judged] for part in s.aside)) for s in self.streams]
        found = []
        for k, (job, rule) in enumerate(zip(self.jobs, self.rules)):
            (accuracy, loss), (kept, kept_loss) = tested[k], aside[self.many.stream[k]][k]
            found.append(self.setting | job | {
                "accuracy": accuracy, "loss": loss, "aside_accuracy": kept, "aside_loss": kept_loss,
                "train_loss": float(self.many.losses[k]), "diverged": not math.isfinite(loss),
            } | rule.summary())
        return found

    def report(self, what: str, last: bool = False) -> None:
        """A line that overwrites itself on a terminal; elsewhere only the last is printed."""
        s, seen = self.setting, sys.stderr.isatty()
        if seen or last:
            start, end = ("\r\033[K" if seen else ""), ("\n" if last or not seen else "")
            print(f"{start}{s['model']}, batch {s['batch']}, {s['noise']:.0%} replaced, {s['phase']}, "
                  f"{len(self.jobs)} runs: {what}", end=end, file=sys.stderr, flush=True)
