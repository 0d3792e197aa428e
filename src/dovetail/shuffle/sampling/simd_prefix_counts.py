"""Thirty-two counters at once: one comparison and one subtraction for a whole row, on vector registers where there
are any.

A row of prefix counts c_0 = 0 <= c_1 <= .. answers "which child holds the item of this rank" by comparing all counts
with the rank; taking the item out lowers every count above it by one. numba has no vector types, so the instructions
are written down for LLVM, which fits them to the machine (and to scalar code where it must).
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LANES16 = 32
LANES32 = 16

_WORD = ir.IntType(32)


def _lower(builder: Any, address: Any, rank: Any, *, bits: int, lanes: int) -> tuple[Any, Any]:
    """Subtract 1 from each count above `rank`; returns the counts before and a mask of those above."""
    lane = ir.IntType(bits)
    row = ir.VectorType(lane, lanes)
    place = builder.inttoptr(address, row.as_pointer())
    counts = builder.load(place, align=bits // 8)
    one = builder.insert_element(ir.Constant(row, ir.Undefined), builder.trunc(rank, lane), ir.Constant(_WORD, 0))
    zeros = ir.Constant(ir.VectorType(_WORD, lanes), [0] * lanes)
    above = builder.icmp_unsigned(">", counts, builder.shuffle_vector(one, ir.Constant(row, ir.Undefined), zeros))
    builder.store(builder.add(counts, builder.sext(above, row)), place, align=bits // 8)  # true is -1
    return counts, builder.bitcast(above, ir.IntType(lanes))


@intrinsic
def _take(typing: Any, address: Any, rank: Any) -> Any:
    """Take the item of this rank out of the row of 32 uint16 at `address`: (child << 16) | items before the child."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counts, mask = _lower(builder, *arguments, bits=16, lanes=LANES16)
        child = builder.sub(ir.Constant(_WORD, LANES16 - 1), builder.ctpop(mask))
        before = builder.extract_element(counts, child)
        wide = ir.IntType(64)
        return builder.or_(builder.shl(builder.zext(child, wide), ir.Constant(wide, 16)), builder.zext(before, wide))

    return types.int64(types.uintp, types.int64), generate


@intrinsic
def _lower_all(typing: Any, address: Any, rank: Any) -> Any:
    """Subtract 1 from each of the 16 uint32 at `address` that is above `rank`; returns how many are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, mask = _lower(builder, *arguments, bits=32, lanes=LANES32)
        return builder.zext(builder.ctpop(mask), ir.IntType(64))

    return types.int64(types.uintp, types.int64), generate


take: Any = _take
lower: Any = _lower_all
