"""A row of 16 or 32 prefix counts, read and updated with one vector comparison and one vector subtraction.

The row c_0 = 0 <= c_1 <= .. belongs to a node with as many children; c_i counts the items of the children before i.

* Which child holds the item of this rank? The last one with c_i <= rank, that is: all children minus the number of
  counts above the rank.
* The item is taken out: every count above the rank is lowered by one.

`prefix_counts` does so in plain numpy. A processor with vector registers does each line for all counts at once. numba
has no vector types, so the lines are written down for LLVM, the compiler behind numba. The functions below `lower`
build that text once, when a kernel is compiled; none of them runs when items are taken:

* `builder.load` and `.store` read and write the row as one value of type <32 x i16> (32 numbers of 16 bits);
* `insert_element` and `shuffle_vector` copy the rank into every lane of such a value;
* `icmp_unsigned` compares lane by lane and gives a bit for each; `sext` makes of a true bit a lane of ones, which is
  the number -1, so that adding it lowers the count;
* `bitcast` reads the 32 bits as one integer, and `ctpop` counts those that are set.

LLVM fits this to the machine, down to one number at a time where there are no vector registers. Tested equal to the
plain version; `benchmarks/mallows_speed.py` states what it is worth.
"""

from typing import Any

from dovetail.core.compiled import njit
from dovetail.core.extras import require
from dovetail.shuffle.sampling.prefix_counts import LANES16, LANES32, Counts16, Counts32, Index

ir = require("llvmlite.ir", extra="fast")
types = require("numba", extra="fast").types
intrinsic = require("numba.extending", extra="fast").intrinsic

_WORD = ir.IntType(32)


@njit(cache=True, nogil=True, inline="always")
def take(counts: Counts16, first: Index, rank: Index) -> int:
    """Take the item of this rank out of the row counts[first : first + 32]: (child << 16) | items before it."""
    result: int = _take(counts.ctypes.data + 2 * first, rank)
    return result


@njit(cache=True, nogil=True, inline="always")
def lower(counts: Counts32, first: Index, rank: Index) -> int:
    """Subtract 1 from each count above `rank` in the row counts[first : first + 16]; returns how many are."""
    result: int = _lower(counts.ctypes.data + 4 * first, rank)
    return result


def _lower_row(builder: Any, address: Any, rank: Any, *, bits: int, lanes: int) -> tuple[Any, Any]:
    """Subtract 1 from each count above `rank`; the counts before, and the bits of those above as one integer."""
    lane = ir.IntType(bits)
    row = ir.VectorType(lane, lanes)
    place = builder.inttoptr(address, row.as_pointer())
    counts = builder.load(place, align=bits // 8)
    one = builder.insert_element(ir.Constant(row, ir.Undefined), builder.trunc(rank, lane), ir.Constant(_WORD, 0))
    zeros = ir.Constant(ir.VectorType(_WORD, lanes), [0] * lanes)
    above = builder.icmp_unsigned(">", counts, builder.shuffle_vector(one, ir.Constant(row, ir.Undefined), zeros))
    builder.store(builder.add(counts, builder.sext(above, row)), place, align=bits // 8)
    return counts, builder.bitcast(above, ir.IntType(lanes))


@intrinsic
def _take_at(typing: Any, address: Any, rank: Any) -> Any:
    """`take` for the 32 uint16 at an address in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counts, mask = _lower_row(builder, *arguments, bits=16, lanes=LANES16)
        child = builder.sub(ir.Constant(_WORD, LANES16 - 1), builder.ctpop(mask))
        before = builder.extract_element(counts, child)
        wide = ir.IntType(64)
        return builder.or_(builder.shl(builder.zext(child, wide), ir.Constant(wide, 16)), builder.zext(before, wide))

    return types.int64(types.uintp, types.int64), generate


@intrinsic
def _lower_at(typing: Any, address: Any, rank: Any) -> Any:
    """`lower` for the 16 uint32 at an address in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, mask = _lower_row(builder, *arguments, bits=32, lanes=LANES32)
        return builder.zext(builder.ctpop(mask), ir.IntType(64))

    return types.int64(types.uintp, types.int64), generate


_take: Any = _take_at  # numba calls them with two arguments, mypy would ask for three
_lower: Any = _lower_at
