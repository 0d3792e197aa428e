"""Probabilities as whole numbers: the thresholds that randomizers and shufflers compare random words with.

Everything here is exact rational arithmetic of the standard library, so that device and analyst compute the same
thresholds on every platform. An exponential is only ever used through a bracket of fractions that contains it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import final

from dovetail_protocol.checks import whole
from dovetail_protocol.errors import ParameterError

# Random bits as the exact samplers ask for them; the caller of a sampler decides where they come from.


class Words(ABC):
    """A source of random bits; law: all bits ever returned are independent and fair."""

    @abstractmethod
    def bits(self, count: int) -> int:
        """A uniform whole number of `count` bits, at least 0 bits."""

    @final
    def word(self) -> int:
        """A uniform 64-bit word."""
        return self.bits(64)

    @final
    def below(self, bound: int) -> int:
        """A whole number, exactly uniform on [0, bound), by rejection; bound at least 1."""
        size = (whole("bound", bound, least=1) - 1).bit_length()
        while (drawn := self.bits(size)) >= bound:
            pass
        return drawn


_DIGIT = 12  # bits that small rates split off a geometric number at a time
_LONGEST_TAIL = 8192  # values after which the tail of a geometric law must hold less than e^-45 to need no splitting

WORD = 1 << 64  # a uniform 64-bit word stands for the interval [word, word + 1) / WORD


def as_written(value: float) -> Fraction:
    """The decimal number that a file or a person wrote: ten reports of 0.1 cost 1, not 1 + 6e-17 as their doubles do.

    Examples
    --------
    >>> as_written(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


def exp_bracket(x: Fraction, digits: int = 60) -> tuple[Fraction, Fraction]:
    """Fractions (low, high) with low <= e^x <= high and relative width below 10^(2 - digits).

    >>> low, high = exp_bracket(Fraction(1))
    >>> float(low), high - low < Fraction(1, 10**57)
    (2.718281828459045, True)
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    ends = []
    for rounding in (ROUND_FLOOR, ROUND_CEILING):
        context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
        argument = context.divide(Decimal(x.numerator), Decimal(x.denominator))
        ends.append(context.exp(argument))  # decimal's exp is correctly rounded: off by half a unit at most
    context = Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return Fraction(context.next_minus(ends[0])), Fraction(context.next_plus(ends[1]))


@lru_cache(maxsize=256)
def exp_floor(x: float, *, scale: int = 1) -> int:
    """floor(scale e^x), the same on every platform, as no `exp` of floats is; x above 0.

    >>> exp_floor(1.0), exp_floor(1.0, scale=1000)
    (2, 2718)
    """
    return int(scale * max(Fraction(1), exp_bracket(Fraction(x))[0]))


@lru_cache(maxsize=256)  # of public parameters only: nothing that depends on a value or a draw is ever kept
def krr_masses(k: int, epsilon: float, total: int = WORD) -> tuple[int, int]:
    r"""Whole masses (keep, lie) with keep + (k - 1) lie = total and keep / lie <= e^epsilon, as near as can be.

    .. math:: \mathrm{lie} = \lceil \mathrm{total} / (e^{\epsilon} + k - 1) \rceil

    >>> krr_masses(2, 1.0, total=1000)
    (731, 269)
    """
    ceiling = exp_bracket(Fraction(epsilon))[0]
    lie = -((-total) // (ceiling + (k - 1)))
    keep = total - (k - 1) * lie
    if keep <= lie:
        raise ParameterError(
            f"`epsilon` = {epsilon!r} with `k` = {k:,} is too small for {total.bit_length() - 1}-bit "
            "probabilities: keeping the value would be no likelier than each lie."
        )
    return keep, int(lie)


def unary_masses(epsilon: float, *, symmetric: bool) -> tuple[int, int]:
    r"""Whole masses (one_if_one, one_if_zero) out of 2^64 for the bits of unary encoding.

    .. math:: \frac{p}{1-p} \cdot \frac{1-q}{q} \le e^{\epsilon}

    symmetric: p = 1 - q = e^(eps/2) / (e^(eps/2) + 1) (basic RAPPOR); otherwise p = 1/2, q = 1 / (e^eps + 1)
    (optimized unary encoding). Erlingsson, Pihur, Korolova (2014); Wang, Blocki, Li, Jha (2017).
    """
    if symmetric:
        keep, lie = krr_masses(2, epsilon / 2)
        return keep, lie
    return WORD // 2, krr_masses(2, epsilon)[1]


@dataclass(frozen=True)
class GeometricLaw:
    r"""Geometric law on 0..size-1, or on all whole numbers when `size` is None, as exact thresholds.

    .. math:: \Pr[c = k] \propto e^{-\mathrm{rate}\, k}, \qquad
              F(k) = \Pr[c \le k] = \frac{1 - e^{-\mathrm{rate}(k+1)}}{1 - e^{-\mathrm{rate}\,\mathrm{size}}}

    Parameters
    ----------
    rate : Fraction, at least 0 (above 0 when `size` is None)
    size : int, at least 1, or None
    """

    rate: Fraction
    size: int | None = None

    def thresholds(self, count: int) -> list[int]:
        """floor(2^64 F(k)) for k = 0..count-1: a word below threshold k certainly means c <= k."""
        if self.rate == 0:
            assert self.size is not None
            return [WORD * (k + 1) // self.size for k in range(count)]
        if self.rate >= 64:  # 1 - F(0) is at most e^-64 < 2^-92: all but the last word certainly mean 0
            return [WORD - 1] * count
        bits = 160 + self._depth()
        while True:
            floors = self._floors(count, bits)
            if floors is not None:
                return floors
            bits *= 2

    def settle(self, word: int, more: Callable[[], int]) -> int:
        """The c that a uniform number stands for: its first 64 bits are `word`, and `more` draws further words."""
        uniform, bits = word, 64
        while (c := self.resolve(uniform, bits)) is None:
            uniform, bits = uniform * WORD + more(), bits + 64
        return c

    def resolve(self, uniform: int, bits: int) -> int | None:
        r"""The c that every number in [uniform, uniform + 1) / 2^bits stands for, or None if it takes more bits.

        .. math:: c \ge m \iff F(m - 1) \le U \iff e^{-\mathrm{rate}\, m} \ge 1 - U (1 - e^{-\mathrm{rate}\,
                  \mathrm{size}})

        One binary digit of c after the other, from the highest, in fixed point with brackets.
        """
        if self.rate == 0:
            assert self.size is not None
            first, last = uniform * self.size >> bits, (uniform + 1) * self.size - 1 >> bits
            return first if first == last else None
        places = bits + 2 * self._depth() + 64
        rest_low, rest_high = self._rest(uniform, bits, places)
        if rest_low <= 0 and self.size is None:
            return None  # the tail has no end
        c, low, high = 0, 1 << places, 1 << places  # low <= 2^places e^(-rate c) <= high
        for place, (power_low, power_high) in reversed(list(enumerate(self._powers(places, rest_low)))):
            more, next_low, next_high = c + (1 << place), low * power_low >> places, (high * power_high >> places) + 1
            if self.size is not None and more >= self.size:
                continue
            if next_low >= rest_high:
                c, low, high = more, next_low, next_high
            elif next_high > rest_low:
                return None
        return c

    def _rest(self, uniform: int, bits: int, places: int) -> tuple[int, int]:
        """Bracket of 1 - U (1 - e^(-rate size)) in fixed point: above the lower end, at most the upper one."""
        one, (end_low, end_high) = 1 << places, self._end(places)
        return one + (-(uniform + 1) * (one - end_low) >> bits), one - (uniform * (one - end_high) >> bits)

    def _powers(self, places: int, least: int) -> list[tuple[int, int]]:
        """Brackets of e^(-rate 2^j) in fixed point, for each binary digit j of a c with e^(-rate c) above `least`."""
        powers = [self._factor(places)]
        while powers[-1][1] > least and (self.size is None or 1 << len(powers) < self.size):
            low, high = powers[-1]
            powers.append((low * low >> places, (high * high >> places) + 1))
        return powers

    def _depth(self) -> int:
        """Bits that a tiny rate costs: 1 - e^-rate is about 2^-depth."""
        return max(0, self.rate.denominator.bit_length() - self.rate.numerator.bit_length() + 1)

    def _floors(self, count: int, bits: int) -> list[int] | None:
        """The thresholds in fixed point with `bits` fractional bits, or None if that is too coarse."""
        one = 1 << bits
        (low_q, high_q), (end_low, end_high) = self._factor(bits), self._end(bits)
        low, high, floors = low_q, high_q, []
        for _ in range(count):
            floor = ((one - high) * WORD) // (one - end_low)
            if floor != ((one - low) * WORD) // (one - end_high):
                return None
            floors.append(floor)
            low, high = (low * low_q) >> bits, ((high * high_q) >> bits) + 1
        return floors

    def _factor(self, bits: int) -> tuple[int, int]:
        """Bracket of e^-rate in fixed point."""
        return _fixed(self.rate, bits)

    def _end(self, bits: int) -> tuple[int, int]:
        """Bracket of e^(-rate size) in fixed point."""
        return (0, 0) if self.size is None else _fixed(self.rate * self.size, bits)


def _fixed(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Bracket of e^-exponent in fixed point with `bits` fractional bits."""
    low, high = exp_bracket(-exponent, bits // 3 + 10)
    return int(low * (1 << bits)), int(high * (1 << bits)) + 1


def geometric_digits(rate: Fraction, bits: int | None = None) -> list[tuple[GeometricLaw, int]]:
    r"""Independent digits of a geometric number on [0, 2^bits), or on all whole numbers: their laws and their shifts.

    .. math:: c = \sum_j d_j 2^{s_j}, \qquad e^{-\mathrm{rate}\, c} = \prod_j e^{-(\mathrm{rate}\, 2^{s_j})\, d_j}

    Small rates are split so that no digit needs a long table.

    >>> geometric_digits(Fraction(1, 2))
    [(GeometricLaw(rate=Fraction(1, 2), size=None), 0)]
    """
    digits, shift = [], 0
    while bits is None or shift < bits:
        left, scaled = None if bits is None else bits - shift, rate * (1 << shift)
        if scaled > 0 and ceil(45 / scaled) <= _LONGEST_TAIL:
            digits.append((GeometricLaw(scaled, None if left is None else 1 << left), shift))
            break
        size = _DIGIT if left is None else min(_DIGIT, left)
        digits.append((GeometricLaw(scaled, 1 << size), shift))
        shift += size
    return digits
