"""CIFAR-10 from the official binary files, entirely on the device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

RECORD = 1 + 3072


def read(folders: list[Path], names: list[str]) -> tuple[Tensor, Tensor]:
    """Images (uint8, N x 3 x 32 x 32) and labels of the named files, searched in all folders."""
    records = []
    for name in names:
        found = [f / name for f in folders if (f / name).is_file()]
        if not found:
            places = ", ".join(str(f) for f in folders)
            raise FileNotFoundError(f"{name} not found in {places}; `toclip data get cifar10` downloads it")
        raw = np.fromfile(found[0], dtype=np.uint8)
        if len(raw) != 10_000 * RECORD:
            raise ValueError(f"{found[0]} has {len(raw)} bytes; expected {10_000 * RECORD}")
        records.append(raw.reshape(-1, RECORD))
    data = np.concatenate(records)
    images = torch.from_numpy(data[:, 1:].reshape(-1, 3, 32, 32).copy())
    return images, torch.from_numpy(data[:, 0].astype(np.int64))


class Cifar10:
    """Training and test images on a device, normalised channel by channel."""

    def __init__(self, folders: list[Path], device: torch.device, batches: int = 5):
        train = [f"data_batch_{i}.bin" for i in range(1, batches + 1)]
        images, labels = read(folders, train)
        pixels = images.float() / 255.0
        mean, std = pixels.mean((0, 2, 3), keepdim=True), pixels.std((0, 2, 3), keepdim=True)
        self.train = ((pixels - mean) / std).to(device)
        self.train_labels = labels.to(device)
        try:
            images, labels = read(folders, ["test_batch.bin"])
            self.test = ((images.float() / 255.0 - mean) / std).to(device)
            self.test_labels = labels.to(device)
        except FileNotFoundError:
            # Enough to time a run; the accuracy is then that on training images.
            self.test, self.test_labels = self.train[:10_000], self.train_labels[:10_000]


def load(folders: list[Path], device: torch.device, batches: int) -> Cifar10:
    """Loads the data, or exits with a message."""
    try:
        return Cifar10(folders, device, batches)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random shift by up to four pixels and a random flip, image by image."""
    n = len(images)
    padded = F.pad(images, (4, 4, 4, 4))
    shifts = torch.randint(0, 9, (2, n), generator=generator, device=images.device)
    steps = torch.arange(32, device=images.device)
    rows = (shifts[0][:, None] + steps)[:, None, :, None]
    columns = shifts[1][:, None] + steps
    flip = torch.randint(0, 2, (n, 1), generator=generator, device=images.device).bool()
    columns = torch.where(flip, columns.flip(1), columns)[:, None, None, :]
    index = torch.arange(n, device=images.device)[:, None, None, None]
    channel = torch.arange(3, device=images.device)[None, :, None, None]
    return padded[index, channel, rows, columns]
