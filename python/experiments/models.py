"""The networks of the paper for 32x32 images: ResNet-18 and ViT-S with GELU, and a small CNN."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3x3 convolutions with a residual connection."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.act = nn.GELU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.act(self.norm1(self.conv1(x)))))
        return self.act(y + self.shortcut(x))


def resnet18(classes: int = 10) -> nn.Module:
    """ResNet-18 as used on 32x32 images: a 3x3 stem without pooling."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.GELU()
    ]
    width = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]
    return nn.Sequential(*layers)


class Attention(nn.Module):
    """Multi-head self-attention in plain operations, which have forward-mode derivatives."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, w = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (w // self.heads) ** -0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, w))


class Layer(nn.Module):
    """A transformer layer with pre-normalisation."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """ViT-S: width 384, 12 layers, 6 heads, a class token, learned positions."""

    def __init__(self, patch: int, classes: int = 10, width: int = 384, depth: int = 12, heads: int = 6):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 1 + (32 // patch) ** 2, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


def small_cnn(classes: int = 10) -> nn.Module:
    """Three convolutions without normalisation, whose gradients have a heavy tail."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), nn.GELU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, 1, 1), nn.GELU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, 1, 1), nn.GELU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128 * 16, classes),
    )


MODELS = {
    "resnet18": resnet18,
    "vit_s16": lambda: ViT(16),
    "vit_s4": lambda: ViT(4),
    "small_cnn": small_cnn,
}
