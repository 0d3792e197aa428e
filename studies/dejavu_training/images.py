"""Toy photographs: a background of its own for each image, a tint that hints at the class, the class's pattern."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]  # (n, 3, SIDE, SIDE)

SIDE, PATTERN, TINTS, CLASSES = 32, 14, 4, 10
CORNER = 10  # pixels of the lower-left corner: .3 of the side, rounded up
HINT = 0.3  # share of images whose tint follows the class
CONTRAST = 4.0  # of patterns over backgrounds


@dataclass(frozen=True)
class World:
    """Ten patterns and four tints: what all images of one seed have in common."""

    patterns: NDArray[np.float64]  # (CLASSES, 3, PATTERN, PATTERN)
    tints: NDArray[np.float64]  # (TINTS, 3)

    @classmethod
    def of(cls, rng: np.random.Generator) -> "World":
        """A world of its own."""
        patterns = CONTRAST * np.stack([smooth(rng, PATTERN, 4) for _ in range(CLASSES)])
        return cls(patterns, rng.normal(size=(TINTS, 3)))

    def images(self, labels: NDArray[np.int64], rng: np.random.Generator) -> Images:
        """One image for each label; its pattern never touches the lower-left corner."""
        made = np.stack([self._image(int(label), rng) for label in labels])
        return made.astype(np.float32)

    def _image(self, label: int, rng: np.random.Generator) -> NDArray[np.float64]:
        tint = label % TINTS if rng.random() < HINT else int(rng.integers(TINTS))
        image = smooth(rng) + 0.7 * self.tints[tint][:, None, None]
        top, left = pattern_place(rng)
        image[:, top : top + PATTERN, left : left + PATTERN] = self.patterns[label]
        return image


def smooth(rng: np.random.Generator, side: int = SIDE, waviness: int = 5) -> NDArray[np.float64]:
    """A random field of low frequencies in three colours, standard deviation about 1 over fields."""
    axis = (np.arange(side) + 0.5) / side
    waves = np.stack([np.cos(np.pi * k * axis) for k in range(waviness)])
    weight = 1.0 / (1.0 + np.arange(waviness)[:, None] + np.arange(waviness)[None, :])
    amplitudes = rng.normal(size=(3, waviness, waviness)) * weight
    field = np.einsum("ckl,ky,lx->cyx", amplitudes, waves, waves)
    return np.asarray(field / np.sqrt((weight**2).sum() / 2))


def pattern_place(rng: np.random.Generator) -> tuple[int, int]:
    """Top and left of a pattern that leaves the lower-left corner alone."""
    while True:
        top, left = (int(one) for one in rng.integers(SIDE - PATTERN + 1, size=2))
        if top + PATTERN <= SIDE - CORNER or left >= CORNER:
            return top, left


def balanced(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """n labels, each class as often as the others."""
    return rng.permutation(np.arange(n) % CLASSES)


def corners(images: Images) -> Images:
    """The lower-left corner of each image."""
    return images[:, :, SIDE - CORNER :, :CORNER]
