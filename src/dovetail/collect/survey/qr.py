"""QR codes of short texts, as SVG: byte mode, error correction M, versions 1 to 10 (ISO/IEC 18004:2015)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from dovetail.core.errors import DataError

_CHECKS = (10, 16, 26, 18, 24, 16, 18, 22, 22, 26)  # codewords of error correction in a block, by version
_BLOCKS = (1, 1, 1, 2, 2, 4, 4, 4, 5, 5)
_MASKS: tuple[Callable[[int, int], int], ...] = (
    lambda x, y: (x + y) % 2,
    lambda _, y: y % 2,
    lambda x, _: x % 3,
    lambda x, y: (x + y) % 3,
    lambda x, y: (x // 3 + y // 2) % 2,
    lambda x, y: x * y % 2 + x * y % 3,
    lambda x, y: (x * y % 2 + x * y % 3) % 2,
    lambda x, y: ((x + y) % 2 + x * y % 3) % 2,
)

Modules = list[list[bool]]


def svg(text: str) -> str:
    """The code as a picture without size, with the quiet zone of four modules; DataError for more than 213 bytes."""
    found = modules(text)
    side = len(found) + 8
    path = "".join(f"M{x + 4} {y + 4}h1v1h-1z" for y, row in enumerate(found) for x, dark in enumerate(row) if dark)
    return f'<svg viewBox="0 0 {side} {side}" role="img" aria-label="QR"><path d="{path}"/></svg>'


def modules(text: str) -> Modules:
    """Rows of dark and light modules, with the mask that has the fewest runs."""
    data = text.encode()
    version = next((v for v in range(1, 11) if len(data) <= _room(v) - (2 if v < 10 else 3)), None)
    if version is None:
        raise DataError("a QR code here holds at most 213 bytes.")
    words = _interleave(_encode(data, version), version)
    return min((_drawn(words, version, mask) for mask in range(8)), key=_penalty)


def _codewords(version: int) -> int:
    """How many codewords a symbol holds, of data and of error correction together."""
    bits = (16 * version + 128) * version + 64
    if version >= 2:
        align = version // 7 + 2
        bits -= (25 * align - 10) * align - 55 + (36 if version >= 7 else 0)
    return bits // 8


def _room(version: int) -> int:
    return _codewords(version) - _CHECKS[version - 1] * _BLOCKS[version - 1]


def _encode(data: bytes, version: int) -> bytes:
    """Mode, length, data, terminator and padding."""
    length, room = 8 if version < 10 else 16, _room(version)
    bits = f"0100{len(data):0{length}b}" + "".join(f"{byte:08b}" for byte in data) + "0000"
    bits = bits[: 8 * room]
    bits += "0" * (-len(bits) % 8)
    packed = bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits), 8))
    return packed + bytes((0xEC, 0x11)[place % 2] for place in range(room - len(packed)))


def _interleave(data: bytes, version: int) -> bytes:
    """Blocks with their error correction, byte by byte in turn."""
    count, checks = _BLOCKS[version - 1], _CHECKS[version - 1]
    short, long = len(data) // count, len(data) % count  # the last blocks are longer by one
    blocks, place = [], 0
    for number in range(count):
        size = short + (number >= count - long)
        blocks.append(data[place : place + size])
        place += size
    corrections = [_remainder(block, _generator(checks)) for block in blocks]
    mixed = [block[i] for i in range(short + 1) for block in blocks if i < len(block)]
    return bytes(mixed + [each[i] for i in range(checks) for each in corrections])


def _times(a: int, b: int) -> int:
    """Product in GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    for place in range(7, -1, -1):
        product = (product << 1) ^ (product >> 7) * 0x11D ^ (b >> place & 1) * a
    return product


def _generator(degree: int) -> list[int]:
    """Coefficients of the product of (x - 2^i), i below the degree, without the first one."""
    found, root = [0] * (degree - 1) + [1], 1
    for _ in range(degree):
        for place in range(degree):
            found[place] = _times(found[place], root) ^ (found[place + 1] if place + 1 < degree else 0)
        root = _times(root, 2)
    return found


