"""Kinds of columns, read off their distinct values: numbers, dates, categories, free text, names of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from dovetail.core.display import counted, mute
from dovetail.core.extras import pl
from dovetail.core.progress import Progress
from dovetail.table.data_section import (
    Decisions,
    Spellings,
    labels_header,
    parse_section,
    read_decisions,
    toml_text,
    toml_value,
)
from dovetail.table.reader import missing_values
from dovetail.table.spelling import absent, read_numbers, rows_of, spelling_of, without_missing

EMAIL = r"^\s*[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}\s*$"
PHONE = "|".join(
    (
        r"^\s*(?:\+|00)\d[\d\s()./-]{6,18}$",
        r"^\s*\(?0\d{2,5}\)?[\s/.-]+\d[\d\s.-]{4,14}$",
        r"^\s*\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}\s*$",
    )
)
DATES = {
    "YYYY-MM-DD": r"^\s*(?:19|20)\d\d-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d\d.*)?\s*$",
    "DD.MM.YYYY": r"^\s*\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)(?: \d{1,2}:\d\d.*)?\s*$",
    "DD/MM/YYYY or MM/DD/YYYY": r"^\s*\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)(?: \d{1,2}:\d\d.*)?\s*$",
    "YYYY/MM/DD": r"^\s*(?:19|20)\d\d/\d{1,2}/\d{1,2}(?: \d{1,2}:\d\d.*)?\s*$",
    "D Month YYYY": r"^\s*\d{1,2}\.?[ -]\p{L}{3,9}\.?[ -]\d{2,4}\s*$|^\s*\p{L}{3,9}\.? \d{1,2}, \d{4}\s*$",
}
# what columns are called that name people
IS_NAME = "(?i)" + "|".join(
    (
        r"^(?:id|nr|lfd\.? ?nr|no|number|key|uuid|guid|index|code|matricule|identifiant|kennung|chiffre)s?\.?$",
        r"^(?:nummer|num[eé]ro|person|participant|respondent|teilnehmer|proband|user|case|record|row)s?$",
        r"(?:^|[_\s-])(?:id|uuid|guid|nr)\.?$",
        r"^(?:respondent|participant|response|user|person|case|record|customer|patient|student)[ _]?(?:id|no|nr)",
        r"(?-i:[a-z](?:ID|Nr|No))\.?$|nummer$",
    )
)
_MOST = 0.8  # of the values make the kind of a column
_ENOUGH = 20  # values, before all being different means something
LONG = 30  # letters on average make free text


class Kind(StrEnum):
    """Kind of most values of a column."""

    EMPTY = "empty"
    NUMBER = "numbers"
    DATE = "dates"
    CATEGORY = "categories"
    TEXT = "free text"
    IDENTIFIER = "an identifier"
    EMAIL = "e-mail addresses"
    PHONE = "phone numbers"


@mute
@dataclass(frozen=True, eq=False)
class Column:
    """A column without its missing values.

    `values` has a row for each distinct value: `text`, its `count`, and the `number` that it spells (or null).
    """

    name: str
    n: int
    missing: int
    values: pl.DataFrame
    kind: Kind

    @property
    def present(self) -> int:
        """Values that are not missing."""
        return self.n - self.missing

    @property
    def distinct(self) -> int:
        """Different values."""
        return self.values.height

    @property
    def coded(self) -> bool:
        """True if few whole numbers stand for categories, such as the answers 1 to 5."""
        return self.kind == Kind.NUMBER and self.distinct <= 10 and bool((self.numbers % 1 == 0).all())

    @property
    def numbers(self) -> pl.Series:
        """The different numbers."""
        return self.values["number"].drop_nulls()

    def count_of(self, pattern: str) -> int:
        """Values that match."""
        return int(self.values.filter(pl.col("text").str.contains(pattern))["count"].sum())


def describe_column(column: pl.Series, counts: pl.DataFrame | None, how: Spellings) -> Column:
    """The profile of a column whose missing values are null; `counts` of its texts, where they are texts."""
    kept = column.drop_nulls()
    if kept.dtype.is_float():
        kept = kept.filter(kept.is_not_nan())
    if counts is None:
        counts = kept.alias("text").value_counts(sort=True)
    numeric = counts["text"].dtype.is_numeric()
    texts = counts["text"].cast(pl.String)
    numbers = counts["text"].cast(pl.Float64) if numeric else read_numbers(texts, how)
    values = pl.DataFrame([texts, counts["count"].cast(pl.Int64), numbers.alias("number")])
    found = Column(column.name, len(column), len(column) - len(kept), values, Kind.CATEGORY)
    return replace(found, kind=_kind(found, column.dtype))


def _kind(column: Column, dtype: pl.DataType) -> Kind:
    present, named = column.present, pl.Series([column.name]).str.contains(IS_NAME).item()
    if not present:
        return Kind.EMPTY
    if dtype in (pl.Date, pl.Datetime):
        return Kind.DATE
    unique = present >= _ENOUGH and column.distinct >= 0.95 * present
    numeric = int(column.values.filter(pl.col("number").is_not_null())["count"].sum()) >= _MOST * present
    if numeric:
        whole = bool((column.numbers % 1 == 0).all())
        return Kind.IDENTIFIER if whole and (named and column.distinct >= 0.5 * present) else Kind.NUMBER
    for kind, pattern in ((Kind.EMAIL, EMAIL), (Kind.PHONE, PHONE), (Kind.DATE, "|".join(DATES.values()))):
        if column.count_of(pattern) >= (_MOST if kind == Kind.DATE else 0.5) * present:
            return kind
    letters = int((column.values["text"].str.len_chars() * column.values["count"]).sum()) / present
    words = int((column.values["text"].str.count_matches(r"\s+") * column.values["count"]).sum()) / present
    many = column.distinct > max(_ENOUGH, 0.1 * present)
    if many and (letters > LONG or words >= 4):
        return Kind.TEXT
    if unique or (named and column.distinct >= 0.5 * present and present >= _ENOUGH):
        return Kind.IDENTIFIER
    return Kind.TEXT if column.distinct > max(100, 0.3 * present) else Kind.CATEGORY


# What a person said about a table before it was looked at: roles of columns, categories, bounds.


@dataclass(frozen=True)
class Declared:
    """Nothing in it comes from the table."""

    private: str | None = None
    person: str | None = None
    public: tuple[str, ...] = ()
    categories: tuple[str, ...] | None = None
    lower: float | None = None
    upper: float | None = None
    epsilon: float = 2.0
    trust: str = "local"
    decided: tuple[str, ...] = ()  # lines of TOML about [data]

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """Keys of [data] that a person has decided on."""
        raw = read_decisions(self.decided)
        parse_section(Decisions, raw, name="--set")
        return raw

    @property
    def bounded(self) -> bool:
        """True if bounds were declared."""
        return self.lower is not None

    def has_role(self, name: str) -> bool:
        """True if `run` will read this column."""
        return name in (self.private, self.person, *self.public)

    def role_of(self, name: str) -> str | None:
        """Role of this column: private, person, public, or none."""
        if name in (self.private, self.person):
            return "private" if name == self.private else "person"
        return "public" if name in self.public else None

    def numeric(self, column: Column) -> bool:
        """True if the private column is asked for its mean: bounds were declared, or it holds many numbers."""
        if self.bounded or self.categories is not None:
            return self.bounded
        return column.kind == Kind.NUMBER and not column.coded


# One problem of a table: what, where, what to do, and whether the written configuration does it already.


class Status(StrEnum):
    """Effect of a problem on `run` with the written configuration."""

    STOPS = "stops"  # run refuses, or would give somebody away, until a person decides
    CONFIRM = "confirm"  # the configuration assumes something that a person confirms
    SETTLED = "settled"  # the configuration takes care of it
    NOTE = "note"  # nothing refuses it; it should be known


@dataclass(frozen=True)
class Fix:
    """One way to decide about a problem: keys of [data], and labels of a column.

    Parameters
    ----------
    words : what it does
    keys : names of keys with their values
    column, labels : spellings of this column with the labels that they mean; "" is no answer
    """

    words: str
    keys: tuple[tuple[str, Any], ...] = ()
    column: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def lines(self) -> list[str]:
        """Lines of TOML below [data], as `--set` of `dovetail check` takes them."""
        column = toml_text(self.column)
        named = [(f"labels.{column}.{toml_text(spelling)}", label) for spelling, label in self.labels]
        return [f"{key} = {toml_value(value)}" for key, value in (*self.keys, *named)]


def choose(words: str, **keys: Any) -> Fix:
    """A decision about [data] as a whole."""
    return Fix(words, tuple(keys.items()))


DROP = choose("leave these people out", missing="drop")


def as_answers(*, local: bool) -> Fix:
    """No answer of a number as an answer of its own; local noise that is made for numbers has no word for it."""
    named = {"randomize.randomizer": "krr"} if local else {}
    return choose("count them as an answer of their own, randomized like every number", missing=ABSENT, **named)


@dataclass(frozen=True)
class Problem:
    """Nothing in it quotes a row; of the private column it names labels and counts at most.

    `fixes` are the decisions that it leaves to a person, `texts` everything that `what` shows the first few of.
    """

    what: str
    where: str
    remedy: str
    status: Status
    fixes: tuple[Fix, ...] = ()
    texts: tuple[str, ...] = ()
    ranges: tuple[str, tuple[float, ...]] | None = None  # a public column, and widths whose costs can be shown

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "what": self.what, "where": self.where, "remedy": self.remedy, "status": str(self.status),
            "fixes": [{"words": fix.words, "set": fix.lines} for fix in self.fixes], "texts": list(self.texts),
        }  # fmt: skip


def refusal(error: Exception) -> Problem:
    """Split what `run` says into fault and remedy."""
    what, _, remedy = str(error).rstrip(".").partition("; ")
    return Problem(what, "run", remedy or "correct the table or the configuration", Status.STOPS)


def column_called(name: str) -> str:
    """Name the place of a problem of a column."""
    return f"column {name!r}"


def first_rows(wrong: pl.Series) -> str:
    """The first places of what is wrong, counted from 1 below the header."""
    places = wrong.arg_true()
    return f"row{'s' * (len(places) > 1)} {rows_of(places)}{', ..' if len(places) > 3 else ''}"


SHOWN = 4  # texts in a sentence


def quoted(texts: list[str], *, most: int = SHOWN) -> str:
    """A few texts, none of them long, with letters that cannot be seen written out."""
    shown = [repr(text if len(text) <= 24 else text[:23] + "…") for text in texts[:most]]
    return ", ".join(shown) + (f" and {len(texts) - most} more" if len(texts) > most else "")


# Missing values, however they are spelled, and numbers that are codes for them.


# in small letters; words that may be an answer, such as "none" or "unknown", are not among them
SPELLINGS = frozenset(
    [
        "na",
        "n/a",
        "n.a.",
        "n.a",
        "#n/a",
        "#na",
        "#nv",
        "nan",
        "null",
        "nil",
        "<na>",
        "-",
        "--",
        "---",
        "–",
        "—",
        "?",
        "??",
        ".",
        "..",
        "…",
        "#value!",
        "#wert!",
        "#ref!",
        "#div/0!",
        "#null!",
        "\\n",
        "missing",
        "(blank)",
        "(leer)",
        "(empty)",
        "k.a.",
        "k.a",
        "k.\\u00a0a.",
        "k/a",
        "n.v.",
        "n/d",
        "s.d.",
        "s/d",
        "n.c.",
        "nsp",
        "no.data",
    ]
) | {"k. a.", "keine angabe", "not available", "no data", "n. a.", "n. v.", "non renseigné"}
CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, 77.0, 88.0, 99.0, 888.0, 999.0, 9999.0, 99999.0)  # the nearer ones first
ABSENT = "no answer"
NO_NUMBER = "say what becomes of people without a number"


def missing_spellings(counts: pl.DataFrame) -> list[str]:
    """Texts of a column that stand for no value, without the blanks around them."""
    bare = counts.select(pl.col("text").str.strip_chars(), "count").filter(pl.col("text") != "")
    found = bare.filter(pl.col("text").str.to_lowercase().is_in(SPELLINGS))
    return found["text"].unique(maintain_order=True).to_list()


def missing_codes(column: Column) -> list[float]:
    """Numbers such as 888 and 999 that stand far from all others: no values, but codes for missing ones."""
    codes: list[float] = []
    if column.kind != Kind.NUMBER or column.numbers.len() < 5:
        return codes
    for code in CODES:
        beyond = [one for one in CODES if one * code > 0 and abs(one) >= abs(code)]  # codes, too, if this is one
        rest = column.numbers.filter(~column.numbers.is_in([*codes, *beyond]))
        if not (column.numbers == code).any() or rest.len() < 4:
            continue
        low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
        gap = low - code if code < 0 else code - high
        if (code < 0 <= low) or gap > max(high - low, 1.0):
            codes.append(code)
    return codes


def missing_problems(column: Column, series: pl.Series, spelled: list[str], asked: Declared) -> Iterator[Problem]:
    """Problems of missing values, and what becomes of these people."""
    if not column.missing or column.kind == Kind.EMPTY:
        return
    how = f" (blank, or {quoted(spelled)})" if spelled else ""
    what, where = missing_values(column.missing, column.n) + how, column_called(column.name)
    where += f", {first_rows(absent(series))}"
    yield Problem(what, where, *_remedy(column, asked))


def _remedy(column: Column, asked: Declared) -> tuple[str, Status, tuple[Fix, ...]]:
    name, decided = column.name, asked.decisions.get("missing")
    if name == asked.person:
        return "give each of these people a name of their own, or leave their rows out", Status.STOPS, ()
    if name == asked.private and decided == "drop":
        return "these people are left out, as `missing` says; the report counts them", Status.SETTLED, ()
    if name == asked.private and not asked.numeric(column):
        category = decided or ABSENT
        remedy = f"they become a category, `missing` = {toml_text(category)}, that is randomized like every answer"
        return (remedy, Status.SETTLED, ()) if decided else (f"{remedy}: confirm it", Status.CONFIRM, (DROP,))
    if name == asked.private and decided:
        return "they are an answer of their own, as `missing` says, that is randomized too", Status.SETTLED, ()
    if name == asked.private:
        return NO_NUMBER, Status.STOPS, (DROP, as_answers(local=asked.trust == "local"))
    if name in asked.public:
        return 'the configuration calls them "not stated" in [data.labels]; rename that there', Status.SETTLED, ()
    return 'if you make it public, the configuration calls them "not stated"', Status.NOTE, ()


def code_problems(column: Column, code: float, asked: Declared, *, stops: bool = False) -> Iterator[Problem]:
    """A code for missing values, read as a number; one outside declared bounds stops a run."""
    found = column.values.filter(pl.col("number") == code)
    often = counted(int(found["count"].sum()), "value is", "values are")
    what = f"{often} {code:g}, far from all others: a code for a missing value?"
    if not asked.has_role(column.name):
        yield Problem(what, column_called(column.name), "count it as no answer if you use this column", Status.NOTE)
        return
    out = column.name == asked.private and asked.numeric(column)
    fix = Fix(
        "count it as no answer" + " and leave these people out" * out, DROP.keys if out else (), column.name,
        tuple((text, "") for text in found["text"]),
    )  # fmt: skip
    yield Problem(
        what, column_called(column.name), "if so, say it", Status.STOPS if stops else Status.CONFIRM, (fix,)
    )


# How the numbers of a table are spelled: decimal mark, thousands, units; one way for all columns.


# the likelier ones first
STYLES = [
    (".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", " "), (".", " "), (",", "'")
]  # fmt: skip
_LOOSE = r"^\s*[-+\x{2212}]?\s*[^\w\s]?\s*\d[\d.,'\x{2019}\s]*(?:[eE][-+]?\d+)?\s*\p{L}{0,4}[%\p{Sc}]?\s*$"
_UNIT = r"(\p{Sc}|%|\p{L}{1,4}\.?)\s*$"
_SIGN = r"^\s*[-+]?\s*(\p{Sc})"
_BELIEVED = 1000

_NONE = ("value of a column of numbers is none", "values of a column of numbers are none")
_ENOUGH_NUMBERS = 20_000  # different texts of a column show how its numbers are spelled

Counts: TypeAlias = "pl.DataFrame"  # text, count


def number_columns(columns: Mapping[str, Counts]) -> dict[str, Counts]:
    """The columns whose texts mostly look like numbers, in whatever spelling, with a sample of them."""
    dates, found = "|".join([*DATES.values(), PHONE]), {}
    for name, counts in columns.items():
        some = (
            counts if counts.height <= _ENOUGH_NUMBERS else counts.gather_every(counts.height // _ENOUGH_NUMBERS + 1)
        )
        looks = some["text"].str.contains(_LOOSE) & ~some["text"].str.contains(dates)
        if some.height and int(some["count"].filter(looks).sum()) >= _MOST * int(some["count"].sum()):
            found[name] = some
    return found


def find_number_style(columns: Mapping[str, Counts], *, believed: str | None = None) -> Spellings:
    """The spelling in which most texts of these columns are numbers; one column may be believed before all others."""
    if not columns:
        return Spellings()
    parts = [
        counts.select("text", weight=pl.col("count") * (_BELIEVED if name == believed else 1))
        for name, counts in columns.items()
    ]
    every = pl.concat(parts).group_by("text").agg(pl.col("weight").sum())
    units = _units(every["text"])
    styles = [Spellings(decimal=decimal, thousands=mark, units=units) for decimal, mark in STYLES]  # type: ignore[arg-type]
    read = [int(every["weight"].filter(_reads(every["text"], style)).sum()) for style in styles]
    if read[1] == read[2] > read[0] and not every["text"].str.contains(r"\d,(?:\d{1,2}|\d{4,})\D*$").any():
        return styles[2]  # 1,234 alone: three digits are a thousand
    return styles[max(range(len(styles)), key=lambda place: (read[place], -place))]


def style_problems(columns: dict[str, Counts], how: Spellings, *, private: str | None) -> Iterator[Problem]:
    """Problems of the spelling that was found, and of columns that have another one."""
    if not how.plain_numbers:
        yield Problem(
            f"numbers are spelled with {spelling_of(how)}", "file",
            "the configuration says so; correct it there if that is not how they are meant", Status.SETTLED,
        )  # fmt: skip
    for name, counts in columns.items():
        grouped = r"^\s*[-+]?\d{1,3}[.,]\d{3}\s*$"
        comma = counts["text"].str.contains(r"[.,]")
        if comma.any() and counts["text"].filter(comma).str.contains(grouped).all() and not how.units:
            shown = counts["text"].filter(comma)[0] if name != private else "1.234"
            yield Problem(
                f"every fraction has three digits, such as {shown}: a thousand, or one and a bit?",
                column_called(name), "see that `decimal` and `thousands` in [data] are what is meant", Status.CONFIRM,
            )  # fmt: skip
        unread = counts["text"].filter(~_reads(counts["text"], how))
        if unread.is_empty():  # of most columns, where looking for another style would take all the time
            continue
        own = find_number_style({name: counts})
        otherwise = _reads(unread, own)
        if otherwise.any():
            yield Problem(
                f"numbers are spelled otherwise than in other columns, with {spelling_of(own)}", column_called(name),
                "spell the numbers of a table in one way, or map these in [data.labels]",
                Status.STOPS if name == private else Status.NOTE,
            )  # fmt: skip


def not_numbers(column: Column, *, where: str, private: bool, role: bool, gap: bool = True) -> Iterator[Problem]:
    """Texts in a column of numbers; `gap` says whether [data] has a rule for missing answers."""
    texts = column.values.filter(pl.col("number").is_null())
    if texts.height:
        shown = "" if private else f": {quoted(texts['text'].to_list())}"
        common = private and role and texts.height <= _FEW and bool((texts["count"] > 1).all())
        none = Fix(
            f"count {quoted(texts['text'].to_list())} as no answer" + " and leave these people out" * (not gap),
            () if gap else DROP.keys, column.name,
            tuple((text, "") for text in texts["text"]),
        ) if common else None  # fmt: skip
        yield Problem(
            f"{counted(int(texts['count'].sum()), *_NONE)}{shown}", where,
            f'say what they mean in {labels_header(column.name)}, as in "95+" = "95", or "" for no answer',
            Status.STOPS if role else Status.NOTE, () if none is None else (none,),
        )  # fmt: skip


def _reads(texts: pl.Series, how: Spellings) -> pl.Series:
    return read_numbers(texts, how).is_not_null()


def _units(texts: pl.Series) -> list[str]:
    """Units that follow (or, as signs of money, precede) numbers, the commonest first."""
    looks = texts.filter(texts.str.contains(_LOOSE) & ~texts.str.contains(r"(?i)\d[eE][-+]?\d+\s*$"))
    found = pl.concat([looks.str.extract(_UNIT), looks.str.extract(_SIGN)]).drop_nulls()
    return found.str.strip_chars().value_counts(sort=True).to_series().head(5).to_list()


# One look at all columns: missing values, the spelling of numbers, and what each column holds.


@mute
@dataclass(frozen=True, eq=False)
class Look:
    """A table as it is seen at first.

    Parameters
    ----------
    frame : all columns, with null where a value is missing in any spelling
    columns : what each holds
    gaps : spellings of missing values, by the columns that use them
    style : how numbers are spelled
    numbers : columns of texts that spell numbers, with a sample of these texts
    """

    frame: pl.DataFrame
    columns: dict[str, Column]
    gaps: dict[str, list[str]]
    style: Spellings
    numbers: dict[str, pl.DataFrame]

    @property
    def missing_spellings(self) -> list[str]:
        """Those of all columns."""
        return list(dict.fromkeys(spelling for each in self.gaps.values() for spelling in each))


def look_at(frame: pl.DataFrame, *, private: str | None, progress: Progress) -> Look:
    """The first look; of columns that spell numbers in different ways the private one is believed."""
    texts = [column for column in frame if column.dtype == pl.String]
    counts = {}
    for done, column in enumerate(texts, start=1):
        counts[column.name] = _counts(column)
        progress("count the values", done, len(texts))
    gaps = {name: missing_spellings(each) for name, each in counts.items()}
    every = list(dict.fromkeys(spelling for each in gaps.values() for spelling in each))
    absent = pl.Series(["", *every], dtype=pl.String).implode()
    left = {name: each.filter(~each["text"].str.strip_chars().is_in(absent)) for name, each in counts.items()}
    numbers = number_columns(left)
    style = find_number_style(numbers, believed=private)
    clean = frame.with_columns([without_missing(column, every) for column in frame])
    columns = {}
    for done, column in enumerate(clean, start=1):
        columns[column.name] = describe_column(column, left.get(column.name), style)
        progress("look at the columns", done, frame.width)
    return Look(clean, columns, gaps, style, numbers)


def _counts(column: pl.Series) -> pl.DataFrame:
    """The different texts, the commonest first."""
    counts = column.drop_nulls().alias("text").value_counts(sort=True)
    return counts.with_columns(pl.col("count").cast(pl.Int64))


# Dates: written in one way, and no narrower than they need to be.


def date_problems(column: Column, *, role: bool) -> Iterator[Problem]:
    """Dates that are written in several ways, or tell nearly who somebody is."""
    if column.kind != Kind.DATE:
        return
    ways = {way: count for way, pattern in DATES.items() if (count := column.count_of(pattern))}
    where = column_called(column.name)
    if len(ways) > 1:
        yield Problem(
            "dates are written in several ways: " + ", ".join(f"{count:,} as {way}" for way, count in ways.items()),
            where, "write all of them as YYYY-MM-DD before you group by them", Status.STOPS if role else Status.NOTE,
        )  # fmt: skip
    slashes = column.values.filter(pl.col("text").str.contains(r"^\s*\d{1,2}/\d{1,2}/"))
    if slashes.height:
        parts = slashes["text"].str.extract_groups(r"(\d{1,2})/(\d{1,2})/").struct.unnest()
        first, second = (parts[name].cast(pl.Int64) > 12 for name in parts.columns)
        if bool(first.any()) == bool(second.any()):
            both = "some put the month first and others the day" if first.any() else "month or day first?"
            yield Problem(
                f"dates with slashes can be read in two ways: {both}", where, "write them as YYYY-MM-DD",
                Status.NOTE,
            )  # fmt: skip
    if column.distinct > 50:
        yield Problem(
            f"{column.distinct:,} different dates: a date of birth or of a visit nearly tells who somebody is", where,
            "use the year or the month where it is to be public", Status.NOTE,
        )  # fmt: skip


# Labels that differ in blanks, case or Unicode form, or were not declared.


_INVISIBLE = r"[\x{200b}-\x{200f}\x{2060}\x{feff}\x{ad}\x{202a}-\x{202e}]"
MOST = 2000  # labels that are compared


def folded(texts: pl.Series) -> pl.Series:
    """Key under which spellings meet: blanks, case and Unicode form do not count."""
    plain = texts.str.normalize("NFKC").str.replace_all(_INVISIBLE, "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars(" .")


def variants(column: Column) -> dict[str, str]:
    """Spelling -> label for all that differ from the commonest spelling in these ways only."""
    if column.kind != Kind.CATEGORY or column.distinct > MOST:
        return {}
    table = column.values.with_columns(key=folded(column.values["text"]))
    table = table.sort("count", "text", descending=[True, False])
    best: dict[str, str] = {}
    for key, text in table.select("key", "text").iter_rows():
        best.setdefault(key, " ".join(text.split()))
    return {text: best[key] for text, key in table.select("text", "key").iter_rows() if text != best[key]}


def spelling_problems(column: Column, found: dict[str, str], asked: Declared) -> Iterator[Problem]:
    """Problems of spellings that mean one label."""
    if not found:
        return
    labels = list(dict.fromkeys(found.values()))
    people = int(column.values.filter(pl.col("text").is_in(list(found)))["count"].sum())
    role = asked.has_role(column.name)
    yield Problem(
        f"{counted(people, 'value differs', 'values differ')} from {'a label' if len(labels) == 1 else 'labels'} "
        "only in blanks, case or "
        f"Unicode form: {quoted(list(found))}",
        column_called(column.name),
        f"the configuration reads them as {quoted(labels)}, in {labels_header(column.name)}" if role else
        "spell each label in one way if you use this column",
        Status.SETTLED if role else Status.NOTE, (), tuple(found),
    )  # fmt: skip


_YES = "yes y yeah yep ja j jep jup jawohl oui si sí sì sim tak true t wahr vrai 1 1.0 x ✓ ✔ on"
_NO = "no n nope nein nee nö non nej não nie false f falsch faux 0 0.0 ✗ ✘ off"
_FEW = 8  # spellings that are decided on at once


def meant(column: Column, categories: Sequence[str]) -> dict[str, str]:
    """Spelling -> declared category, where it is obvious: other case, marks at the ends, words for yes and no."""
    if column.kind in (Kind.TEXT, Kind.IDENTIFIER) or column.distinct > MOST:
        return {}
    known = dict(zip(_bare(pl.Series(categories, dtype=pl.String)), categories, strict=True))
    sides = [(words, [name for key, name in known.items() if key in words]) for words in (_YES.split(), _NO.split())]
    if all(len(named) == 1 for _, named in sides):
        for words, named in sides:
            known = dict.fromkeys(words, named[0]) | known
    texts = column.values.sort("count", "text", descending=[True, False])["text"]
    exact = {*categories}
    return {
        text: known[key]
        for text, key in zip(texts, _bare(texts), strict=True)
        if text not in exact and known.get(key) is not None
    }


def meant_problems(column: Column, found: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of spellings that were taken to mean a declared category."""
    if found:
        people = int(column.values.filter(pl.col("text").is_in(list(found)))["count"].sum())
        labels = list(dict.fromkeys(found.values()))
        yield Problem(
            f"{counted(people, 'value is', 'values are')} spelled otherwise than {quoted(labels)}: "
            f"{quoted(list(found))}",
            column_called(column.name), f"see what {labels_header(column.name)} of the configuration takes them for",
            Status.SETTLED if _folds_alike(found) else Status.CONFIRM, (), tuple(found),
        )  # fmt: skip


