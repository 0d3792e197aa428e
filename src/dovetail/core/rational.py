"""Probabilities as whole numbers: the thresholds that randomizers and shufflers compare random words with.

Everything here is exact rational arithmetic of the standard library, free of numpy, so that a light device client
shares it with the analyst. An exponential is only ever used through a bracket of fractions that contains it.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dovetail.core.errors import ParameterError

WORD = 1 << 64  # a uniform 64-bit word stands for the interval [word, word + 1) / WORD


@lru_cache(maxsize=4096)
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

    def resolve(self, uniform: int, bits: int) -> int | None:
        """The c that every number in [uniform, uniform + 1) / 2^bits stands for, or None if it takes more bits."""
        low, high = 0, 1
        while self.size is None or high < self.size:  # double until c < high
            side = self._beyond(high - 1, uniform, bits)
            if side is None:
                return None
            if not side:
                break
            low, high = high, 2 * high
        high = high if self.size is None else min(high, self.size)
        while high - low > 1:  # low <= c < high
            middle = (low + high) // 2
            side = self._beyond(middle - 1, uniform, bits)
            if side is None:
                return None
            low, high = (middle, high) if side else (low, middle)
        return low

    def _beyond(self, k: int, uniform: int, bits: int) -> bool | None:
        """Whether all of [uniform, uniform + 1) / 2^bits stands for c > k (True), c <= k (False), or unclear."""
        low, high = self._distribution(k, bits)
        if uniform >= high * (1 << bits):
            return True
        return False if uniform + 1 <= low * (1 << bits) else None

    def _distribution(self, k: int, bits: int) -> tuple[Fraction, Fraction]:
        if self.rate == 0:
            assert self.size is not None
            return Fraction(k + 1, self.size), Fraction(k + 1, self.size)
        digits = (bits + self._depth()) // 3 + 40
        low, high = exp_bracket(-self.rate * (k + 1), digits)
        if self.size is None:
            return 1 - high, 1 - low
        end_low, end_high = exp_bracket(-self.rate * self.size, digits)
        return (1 - high) / (1 - end_low), (1 - low) / (1 - end_high)

    def _depth(self) -> int:
        """Bits that a tiny rate costs: 1 - e^-rate is about 2^-depth."""
        return max(0, self.rate.denominator.bit_length() - self.rate.numerator.bit_length() + 1)

    def _floors(self, count: int, bits: int) -> list[int] | None:
        """The thresholds in fixed point with `bits` fractional bits, or None if that is too coarse."""
        one = 1 << bits
        low_q, high_q = (int(end * one) + up for end, up in zip(self._factor(bits), (0, 1), strict=True))
        end_low, end_high = (0, 0) if self.size is None else self._end(bits)
        low, high, floors = low_q, high_q, []
        for _ in range(count):
            floor = ((one - high) * WORD) // (one - end_low)
            if floor != ((one - low) * WORD) // (one - end_high):
                return None
            floors.append(floor)
            low, high = (low * low_q) >> bits, ((high * high_q) >> bits) + 1
        return floors

    def _factor(self, bits: int) -> tuple[Fraction, Fraction]:
        return exp_bracket(-self.rate, bits // 3 + 10)

    def _end(self, bits: int) -> tuple[int, int]:
        assert self.size is not None
        low, high = exp_bracket(-self.rate * self.size, bits // 3 + 10)
        return int(low * (1 << bits)), int(high * (1 << bits)) + 1
