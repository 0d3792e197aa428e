"""Six training criteria with their slopes by hand, and what a network sees: numpy alone, nothing of the attack."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import numpy as np
from numpy.typing import NDArray
from studies.dejavu_training.images import CLASSES, SIDE, Images
from studies.perceptron import Network, Rows

Slopes = tuple[float, Rows, Rows]  # a loss, and its slope at both views

INPUT, PROJECTION = 16, 64
PATCH, STRIDE = 4, 2  # of the convolution
STEADY = 1e-4  # added to variances under a root
LEAST = 1e-30  # probabilities below it are taken for it in a loss that is printed
SHARP = 0.4  # DINO's temperature of the slow network over that of the fast one


def vicreg(one: Rows, two: Rows, *, setting: float) -> Slopes:
    """Invariance `setting`, variance 25 and covariance 1 (Bardes, Ponce, LeCun 2022)."""
    n, d = one.shape
    value, slopes = setting * float(((one - two) ** 2).mean()), []
    for z, other in ((one, two), (two, one)):
        centred = z - z.mean(axis=0)
        deviation = np.sqrt((centred**2).sum(axis=0) / (n - 1) + STEADY)
        crossed = centred.T @ centred / (n - 1)
        np.fill_diagonal(crossed, 0.0)
        value += 25.0 * float(np.maximum(1.0 - deviation, 0.0).mean()) / 2 + float((crossed**2).sum()) / d
        slopes.append(
            2 * setting * (z - other) / (n * d)
            - 25.0 * (deviation < 1.0) * centred / (2 * d * (n - 1) * deviation)
            + 4.0 * centred @ crossed / (d * (n - 1))
        )
    return value, slopes[0], slopes[1]


def simclr(one: Rows, two: Rows, *, setting: float) -> Slopes:
    """Each view picks its twin out of all others at temperature `setting` (Chen and others 2020)."""
    z = np.concatenate([one, two])
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    v, places = z / lengths, np.arange(len(z))
    likeness = v @ v.T / setting
    likeness[places, places] = -np.inf
    chance = softmax(likeness)
    twin = (places + len(one)) % len(z)
    value = -float(np.log(chance[places, twin]).mean())
    chance[places, twin] -= 1.0
    inner = (chance + chance.T) @ v / (setting * len(z))
    slope = (inner - v * (v * inner).sum(axis=1, keepdims=True)) / lengths
    return value, slope[: len(one)], slope[len(one) :]


def barlow(one: Rows, two: Rows, *, setting: float) -> Slopes:
    """Cross-correlation near the identity, weight `setting` off the diagonal (Zbontar and others 2021)."""
    n = len(one)
    views = []
    for z in (one, two):
        deviation = np.sqrt(z.var(axis=0) + STEADY)
        views.append(((z - z.mean(axis=0)) / deviation, deviation))
    (u, u_deviation), (v, v_deviation) = views
    off = u.T @ v / n - np.eye(one.shape[1])
    weight = np.where(np.eye(one.shape[1]) > 0.0, 1.0, setting)
    inner = 2.0 * weight * off / n
    slopes = [
        (back - back.mean(axis=0) - scaled * (back * scaled).mean(axis=0)) / deviation
        for scaled, deviation, back in ((u, u_deviation, v @ inner.T), (v, v_deviation, u @ inner))
    ]
    return float((weight * off**2).sum()), slopes[0], slopes[1]


def byol(made: Rows, wanted: Rows) -> tuple[float, Rows]:
    """Cosine of what is predicted and what the slow network makes of the other view (Grill and others 2020)."""
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    v, w = made / lengths, wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
    cosine = (v * w).sum(axis=1, keepdims=True)
    return float((2.0 - 2.0 * cosine).mean()), -2.0 * (w - v * cosine) / (lengths * len(made))


def dino(made: Rows, wanted: Rows, *, setting: float) -> tuple[float, Rows]:
    """Cross-entropy of directions at temperature `setting` to the sharper slow network (Caron and others 2021)."""
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    v = made / lengths
    said, true = softmax(v / setting), softmax(wanted / (SHARP * setting))
    inner = (said - true) / (setting * len(made))
    slope = (inner - v * (v * inner).sum(axis=1, keepdims=True)) / lengths
    return -float((true * np.log(np.maximum(said, LEAST))).sum(axis=1).mean()), slope


def supervised(made: Rows, labels: NDArray[np.int64]) -> tuple[float, Rows]:
    """Cross-entropy to the class."""
    said, places = softmax(made), np.arange(len(made))
    value = -float(np.log(np.maximum(said[places, labels], LEAST)).mean())
    said[places, labels] -= 1.0
    return value, said / len(made)


def softmax(rows: Rows) -> Rows:
    """Rows that are positive and add to 1."""
    weight = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


PAIRED: dict[str, Callable[..., Slopes]] = {"vicreg": vicreg, "simclr": simclr, "barlow": barlow}


def patches() -> NDArray[np.int64]:
    """Places of each patch in a row (patches, 3 PATCH^2)."""
    starts = np.arange(0, INPUT - PATCH + 1, STRIDE)
    side = starts[:, None] + np.arange(PATCH)
    pixel = side[:, None, :, None] * INPUT + side[None, :, None, :]
    return (3 * pixel[..., None] + np.arange(3)).reshape(len(starts) ** 2, -1)


def crops(images: Images, rng: np.random.Generator) -> Rows:
    """A random crop of each image, area .08 to .7, with light colour jitter, as the network sees it."""
    n = len(images)
    side = np.sqrt(rng.uniform(0.08, 0.7, n)) * SIDE
    start = rng.uniform(0.0, 1.0, (2, n)) * (SIDE - side)
    grid = (np.arange(INPUT) + 0.5) / INPUT
    down, across = (np.floor(one[:, None] + side[:, None] * grid).astype(int) for one in start)
    seen = images[np.arange(n)[:, None, None], :, down[:, :, None], across[:, None, :]]
    jittered = seen * rng.uniform(0.9, 1.1, (n, 1, 1, 1)) + rng.uniform(-0.1, 0.1, (n, 1, 1, 3))
    return np.asarray(jittered.reshape(n, -1), dtype=np.float32)


def whole(images: Images) -> Rows:
    """Images of any size and shape, as the network sees them."""
    down, across = (np.floor((np.arange(INPUT) + 0.5) / INPUT * side).astype(int) for side in images.shape[-2:])
    seen = images[:, :, down[:, None], across[None, :]].transpose(0, 2, 3, 1)
    return np.asarray(seen.reshape(len(images), -1), dtype=np.float32)


class Encoder:
    """A network in training under one criterion, with what else that needs: a head, a slow copy, a centre."""

    def __init__(
        self, loss: str, setting: float, hidden: tuple[int, ...], rng: np.random.Generator, *, convolution: bool
    ) -> None:
        self.loss, self.setting = loss, setting
        self.network = Network((3 * INPUT**2, *hidden, PROJECTION), rng, places=patches() if convolution else None)
        ends = {"byol": (PROJECTION, PROJECTION, PROJECTION), "supervised": (PROJECTION, CLASSES)}
        self.head = Network(ends[loss], rng) if loss in ends else None
        self.slow, self.centre = deepcopy(self.network), np.zeros(PROJECTION)

    def step(self, views: list[Rows], labels: NDArray[np.int64], *, rate: float) -> float:
        """One batch of two views of each image."""
        n = len(views[0])
        found = self.network.forward(np.concatenate(views))
        if self.loss in PAIRED:
            value, *slopes = PAIRED[self.loss](found[-1][:n], found[-1][n:], setting=self.setting)
            self.network.step(found, np.concatenate(slopes), rate=rate)
            return value
        judge: Callable[[Rows], tuple[float, Rows]]
        if self.loss == "supervised":
            judge = partial(supervised, labels=np.tile(labels, 2))
        else:
            wanted = self.slow.forward(np.concatenate(views[::-1]))[-1]
            if self.loss == "dino":
                wanted = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
                judge = partial(dino, wanted=wanted - self.centre, setting=self.setting)
                self.centre += 0.1 * (wanted.mean(axis=0) - self.centre)
            else:
                judge = partial(byol, wanted=wanted)
        if self.head is None:
            value, slope = judge(found[-1])
        else:  # supervised and BYOL judge what a head makes of the projection
            above = self.head.forward(found[-1])
            value, slope = judge(above[-1])
            slope = self.head.step(above, slope, rate=rate)
        self.network.step(found, slope, rate=rate)
        self.slow.follow(self.network)
        return value

    def embed(self, rows: Rows, *, backbone: bool = False) -> Rows:
        """The projection (logits of a supervised model, as in the dissertation), or the backbone."""
        found = self.network.forward(rows)
        if backbone:
            return found[-2]
        return found[-1] if self.loss != "supervised" or self.head is None else self.head.forward(found[-1])[-1]


def train(
    images: Images, labels: NDArray[np.int64], *, loss: str, setting: float, hidden: tuple[int, ...] = (128,),
    convolution: bool = False, steps: int, seed: int,
) -> Encoder:  # fmt: skip
    """One model: each step sees two crops of every image."""
    rng = np.random.default_rng(seed)
    encoder = Encoder(loss, setting, hidden, rng, convolution=convolution)
    for _ in range(steps):
        encoder.step([crops(images, rng) for _ in range(2)], labels, rate=1e-3)
    return encoder
