"""A small variational autoencoder in PyTorch, on one thread; nothing here knows of the test."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import MissingExtraError

try:
    import torch
    from torch import nn
except ImportError:
    raise MissingExtraError("This study needs torch, which is not installed: pip install torch") from None

torch.set_num_threads(1)  # on shared cores two threads are many times slower

WIDTH, BATCH, RATE = 512, 100, 1e-3
DEVIATION = 0.2  # of a pixel around what the decoder says


class Autoencoder(nn.Module):
    """Encoder 784-512-2d, decoder d-512-512-784; Gaussian pixels of a fixed deviation, standard normal code."""

    def __init__(self, pixels: int, latent: int) -> None:
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(pixels, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * latent))
        self.decoder = nn.Sequential(
            nn.Linear(latent, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, pixels),
            nn.Sigmoid(),
        )  # fmt: skip

    def bound(self, images: Any) -> Any:
        """Evidence lower bound of each image in nats, but for the constant of the Gaussian."""
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        wrong = ((self.decoder(code) - images) ** 2).sum(dim=1) / (2.0 * DEVIATION**2)
        return -wrong - 0.5 * (mean**2 + log_variance.exp() - log_variance - 1.0).sum(dim=1)

    def sample(self, count: int) -> NDArray[np.float64]:
        """What the decoder says of codes drawn from the prior (count, pixels)."""
        with torch.no_grad():
            return np.asarray(self.decoder(torch.randn(count, self.latent)).numpy(), dtype=np.float64)


def train(
    images: NDArray[np.float64], fresh: NDArray[np.float64], *, latent: int, epochs: Sequence[int], seed: int
) -> Iterator[tuple[int, Autoencoder, float, float]]:
    """After each of these epochs: the model, and its mean bound on training and on fresh images."""
    torch.manual_seed(seed)
    model = Autoencoder(images.shape[1], latent)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    seen, unseen = (torch.tensor(part, dtype=torch.float32) for part in (images, fresh))
    for epoch in range(1, epochs[-1] + 1):
        for part in torch.randperm(len(seen)).split(BATCH):
            optimizer.zero_grad()
            (-model.bound(seen[part]).mean()).backward()
            optimizer.step()
        if epoch in epochs:
            with torch.no_grad():
                bounds = [float(model.bound(part).mean()) for part in (seen, unseen)]
            yield epoch, model, bounds[0], bounds[1]