def _folds_alike(found: Mapping[str, str]) -> bool:
    """True if spellings and labels differ in blanks, case or Unicode form only."""
    pairs = pl.DataFrame([*found.items()], schema=["text", "label"], orient="row")
    return bool((folded(pairs["text"]) == folded(pairs["label"])).all())


def _bare(texts: pl.Series) -> pl.Series:
    """As `folded`, without marks at either end; what is nothing but marks stays."""
    keys = folded(texts)
    bare = keys.str.strip_chars(" .!?,;:\"'()")
    return pl.select(pl.when(bare == "").then(keys).otherwise(bare)).to_series()


def unmatched(column: Column, found: Mapping[str, str], categories: Sequence[str]) -> dict[str, int]:
    """Texts that are no declared category and mean none that is known, with their counts, the commonest first."""
    rest = column.values.filter(~pl.col("text").is_in([*categories, *found]))
    return dict(rest.sort("count", "text", descending=[True, False]).select("text", "count").iter_rows())


def undeclared(
    column: Column, found: Mapping[str, str], asked: Declared, *, gap: bool, lines: bool = False
) -> Iterator[Problem]:
    """Labels of the private column that are not among the declared categories; `lines` wait to be completed.

    `gap` says whether [data] has a rule for missing answers.
    """
    if asked.categories is None:
        return
    rest = unmatched(column, found, asked.categories)
    if rest:
        none = Fix(
            "count them as no answer", () if gap else DROP.keys, column.name, tuple((text, "") for text in rest)
        )
        where = f" in the lines of {labels_header(column.name)}" * lines
        yield Problem(
            f"{counted(sum(rest.values()), 'value is', 'values are')} not among the declared categories: "
            f"{quoted(list(rest))}",
            column_called(column.name), f"say what each means{where}, or declare it", Status.STOPS,
            (none,) if len(rest) <= _FEW else (), tuple(rest),
        )  # fmt: skip