def _remainder(data: bytes, generator: Sequence[int]) -> list[int]:
    left = [0] * len(generator)
    for byte in data:
        factor = byte ^ left.pop(0)
        left.append(0)
        left = [each ^ _times(part, factor) for each, part in zip(left, generator, strict=True)]
    return left


def _drawn(words: bytes, version: int, mask: int) -> Modules:
    side, (fixed, free) = 17 + 4 * version, _layout(version)
    dark = [[False] * side for _ in range(side)]
    for (x, y), each in (*fixed.items(), *_format(side, mask)):
        dark[y][x] = each
    bits = (byte >> place & 1 for byte in words for place in range(7, -1, -1))
    for x, y in free:
        dark[y][x] = bool(next(bits, 0)) ^ (not _MASKS[mask](x, y))
    return dark


@cache
def _layout(version: int) -> tuple[dict[tuple[int, int], bool], list[tuple[int, int]]]:
    """The pattern of every symbol of a version, and the places of its data, in order."""
    side = 17 + 4 * version
    fixed = dict(_patterns(version, side))
    taken = fixed.keys() | dict(_format(side, 0)).keys()
    return fixed, [place for place in _zigzag(side) if place not in taken]


def _zigzag(side: int) -> Iterator[tuple[int, int]]:
    """Places in the order of data: pairs of columns from the right, up and down in turn, timing left out."""
    for number, right in enumerate([*range(side - 1, 6, -2), *range(5, 0, -2)]):
        for step in range(side):
            y = side - 1 - step if number % 2 == 0 else step
            yield from ((right, y), (right - 1, y))


def _patterns(version: int, side: int) -> Iterator[tuple[tuple[int, int], bool]]:
    """Timing, finders, alignment and version."""
    for place in range(side):
        yield from (((6, place), place % 2 == 0), ((place, 6), place % 2 == 0))
    for left, top in ((3, 3), (side - 4, 3), (3, side - 4)):
        for x, y in ((x, y) for x in range(-4, 5) for y in range(-4, 5)):
            if 0 <= left + x < side and 0 <= top + y < side:
                yield (left + x, top + y), max(abs(x), abs(y)) not in (2, 4)
    centres = _centres(version, side)
    last = len(centres) - 1
    for i, j in ((i, j) for i in range(last + 1) for j in range(last + 1)):
        if (i, j) not in ((0, 0), (0, last), (last, 0)):
            for x, y in ((x, y) for x in range(-2, 3) for y in range(-2, 3)):
                yield (centres[i] + x, centres[j] + y), max(abs(x), abs(y)) != 1
    if version >= 7:
        bits = version << 12 | _bch(version, 12, 0x1F25)
        for place in range(18):
            a, b, dark = side - 11 + place % 3, place // 3, bool(bits >> place & 1)
            yield from (((a, b), dark), ((b, a), dark))


def _centres(version: int, side: int) -> list[int]:
    if version == 1:
        return []
    count = version // 7 + 2
    step = (version * 4 + count * 2 + 1) // (count * 2 - 2) * 2
    return [6, *(side - 7 - step * place for place in range(count - 2, -1, -1))]


def _format(side: int, mask: int) -> Iterator[tuple[tuple[int, int], bool]]:
    """Level M (00) and the mask, twice, with their own error correction; and the module that is always dark."""
    bits = (mask << 10 | _bch(mask, 10, 0x537)) ^ 0x5412
    near = [*((8, y) for y in (0, 1, 2, 3, 4, 5, 7, 8)), *((x, 8) for x in (7, 5, 4, 3, 2, 1, 0))]
    far = [*((side - 1 - place, 8) for place in range(8)), *((8, side - 15 + place) for place in range(8, 15))]
    for places in (near, far):
        yield from ((place, bool(bits >> number & 1)) for number, place in enumerate(places))
    yield (8, side - 8), True


def _bch(value: int, places: int, divisor: int) -> int:
    left = value
    for _ in range(places):
        left = (left << 1) ^ (left >> places - 1) * divisor
    return left


def _penalty(found: Modules) -> int:
    """Modules in runs of five and more, in rows and columns: what readers lose their place in."""
    total = 0
    for line in (*found, *map(list, zip(*found, strict=True))):
        run = 0
        for place, dark in enumerate(line):
            run = run + 1 if place and dark == line[place - 1] else 1
            total += run >= 5
    return total
