"""A privacy claim, judged: impossible, unsupported, possible, proved, or unknown."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dovetail.account.rounds import MOST_ROUNDS
from dovetail.audit.ends import (
    Ends,
    count_ends,
    discrete_gaussian_ends,
    gaussian_ends,
    geometric_ends,
    laplace_ends,
    noise_ratio,
    report_ends,
    sampled_ends,
    sampled_noise_ends,
    split_ends,
)
from dovetail.core.checks import (
    MOST_PEOPLE,
    nearest,
    not_negative,
    positive,
    privacy_budget,
    refuse,
    share,
    whole,
    word,
)
from dovetail.core.display import downward, upward
from dovetail.core.errors import ConfigError, ParameterError, UnsupportedError
from dovetail.core.stages import Randomizer, read_randomizer
from dovetail.core.verdict import warnings_of
from dovetail.ledger.files import read_json
from dovetail.table.data_section import read_toml

Verdict = Literal["impossible", "unsupported", "possible", "proved", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("impossible", "unsupported", "possible", "proved", "unknown")
NOISES: dict[str, Callable[..., Ends]] = {
    "laplace": laplace_ends,
    "discrete-laplace": geometric_ends,
    "geometric": geometric_ends,
    "gaussian": lambda distance, width, **rest: gaussian_ends(noise_ratio(distance, width), **rest),
    "discrete-gaussian": discrete_gaussian_ends,
    "unbiased": lambda distance, width, *, rounds, delta: count_ends(distance, width, delta=delta),
}
ANY, UNKNOWN = "any", "unknown"  # randomizers that are not named: all of them, and one that was not told
MOST_RATIO = 1e9  # of sensitivity over scale
KINDS = {"noise": "noise on a number", "sample": "a random sample", "reports": "reports of people"}
TAKES = {
    "noise": ("sensitivity", "clip", "scale", "rate", "sampling", "neighbours"),
    "sample": ("rate", "sampling", "neighbours"),
    "reports": ("n", "honest", "neighbours", "parts"),
}
PARTS = ("same-people", "disjoint", "by-value")  # who answers several questions
COVERED = {"poisson": "add-remove", "fixed-size": "replace"}  # neighbours for which sampling has a theorem here


@dataclass(frozen=True)
class AuditedClaim:
    """The verdict on a claim, with what it rests on.

    Parameters
    ----------
    verdict : one of `VERDICTS`
    epsilon, delta : float
        What was claimed.
    lower : float or None, nats
        The witness reaches it: no claim below it is true. None where nothing is known.
    upper : float or None, nats
        Proved.
    witness : str
        What reaches `lower`, in words.
    source : str
        The theorem.
    sentence : str
        The verdict in a sentence.
    notes : texts
        What should be known besides.
    """

    verdict: Verdict
    epsilon: float
    delta: float
    lower: float | None
    upper: float | None
    witness: str
    source: str
    sentence: str
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        from dovetail.core.missing import Missing
        from dovetail.report.document import to_jsonable

        absent = Missing("no theorem here covers it")
        ends = {name: absent if (end := getattr(self, name)) is None else end for name in ("lower", "upper")}
        found: dict[str, Any] = to_jsonable({**vars(self), **ends})
        return found


def audit_claim(
    *,
    epsilon: float,
    delta: float = 0.0,
    epsilon0: float | list[float] | None = None,
    randomizer: str | Randomizer = ANY,
    n: int | None = None,
    honest: int | None = None,
    rounds: int = 1,
    rate: float | None = None,
    sampling: str | None = None,
    neighbours: str | None = None,
    parts: str | None = None,
    noise: str | None = None,
    sensitivity: float | None = None,
    clip: float | None = None,
    scale: float | None = None,
) -> AuditedClaim:
    r"""Judge whether a mechanism can be (epsilon, delta)-private as somebody claims; no data are needed.

    impossible: an attack needs more. unsupported: the same, but of a randomizer that was not told. possible: below
    what is proved and above every known attack. proved: a theorem gives at most this. unknown: no theorem here covers
    the claim.

    Parameters
    ----------
    epsilon, delta : float
        What is claimed of one person; delta at least 0 and below 1.
    epsilon0 : float or several, above 0 and at most 700, nats
        Local promise of one report; several for several questions to the same people.
    randomizer : "any", "unknown", a Randomizer, or a text such as "krr:k=10"
        "any": the claim is one of every randomizer with epsilon0, as a formula is. A name: judged by its own law.
    n : int, optional
        People whose reports are shuffled together; without it each report lies open.
    honest : int, optional
        How many of them are honest; default all.
    rounds : int
        How often everything is done, each time afresh.
    rate : float, optional
        Share of the people in a random sample; then `epsilon0` or `noise` is that of the mechanism on the sample.
    sampling : "poisson" (the default) or "fixed-size"
    neighbours : "replace" or "add-remove"
        Whether one person's value is replaced, or she is added or removed; default what the claim's theorem is about.
    parts : "same-people" (the default), "disjoint" or "by-value"
        Who answers several questions. disjoint: each person one, and nothing protected decides which. by-value: her
        value does, as in a histogram with a budget for each cell; each `epsilon0` is then of adding or removing her.
    noise : "laplace", "gaussian", "discrete-laplace" (or "geometric"), "discrete-gaussian" or "unbiased"
        Instead of `epsilon0`. "unbiased" is every unbiased answer, with its standard deviation as `scale`.
    sensitivity : float, above 0, default 1
        How far one person moves the number, for these neighbours; for Gaussian noise in the L2 norm.
    clip : float, above 0
        Instead of `sensitivity`, the largest norm of what one person adds to a sum: the sensitivity is `clip` if she
        is added or removed, and twice that if her value is replaced.
    scale : float, above 0
        b of the noise's density exp(-abs(y) / b), or the standard deviation of Gaussian noise.

    Raises
    ------
    ParameterError
        For numbers outside their ranges, and for what does not belong together. What no theorem covers is no error:
        its verdict is "unknown".

    Examples
    --------
    >>> found = audit_claim(epsilon=0.86, delta=1e-5, epsilon0=8, n=1000)
    >>> found.verdict, round(found.lower, 2)
    ('impossible', 8.0)
    >>> audit_claim(epsilon=0.5, delta=1e-6, epsilon0=2, n=10_000).verdict
    'proved'
    >>> audit_claim(epsilon=1, delta=1e-5, noise="gaussian", scale=2).verdict
    'impossible'
    >>> audit_claim(epsilon=1, noise="laplace", clip=1, scale=1, neighbours="replace").verdict
    'impossible'

    Source
    ------
    The theorem of each end, named in `source`; docs/theory/claims.md.
    """
    claimed, slack, times = (
        not_negative("epsilon", epsilon),
        share("delta", delta),
        whole("rounds", rounds, least=1, most=MOST_ROUNDS),
    )
    if (epsilon0 is None and not isinstance(randomizer, Randomizer)) == (noise is None):
        raise ParameterError("a claim needs `epsilon0` (of one report) or `noise` (on a number), and not both.")
    kind = "noise" if noise is not None else "reports" if rate is None else "sample"
    given = {"rate": rate, "sampling": sampling, "neighbours": neighbours, "n": n, "honest": honest, "parts": parts}
    _check_kind(kind, given | {"sensitivity": sensitivity, "clip": clip, "scale": scale})
    people = whole("n", 1 if n is None else n, least=1, most=MOST_PEOPLE)
    trusted = None if honest is None else whole("honest", honest, least=1, most=people)
    try:
        if rate is not None:
            chosen = _check_sampling(sampling, neighbours, randomizer=randomizer, rounds=times)
            if noise is None:
                [promise, *more] = _promises(epsilon0)
                if more:
                    raise refuse("epsilon0", "one number where there is a `rate`", epsilon0)
                found = sampled_ends(promise, rate=rate, delta=slack)
            else:
                ends_at = _noise(noise, sensitivity, clip, scale, COVERED[chosen], rounds=1)
                found = sampled_noise_ends(ends_at, rate=rate, delta=slack)
        elif noise is not None:
            found = _noise(noise, sensitivity, clip, scale, neighbours, rounds=times)(slack)
        elif _part(parts) != "same-people":
            if n is not None or times != 1 or randomizer not in (ANY, UNKNOWN):
                raise UnsupportedError(
                    "Parts of the people have a theorem here for reports in the open, once, unnamed"
                )
            _check_neighbours(neighbours, "replace")
            found = split_ends(_promises(epsilon0), moves=parts == "by-value", delta=slack)
        else:
            _check_neighbours(neighbours, "replace")
            subjects = _subjects(epsilon0, randomizer)
            found = report_ends(subjects, n=people, honest=trusted, rounds=times, delta=slack)
    except UnsupportedError as error:
        return AuditedClaim("unknown", claimed, slack, None, None, "", "", f"unknown: {str(error).rstrip('.')}.")
    notes = () if n is None else tuple(warnings_of(slack, people, honest=trusted))
    quantified = "unknown" if randomizer == UNKNOWN else "any" if randomizer == ANY and noise is None else "named"
    return _judge(found, claimed, slack, quantified=quantified, notes=notes)


def _judge(found: Ends, epsilon: float, delta: float, *, quantified: str, notes: tuple[str, ...]) -> AuditedClaim:
    """The verdict, from where the claim lies between the ends."""
    verdict: Verdict
    reach = "more than every epsilon" if math.isinf(found.lower) else f"at least {downward(found.lower)}"
    if epsilon < found.lower:
        verdict = "unsupported" if quantified == UNKNOWN else "impossible"
        sentence = f"this attack needs {reach}: {found.witness}"
        if quantified == UNKNOWN:
            sentence = f"it does not follow from what was told; of some mechanism {sentence}"
        elif quantified == ANY:
            sentence += ". This refutes the formula; your own randomizer may do better: name it"
    elif found.upper is None:
        verdict, sentence = "unknown", f"it needs {reach}, and no theorem here says what suffices"
    elif epsilon >= found.upper:
        verdict = "proved"
        sentence = f"at most {upward(found.upper)} by theorem. It is the formula that is proved, not the software"
    else:
        verdict = "possible"
        sentence = (
            f"attacks reach {downward(found.lower)}, and {upward(found.upper)} is proved; the claim lies between"
        )
    return AuditedClaim(
        verdict,
        epsilon,
        delta,
        found.lower,
        found.upper,
        found.witness,
        found.source,
        f"{verdict}: {sentence}.",
        notes,
    )


def _noise(
    noise: str,
    sensitivity: float | None,
    clip: float | None,
    scale: float | None,
    neighbours: str | None,
    *,
    rounds: int,
) -> Callable[[float], Ends]:
    """The ends by delta."""
    if noise not in NOISES:
        hint = nearest(noise, [*NOISES])
        raise refuse("noise", f"one of {', '.join(NOISES)}", noise, hint=hint if hint.endswith("?") else "")
    if scale is None:
        raise ParameterError("`noise` needs `scale`: b of exp(-abs(y) / b), or the standard deviation.")
    _check_known_neighbours(neighbours)
    if clip is not None:
        if sensitivity is not None or neighbours is None:
            raise ParameterError("`clip` stands instead of `sensitivity`, and needs `neighbours`.")
        sensitivity = positive("clip", clip) * (2.0 if neighbours == "replace" else 1.0)
    distance, width = positive("sensitivity", 1.0 if sensitivity is None else sensitivity), positive("scale", scale)
    if not distance <= MOST_RATIO * width:
        raise refuse("scale", f"at least `sensitivity` = {distance:g} over {MOST_RATIO:g}", scale)
    ends = NOISES[noise]
    return lambda delta: ends(distance, width, rounds=rounds, delta=delta)


def _part(parts: str | None) -> str:
    return "same-people" if parts is None else word("parts", parts, PARTS, f"one of {', '.join(PARTS)}")


def _check_kind(kind: str, given: dict[str, Any]) -> None:
    """Refuse what says nothing in such a claim."""
    wrong = [name for name, value in given.items() if value is not None and name not in TAKES[kind]]
    if wrong:
        takes = ", ".join(f"`{name}`" for name in TAKES[kind])
        raise ParameterError(f"a claim about {KINDS[kind]} takes no `{wrong[0]}`; of such numbers it takes {takes}.")
    if "honest" in TAKES[kind] and given["honest"] is not None and given["n"] is None:
        raise ParameterError("`honest` goes with `n`, the people whose reports are shuffled together.")


def _check_sampling(
    sampling: str | None, neighbours: str | None, *, randomizer: str | Randomizer, rounds: int
) -> str:
    chosen = "poisson" if sampling is None else sampling
    if chosen not in tuple(COVERED):
        raise refuse("sampling", f"one of {', '.join(COVERED)}", sampling)
    _check_neighbours(neighbours, COVERED[chosen])
    if rounds != 1 or randomizer not in (ANY, UNKNOWN):
        raise UnsupportedError("Sampling has a theorem here for one release, of noise or any pure mechanism unnamed")
    return chosen


def _check_neighbours(neighbours: str | None, covered: str) -> None:
    _check_known_neighbours(neighbours)
    if neighbours not in (None, covered):
        raise UnsupportedError(f"Such a claim has a theorem here for neighbours by {covered}, not by {neighbours}")


def _check_known_neighbours(neighbours: str | None) -> None:
    if neighbours is not None:
        word("neighbours", neighbours, ("replace", "add-remove"), "replace or add-remove")


def _promises(epsilon0: float | list[float] | None) -> list[float]:
    several = epsilon0 if isinstance(epsilon0, list | tuple) else [epsilon0]
    if not several:
        raise refuse("epsilon0", "one number or more", epsilon0)
    return [privacy_budget("epsilon0", one) for one in several]


def _subjects(epsilon0: float | list[float] | None, randomizer: str | Randomizer) -> list[Randomizer | float]:
    """The randomizers of a claim: any of these epsilons, or one by its name."""
    if isinstance(randomizer, Randomizer):
        if epsilon0 is not None:
            raise ParameterError("a randomizer brings its epsilon: give no `epsilon0` beside it.")
        return [randomizer]
    if not isinstance(randomizer, str):
        raise refuse("randomizer", "any, unknown or the name of a randomizer", randomizer)
    promises = _promises(epsilon0)
    if randomizer in (ANY, UNKNOWN):
        return [*promises]
    kind, given = read_randomizer(randomizer)
    if "epsilon" in given:
        raise ParameterError(f"{kind.name}: its epsilon is `epsilon0`, and stands there alone.")
    needed = {*kind.domain, *(setting.name for setting in kind.settings() if setting.required)}
    missing = sorted(needed - set(given) - {"lower", "upper", "grid"})
    if missing:
        raise ParameterError(f"{kind.name} needs {', '.join(missing)}, such as {kind.name}:{missing[0]}=10.")
    usual = {name: value for name, value in (("lower", 0.0), ("upper", 1.0)) if name in kind.domain}
    make: Any = kind
    return [make(**(usual | given), epsilon=one) for one in promises]


# Files of claims, TOML or JSON, that a continuous integration judges at every commit.


ABOUT = ("name", "expect", "source")  # keys that say nothing of the mechanism


@dataclass(frozen=True)
class FiledClaim:
    """One claim of a file.

    Parameters
    ----------
    name : str
    given : arguments of `audit_claim`, by name
    expect : one of `VERDICTS`, or None
        The verdict that it should have.
    source : str
        Where it was made, such as a link.
    """

    name: str
    given: dict[str, Any]
    expect: str | None = None
    source: str = ""

    def audit(self) -> AuditedClaim:
        """The verdict; errors name the claim."""
        try:
            return audit_claim(**self.given)
        except ParameterError as error:
            raise ConfigError(f"claim {self.name!r}: {error}") from None

    def fails(self, found: AuditedClaim, *, strict: bool) -> bool:
        """True if the verdict is not the expected one; where none is expected, if impossible, or strictly not proved.

        >>> impossible = audit_claim(epsilon=1, epsilon0=2)
        >>> [FiledClaim("a", {}, expect).fails(impossible, strict=False) for expect in (None, "impossible", "proved")]
        [True, False, True]
        """
        if self.expect is not None:
            return found.verdict != self.expect
        return found.verdict != "proved" if strict else found.verdict == "impossible"


def read_claims(place: Path) -> list[FiledClaim]:
    """The claims of a file, at least one: `[[claim]]` tables, or a JSON object with a list `claim`.

    Raises
    ------
    ConfigError
        In one line: what cannot be read, or which key of which claim is wrong.
    """
    raw = read_json(place, error=ConfigError) if place.suffix.lower() == ".json" else read_toml(place)
    rows = raw.get("claim") if isinstance(raw, dict) and set(raw) == {"claim"} else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{place}: must hold [[claim]] tables and nothing else, at least one of them.")
    claims = [_claim(place, row, number) for number, row in enumerate(rows, 1)]
    names = [claim.name for claim in claims]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{place}: two claims have the name {twice!r}.")
    return claims


def _claim(place: Path, row: dict[str, Any], number: int) -> FiledClaim:
    name = row.get("name", f"claim {number}")
    known = [*ABOUT, *inspect.signature(audit_claim).parameters]
    unknown = next((key for key in row if key not in known), None)
    if unknown is not None:
        raise ConfigError(f"{place}: claim {name!r} has an unknown key `{unknown}`{nearest(unknown, known)}")
    if not all(isinstance(row.get(key, ""), str) for key in ABOUT):
        raise ConfigError(f"{place}: claim {name!r}: {', '.join(ABOUT)} must be texts.")
    expect = row.get("expect")
    if expect is not None and expect not in VERDICTS:
        raise ConfigError(f"{place}: claim {name!r}: `expect` must be one of {', '.join(VERDICTS)}, got {expect!r}.")
    if "epsilon" not in row:
        raise ConfigError(f"{place}: claim {name!r} needs `epsilon`, what is claimed.")
    given = {key: value for key, value in row.items() if key not in ABOUT}
    return FiledClaim(name, given, expect, row.get("source", ""))
