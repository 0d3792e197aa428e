"""An autoencoder of digits in numpy alone, in whose codes distances are measured; nothing here knows of the test."""

from collections.abc import Callable

import numpy as np
from studies.perceptron import Network, Rows

CODE, WIDTH, BATCH, EPOCHS, HINGE = 64, 256, 100, 20, 0.1


def encoder_of(images: Rows, *, seed: int) -> Callable[[Rows], Rows]:
    """Codes of images, from a perceptron 784-256-64-256-784 with a hinge outside of the unit ball.

    The loss of pixels stands in the place of the dissertation's perceptual one, which needs another network.
    """
    rng = np.random.default_rng(seed)
    shown = np.asarray(images, dtype=np.float32)
    sizes = (shown.shape[1], WIDTH, CODE)
    encoder, decoder = Network(sizes, rng), Network(sizes[::-1], rng)
    for _ in range(EPOCHS):
        for chosen in np.split(rng.permutation(len(shown)), range(BATCH, len(shown), BATCH)):
            coded = encoder.forward(shown[chosen])
            drawn = decoder.forward(coded[-1])
            outside = (coded[-1] ** 2).sum(axis=1, keepdims=True) > 1.0
            slope = decoder.step(drawn, 2.0 * (drawn[-1] - shown[chosen]) / len(chosen), rate=1e-3)
            encoder.step(coded, slope + 2.0 * HINGE * outside * coded[-1] / len(chosen), rate=1e-3)
    return lambda rows: encoder.forward(np.asarray(rows, dtype=np.float32))[-1].astype(np.float64)
