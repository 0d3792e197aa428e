"""Rows of small pictures as one PNG inside the page: what was generated above what it is nearest to."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]  # (h, w, 3)


def image_strip(rows: Sequence[Sequence[Pixels]], *, title: str, gap: int = 2) -> Markup:
    """Rows of equally large pictures, one below the other, as an <img> that needs no file."""
    lines = [np.concatenate([_framed(picture, gap) for picture in row], axis=1) for row in rows]
    data = b64encode(png(np.concatenate(lines, axis=0))).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(title, data)


def as_pixels(picture: NDArray[np.generic], *, low: float, high: float) -> Pixels:
    """A picture (h, w), (h, w, 1) or (h, w, 3) with numbers from `low` to `high`."""
    whole = np.asarray(picture, dtype=np.float64)
    whole = whole[:, :, None] if whole.ndim == 2 else whole
    scaled = np.clip((whole - low) / max(high - low, 1e-300), 0.0, 1.0)
    return np.asarray(np.rint(255 * np.broadcast_to(scaled, (*whole.shape[:2], 3))), dtype=np.uint8)


def png(pixels: Pixels) -> bytes:
    """The file format, without a library: one filter byte before each line of RGB."""
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _framed(picture: Pixels, gap: int) -> Pixels:
    return np.pad(picture, ((gap, gap), (gap, gap), (0, 0)), constant_values=255)
