"""A perceptron with a projector and five losses, in PyTorch, on one thread; nothing here knows of the attack."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from studies.dejavu_training.images import CLASSES, Images

from dovetail.core.errors import MissingExtraError

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    raise MissingExtraError("This study needs torch, which is not installed: pip install torch") from None

torch.set_num_threads(1)  # on shared cores two threads are many times slower

INPUT = 16  # pixels of a side that the network sees
WIDTH, PROJECTION = 512, 256
MOMENTUM, TEMPERATURE = 0.99, 0.15


class Encoder(nn.Module):
    """Backbone 768-512-512 and projector 512-256-256-256, with batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Flatten(), *block(3 * INPUT**2, WIDTH), *block(WIDTH, WIDTH))
        self.projector = nn.Sequential(
            *block(WIDTH, PROJECTION), *block(PROJECTION, PROJECTION), nn.Linear(PROJECTION, PROJECTION)
        )

    def forward(self, images: Any) -> Any:
        return self.projector(self.backbone(images))


def block(before: int, after: int) -> list[nn.Module]:
    """A dense layer with batch norm."""
    return [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]


def crops(images: Any, generator: Any) -> Any:
    """A random crop of each image, area .08 to .7, aspect 3/4 to 4/3, with light colour jitter."""
    n = len(images)

    def uniform(low: float, high: float, *shape: int) -> Any:
        return low + (high - low) * torch.rand(*shape, generator=generator)

    side = uniform(0.08, 0.7, n).sqrt()
    stretch = torch.exp(uniform(-0.2877, 0.2877, n) / 2)  # log(4/3)
    wide, high = (side * stretch).clamp(max=1.0), (side / stretch).clamp(max=1.0)
    frame = torch.zeros(n, 2, 3)
    frame[:, 0, 0], frame[:, 1, 1] = wide, high
    frame[:, 0, 2] = uniform(-1.0, 1.0, n) * (1.0 - wide)
    frame[:, 1, 2] = uniform(-1.0, 1.0, n) * (1.0 - high)
    grid = functional.affine_grid(frame, [n, 3, INPUT, INPUT], align_corners=False)
    seen = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return seen * uniform(0.9, 1.1, n, 1, 1, 1) + uniform(-0.1, 0.1, n, 3, 1, 1)


def vicreg(one: Any, two: Any) -> Any:
    """Invariance 25, variance 25, covariance 1 (Bardes, Ponce, LeCun 2022)."""

    def spread(z: Any) -> Any:
        return functional.relu(1.0 - torch.sqrt(z.var(dim=0) + 1e-4)).mean() / 2

    def crossed(z: Any) -> Any:
        z = z - z.mean(dim=0)
        matrix = z.T @ z / (len(z) - 1)
        return (matrix.pow(2).sum() - matrix.diagonal().pow(2).sum()) / z.shape[1]

    return (
        25.0 * functional.mse_loss(one, two)
        + 25.0 * (spread(one) + spread(two))
        + crossed(one) + crossed(two)
    )  # fmt: skip


def barlow(one: Any, two: Any) -> Any:
    """Cross-correlation near the identity, weight .005 off the diagonal (Zbontar and others 2021)."""
    one, two = ((z - z.mean(dim=0)) / (z.std(dim=0) + 1e-6) for z in (one, two))
    matrix = one.T @ two / len(one)
    kept = (matrix.diagonal() - 1.0).pow(2).sum()
    return kept + 0.005 * (matrix.pow(2).sum() - matrix.diagonal().pow(2).sum())


def simclr(one: Any, two: Any) -> Any:
    """Each view picks its twin out of all others (Chen and others 2020)."""
    views = functional.normalize(torch.cat([one, two]), dim=1)
    likeness = (views @ views.T / TEMPERATURE).masked_fill(torch.eye(len(views), dtype=torch.bool), -1e9)
    twin = (torch.arange(len(views)) + len(one)) % len(views)
    return functional.cross_entropy(likeness, twin)


class Trainer:
    """A model in training: `step` does one batch, whatever the loss."""

    def __init__(self, loss: str, *, seed: int, steps: int, rate: float) -> None:
        torch.manual_seed(seed)
        self.loss, self.generator = loss, torch.Generator().manual_seed(seed + 1)
        self.encoder = Encoder()
        self.parts: list[Any] = [self.encoder]
        if loss == "supervised":  # its logits stand in for the projector's output, as in the dissertation
            self.head = nn.Sequential(nn.BatchNorm1d(PROJECTION), nn.ReLU(), nn.Linear(PROJECTION, CLASSES))
            self.parts.append(self.head)
        if loss == "byol":
            self.head = nn.Sequential(*block(PROJECTION, PROJECTION), nn.Linear(PROJECTION, PROJECTION))
            self.parts.append(self.head)
            self.slow = Encoder()
            self.slow.load_state_dict(self.encoder.state_dict())
        weights = [weight for part in self.parts for weight in part.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=rate)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def step(self, images: Any, labels: Any) -> None:
        """One batch: two crops of each image."""
        for part in self.parts:
            part.train()
        loss = self._loss(crops(images, self.generator), crops(images, self.generator), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        if self.loss == "byol":
            for slow, fast in zip(self.slow.parameters(), self.encoder.parameters(), strict=True):
                slow.data.lerp_(fast.data, 1.0 - MOMENTUM)

    def _loss(self, one: Any, two: Any, labels: Any) -> Any:
        if self.loss == "supervised":
            made = self.head(self.encoder(torch.cat([one, two])))
            return functional.cross_entropy(made, torch.cat([labels, labels]))
        if self.loss == "byol":
            return self._predicts(one, two) + self._predicts(two, one)
        paired: dict[str, Callable[[Any, Any], Any]] = {"vicreg": vicreg, "barlow": barlow, "simclr": simclr}
        return paired[self.loss](self.encoder(one), self.encoder(two))

    def _predicts(self, one: Any, two: Any) -> Any:
        """BYOL: the fast network predicts what the slow one makes of the other view (Grill and others 2020)."""
        with torch.no_grad():
            wanted = self.slow(two)
        return 2.0 - 2.0 * functional.cosine_similarity(self.head(self.encoder(one)), wanted).mean()

    @torch.no_grad()
    def embed(self, images: Images, layer: str) -> Any:
        """Embeddings of whole images or of crops of any size, as the network sees them."""
        for part in self.parts:
            part.eval()
        shrunk = functional.interpolate(
            torch.from_numpy(np.ascontiguousarray(images)), size=(INPUT, INPUT), mode="bilinear", antialias=True
        )
        found = self.encoder.backbone(shrunk)
        if layer == "projector":
            found = self.encoder.projector(found)
            if self.loss == "supervised":
                found = self.head(found)
        return found.numpy().astype(np.float64)


def train(
    images: Images, labels: Any, *, loss: str, seed: int, batch: int, rate: float, visits: list[int]
) -> Iterator[tuple[int, Trainer]]:
    """The model after each number of visits to every image, as training goes on."""
    shown, classes = torch.from_numpy(images), torch.from_numpy(labels)
    rounds = len(images) // batch
    trainer = Trainer(loss, seed=seed, steps=visits[-1] * rounds, rate=rate)
    for visit in range(1, visits[-1] + 1):
        order = torch.randperm(len(images), generator=trainer.generator)
        for part in order[: rounds * batch].split(batch):
            trainer.step(shown[part], classes[part])
        if visit in visits:
            yield visit, trainer
