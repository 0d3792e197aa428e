"""Questions of a campaign: whose values they take, and which symbols a device makes of them.

A device need not know what the analyzer learns. It is told which values to take, how to round each, and how to number
the places together. Every symbol is randomized, sealed and sent by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import floor, isfinite, isnan, nan, prod
from numbers import Real
from typing import Any, Self

from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.mechanism import numbers, symbol
from dovetail_protocol.toml_section import Section

MOST_VALUES = 32
MOST_SYMBOLS = 256
MOST_LENGTH = 1 << 16
MOST_PLACES = 1 << 24
MOST_DRAWN, MOST_WEIGHT = 16, 1000  # questions of which a device draws one, and how often one against the others
ROUNDINGS = ("list", "bins", "ends", "even", "digits", "spline", "gaps")


@dataclass(frozen=True)
class Value:
    """A value of a person: one of `categories`, a number from `lower` to `upper`, or an array of `length` numbers.

    missing : what no answer is called, where a person may leave the number out; empty if she may not.
    """

    name: str
    lower: float = 0.0
    upper: float = 0.0
    categories: tuple[str, ...] = ()
    missing: str = ""
    length: int = 0

    def check(self, given: Any) -> Any:
        """The number, the array, or the place of the category; DataError, which does not repeat it, for others."""
        if self.length:
            return numbers(given, self.length, name=self.name)
        if self.categories:
            if isinstance(given, str) and given in self.categories:
                return self.categories.index(given)
            if isinstance(given, str):
                raise DataError(f"`{self.name}` must be one of {', '.join(self.categories)}.")
            return symbol(given, len(self.categories), name=self.name)
        if self.missing and (given is None or given == self.missing):
            return nan
        number = isinstance(given, Real) and not isinstance(given, bool)
        if not (number and self.lower <= given <= self.upper):
            left_out = f", or {self.missing!r}" if self.missing else ""
            raise DataError(f"`{self.name}` must be a number in [{self.lower!r}, {self.upper!r}]{left_out}.")
        return float(given)

    def scaled(self, given: float) -> float:
        """The number in ranges above `lower`."""
        return (given - self.lower) / (self.upper - self.lower)


@dataclass(frozen=True)
class Part:
    """The place 0 .. points - 1 of a value, or of the product of two numbers from the middles of their ranges.

    of : names of values, one or two.
    rounding : "list", the place of a category; "bins", the even bin that holds a number, one of `bins` joined to
    `points`; "ends", the one between two of `ends`; "even", one of the two points of an even grid around it, right on
    average; "digits", the same where `points` are a power of three and each ternary digit of the place is sent by
    itself, the last one first; "spline", one of the three points around it, whose squares are right on average too.
    The grid of a spline reaches half a step beyond the range. "gaps", as "even" among all but the last of the points,
    which stands for no answer.
    """

    of: tuple[str, ...]
    rounding: str
    points: int
    bins: int = 0
    ends: tuple[float, ...] = ()

    def place(self, values: Mapping[str, Value], given: Mapping[str, float], words: Words) -> int:
        """The place of what a person holds, for checked values."""
        one = values[self.of[0]]
        held = given[one.name]
        if self.rounding == "list":
            return int(held)
        if self.rounding == "bins":
            return _bin(one, held, self.bins) * self.points // self.bins
        if self.rounding == "ends":
            return min(bisect_right(self.ends, held) - 1, self.points - 1)
        if self.rounding == "spline":
            return _spline(one.scaled(held) * (self.points - 2) + 0.5, self.points, words)
        if self.rounding == "gaps" and isnan(held):
            return self.points - 1
        product, low, high = one.scaled(held) - 0.5, -0.5, 0.5
        if len(self.of) == 2:
            other = values[self.of[1]]
            product *= other.scaled(given[other.name]) - 0.5
            low, high = (0.0 if other is one else -0.25), 0.25
        steps = self.points - (2 if self.rounding == "gaps" else 1)
        scaled = (min(max(product, low), high) - low) / (high - low) * steps
        below = min(floor(scaled), steps - 1)
        return below + (_uniform(words) < scaled - below)


@dataclass(frozen=True)
class Symbol:
    """Places numbered together: the last one counts fastest. Of digits so many symbols, numbered through."""

    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """How many different ones there are."""
        return 3 * self.digits or prod(part.points for part in self.parts)

    @property
    def digits(self) -> int:
        """How many ternary digits are sent instead of one symbol; 0 where one is."""
        return ternary_digits(self.parts[0].points) if self.parts[0].rounding == "digits" else 0


@dataclass(frozen=True)
class Asked:
    """The question to each person.

    question : what the analyzer learns, by its name. settings : of the question, as in the table [question] of a run.
    symbols : numbered one after the other; none where the mechanism takes the number or the array itself.
    """

    question: str
    settings: Mapping[str, Any]
    values: tuple[Value, ...]
    symbols: tuple[Symbol, ...]

    @property
    def size(self) -> int:
        """How many different symbols there are."""
        return sum(one.size for one in self.symbols)

    @property
    def sent(self) -> int:
        """How many symbols a person sends; 0 where the mechanism takes what she holds."""
        return sum(one.digits or 1 for one in self.symbols)

    @property
    def digits(self) -> int:
        """How many of them are ternary digits of one number; 0 where none are."""
        return sum(one.digits for one in self.symbols)

    def check(self, given: Any) -> tuple[Any, ...]:
        """The values of a person in their order, from a mapping by name, a sequence, or one value by itself."""
        names = [one.name for one in self.values]
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise DataError(f"`value` must have exactly the names {', '.join(names)}.")
            given = [given[name] for name in names]
        elif isinstance(given, str) or not isinstance(given, Sequence) or self._is_array(given):
            given = [given]
        if len(given) != len(names):
            raise DataError(f"`value` must have {len(names)} parts: {', '.join(names)}.")
        return tuple(one.check(each) for one, each in zip(self.values, given, strict=True))

    def _is_array(self, given: Sequence[Any]) -> bool:
        """True if this is the array of a person by itself, and no sequence of her values."""
        return self.values[0].length > 0 and (len(given) != 1 or isinstance(given[0], Real))

    def answers(self, checked: Sequence[Any], words: Words) -> list[Any]:
        """Turn checked values into what a device hands to its mechanism, one after the other."""
        if not self.symbols:
            return [checked[0]]
        values = {one.name: one for one in self.values}
        held = dict(zip(values, checked, strict=True))
        found, first = [], 0
        for each in self.symbols:
            place = 0
            for part in each.parts:
                place = place * part.points + part.place(values, held, words)
            if each.digits:
                found += [first + 3 * digit + place // 3**digit % 3 for digit in range(each.digits)]
            else:
                found.append(first + place)
            first += each.size
        return found

    def stated(self) -> dict[str, Any]:
        """The table of a campaign file."""
        values: list[dict[str, Any]] = [
            {"name": one.name, "categories": list(one.categories)}
            if one.categories
            else {"name": one.name, "length": one.length}
            if one.length
            else {"name": one.name, "lower": one.lower, "upper": one.upper}
            | ({"missing": one.missing} if one.missing else {})
            for one in self.values
        ]
        symbols = [
            [
                {"of": list(part.of), "rounding": part.rounding, "points": part.points}
                | ({"bins": part.bins} if part.bins else {})
                | ({"ends": list(part.ends)} if part.ends else {})
                for part in one.parts
            ]
            for one in self.symbols
        ]
        return {"question": self.question, "settings": dict(self.settings), "values": values, "symbols": symbols}


JOINT, ONE = TOGETHER = "joint", "one"  # the answers to all questions in one report, or to one that is drawn


@dataclass(frozen=True)
class AskedTogether:
    """Several questions of each person, whose answers stay together in one report, or of which one is drawn.

    each : the questions, about values of different names, each with one answer of a person.
    symbols : none where the answer is the tuple of all answers, each for a mechanism of its own; one where it is the
    combination of them, among dummies of combinations; where one question is drawn among dummies, those of all of
    them, numbered one after the other.
    weights : how often each question is drawn among dummies, against the others; else the mechanism says it.
    """

    each: tuple[Asked, ...]
    question: str = field(default=JOINT, repr=False)  # the mechanism says it, too
    symbols: tuple[Symbol, ...] = ()
    weights: tuple[int, ...] = ()

    @classmethod
    def combined(cls, each: tuple[Asked, ...]) -> Self:
        """The questions, whose answers make one symbol: that of the last question counts fastest."""
        symbol = Symbol(tuple(part for one in each for own in one.symbols for part in own.parts))
        return cls(each, symbols=(symbol,))

    @classmethod
    def united(cls, each: tuple[Asked, ...], weights: tuple[int, ...]) -> Self:
        """The questions, of which a device draws one: a symbol says which, and the answer to it."""
        return cls(each, ONE, tuple(symbol for one in each for symbol in one.symbols), weights)

    @property
    def digits(self) -> int:
        """How many ternary digits of a number a person sends, whichever question is drawn; 0 where none are."""
        return self.each[0].digits if self.weights else 0

    @property
    def size(self) -> int:
        """How many different symbols there are."""
        return sum(one.size for one in self.symbols)

    @property
    def sent(self) -> int:
        """How many symbols a person sends; 0 where the mechanism takes the tuple of her answers."""
        return self.each[0].sent if self.weights else len(self.symbols)

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of all questions, one after the other."""
        return tuple(value for one in self.each for value in one.values)

    def check(self, given: Any) -> tuple[Any, ...]:
        """The values of a person in their order, as `Asked.check` takes them."""
        return Asked(self.question, {}, self.values, ()).check(given)

    def answers(self, checked: Sequence[Any], words: Words) -> list[Any]:
        """The one answer that a device hands to its mechanism: a tuple with a part for each question, or a symbol."""
        if self.weights:
            return self._drawn(checked, words)
        if self.symbols:
            return Asked(JOINT, {}, self.values, self.symbols).answers(checked, words)
        found, left = [], list(checked)
        for one in self.each:
            found += one.answers(left[: len(one.values)], words)
            left = left[len(one.values) :]
        return [tuple(found)]

    def _drawn(self, checked: Sequence[Any], words: Words) -> list[Any]:
        """The symbols of one question, which is drawn by chance alone, whatever is held."""
        *ends, last = accumulate(self.weights)
        place = bisect_right(ends, words.below(last))
        before = sum(len(one.values) for one in self.each[:place])
        own = self.each[place]
        found = own.answers(checked[before : before + len(own.values)], words)
        return [self.firsts[place] + symbol for symbol in found]

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first symbol of each question, where they are numbered one after the other."""
        return tuple(accumulate((one.size for one in self.each[:-1]), initial=0))

    def place(self, symbol: int) -> int:
        """The question that a symbol answers, where they are numbered one after the other."""
        return bisect_right(self.firsts, symbol) - 1

    def stated(self) -> dict[str, Any]:
        """The table of a campaign file."""
        odds = {"weights": list(self.weights)} if self.weights else {}
        return {"question": self.question, **odds, "each": [one.stated() for one in self.each]}


def read_asked(section: Section, *, open: bool = False) -> Asked | AskedTogether | None:
    """The table [asks] of a campaign whose answers are sent as they are, or are not; None where it is absent."""
    if not section:
        return None
    question = section.text("question")
    return _read_together(section, question, open) if question in TOGETHER else _read_one(section, question)


def _read_together(section: Section, question: str, open: bool) -> AskedTogether:
    each = tuple(_read_one(one, one.text("question")) for one in section.tables("each"))
    weights = section.wholes("weights", least=1) if open and question == ONE else ()
    section.finish()
    names = [value.name for one in each for value in one.values]
    if len(each) < 2 or not len(set(names)) == len(names) <= MOST_VALUES:
        raise ConfigError(
            f"`asks.each` must be at least 2 questions, about at most {MOST_VALUES} values with different names."
        )
    drawn = open and question == ONE
    if drawn and not (len(weights) == len(each) <= MOST_DRAWN and max(weights) <= MOST_WEIGHT):
        raise ConfigError(
            f"`asks.weights` must be whole numbers from 1 to {MOST_WEIGHT}, one for each of at most {MOST_DRAWN} "
            "questions."
        )
    for one in each:
        if len(one.symbols) > 1 or one.values[0].length:
            raise ConfigError(
                f"`asks.each`: {one.question} has several symbols or an array of a person; ask it in a campaign of "
                "its own."
            )
    if not open:
        return AskedTogether(each, question)
    if drawn:
        return _united(each, weights)
    made = AskedTogether.combined(each)
    if any(one.sent != 1 or one.size < 2 for one in each) or made.size > MOST_PLACES:
        raise ConfigError(
            "`asks.each` must be questions of one symbol each, which says one of two things or more, and at most "
            f"{MOST_PLACES:,} combinations of them."
        )
    return made


def _united(each: tuple[Asked, ...], weights: tuple[int, ...]) -> AskedTogether:
    made = AskedTogether.united(each, weights)
    if len({(one.sent, one.digits) for one in each}) > 1 or not each[0].sent or made.size > MOST_PLACES:
        raise ConfigError(
            f"`asks.each` must be questions of one symbol each, or of as many digits each, and of at most "
            f"{MOST_PLACES:,} symbols together."
        )
    return made


def _read_one(section: Section, question: str) -> Asked:
    settings = section.mapping("settings")
    values = tuple(_value(one) for one in section.tables("values"))
    names = [one.name for one in values]
    if not 1 <= len(set(names)) == len(names) <= MOST_VALUES:
        raise ConfigError(f"`asks.values` must be 1 to {MOST_VALUES} values with different names.")
    known = {one.name: one for one in values}
    symbols = tuple(
        Symbol(tuple(_part(part, known) for part in parts)) for parts in section.lists_of_tables("symbols")
    )
    section.finish()
    found = Asked(question, dict(sorted(settings.items())), values, symbols)
    if any(not one.parts for one in symbols) or found.sent > MOST_SYMBOLS or found.size > MOST_PLACES:
        raise ConfigError(
            f"`asks.symbols` must be at most {MOST_SYMBOLS} lists of parts, with {MOST_PLACES:,} places together."
        )
    if any(one.length for one in values) and (symbols or len(values) > 1):
        raise ConfigError("an array of `asks.values` stands alone, and without `asks.symbols`.")
    parts = [part for one in symbols for part in one.parts]
    if len(parts) > 1 and any(part.rounding == "digits" for part in parts):
        raise ConfigError('a part of `asks.symbols` with rounding "digits" stands alone.')
    if not symbols and (len(values) > 1 or values[0].categories):
        raise ConfigError("`asks.symbols` may be left out for one number or one array alone.")
    return found


def _value(section: Section) -> Value:
    name, categories = section.text("name"), section.texts("categories")
    if categories:
        found = Value(name, categories=categories)
    elif length := section.whole("length", least=1, most=MOST_LENGTH, default=0):
        found = Value(name, length=length)
    else:
        lower, upper = section.number("lower"), section.number("upper")
        found = Value(name, lower, upper, missing=section.text("missing", default=""))
        if not found.upper - found.lower > 0.0 or not isfinite(found.upper - found.lower):
            raise ConfigError(f"`upper` of the value {name!r} must be above its `lower` by a finite amount.")
    section.finish()
    return found


def _part(section: Section, known: Mapping[str, Value]) -> Part:
    of, rounding = section.names("of"), section.choice("rounding", ROUNDINGS)
    part = Part(
        of, rounding, section.whole("points", least=1, most=MOST_PLACES),
        section.whole("bins", least=2, most=MOST_PLACES) if rounding == "bins" else 0,
        section.numbers("ends") if rounding == "ends" else (),
    )  # fmt: skip
    section.finish()
    for name in of:
        if name not in known:
            raise ConfigError(f"a part of `asks.symbols` is of {name!r}, which is not among `asks.values`.")
    listed = [bool(known[name].categories) for name in of]
    gaps = [bool(known[name].missing) for name in of]
    fits = {
        "list": len(of) == 1 and all(listed) and part.points == len(known[of[0]].categories),
        "bins": len(of) == 1 and not any(listed) and part.bins % part.points == 0,
        "ends": len(of) == 1 and not any(listed) and _are_ends(part, known[of[0]]),
        "even": 1 <= len(of) <= 2 and not any(listed) and part.points >= 2,
        "digits": len(of) == 1 and not any(listed) and 3 ** ternary_digits(part.points) == part.points >= 3,
        "spline": len(of) == 1 and not any(listed) and part.points >= 3,
        "gaps": len(of) == 1 and all(gaps) and part.points >= 3,
    }
    if not fits[rounding] or (any(gaps) and rounding != "gaps"):
        raise ConfigError(f"a part of `asks.symbols` of {', '.join(of)} does not go with rounding {rounding!r}.")
    return part


def ternary_digits(points: int) -> int:
    """The largest J for which 3^J is at most `points`.

    >>> [ternary_digits(points) for points in (2, 3, 8, 9, 243)]
    [0, 1, 1, 2, 5]
    """
    found = 0
    while 3 ** (found + 1) <= points:
        found += 1
    return found


def _are_ends(part: Part, value: Value) -> bool:
    """True if bins with these ends, ascending, are all of the range."""
    ends, rising = part.ends, all(one < other for one, other in pairwise(part.ends))
    return rising and len(ends) == part.points + 1 and (ends[0], ends[-1]) == (value.lower, value.upper)


def _bin(value: Value, held: float, bins: int) -> int:
    """The last bin whose lower end is not above the number; the range's upper end lies in the last one."""
    step, low, high = (value.upper - value.lower) / bins, 0, bins - 1
    while low < high:
        middle = (low + high + 1) // 2
        if middle * step + value.lower <= held:
            low = middle
        else:
            high = middle - 1
    return low


def _spline(place: float, points: int, words: Words) -> int:
    nearest = min(max(floor(place + 0.5), 1), points - 2)
    away, uniform = place - nearest, _uniform(words)
    left, right = 0.5 - away, 0.5 + away  # squared by products: powers differ in their last bit by platform
    below, above = 0.5 * (left * left), 0.5 * (right * right)
    return nearest - (uniform < below) + (uniform >= 1.0 - above)


def _uniform(words: Words) -> float:
    return float(words.word() >> 11) * 2.0**-53
