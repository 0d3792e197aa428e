"""Planning any question of the registry, by the objects that `run` makes of the same configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING
from functools import cached_property, partial
from typing import Any

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import sent_law
from dovetail.core.checks import MOST_PEOPLE, positive, privacy_budget, whole
from dovetail.core.display import upward
from dovetail.core.errors import DovetailError, ParameterError, UnsupportedError
from dovetail.core.estimate import Z95
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import Noise, People
from dovetail.core.question import QUESTIONS, WEAK, Question
from dovetail.core.verdict import judge_central, numbered, warnings_of
from dovetail.job.build import build_noise, build_question
from dovetail.job.config import DEFAULT, parse_config
from dovetail.plan.infeasible import InfeasibleError, round_up_to_three_digits
from dovetail.plan.search import MARGIN, SEARCH_POINTS, check_wishes, default_delta, honest_people
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.report.document import central_document
from dovetail.report.number_format import Unit
from dovetail.shuffle.uniform import Uniform
from dovetail.table.columns import ABSENT

LEAST, MOST, ASKED = 0.01, 12.0, 20.0  # epsilon of the noise that is searched, and that may be asked for
MOST_OF_ARRAYS, ASKED_OF_ARRAYS = 30.0, 700.0  # the same of vectors, which need more
TOLERANCE = 5e-4  # how far above the least a found number may lie, relative
MANY = 1e9  # people who are searched
FILL_IN = "FILL IN"


@dataclass(frozen=True, eq=False)
class QuestionPlan:
    """A question with its noise, before anybody is asked: what is promised, and how far off what is learned may be.

    Attributes
    ----------
    question : Question
    noise : Noise
    people : People
    delta : float
    config : mapping
        The configuration that makes these objects; what only the table knows says FILL IN.
    chosen : mapping
        Settings of the question that the plan chose.
    others : mapping of str
        The other randomizers of vectors at the same wishes, or why they cannot meet them.
    """

    question: Question
    noise: Noise
    people: People
    delta: float
    config: Mapping[str, Any]
    chosen: Mapping[str, Any]
    others: Mapping[str, QuestionPlan | str] = field(default_factory=dict)

    @cached_property
    def standard_error(self) -> float:
        """Of what is learned about exactly these people, whatever they hold."""
        return self.question.error(self.noise, self.people)

    @property
    def error95(self) -> float:
        """The 95 % error of what is learned, mostly by the normal law."""
        found = self.question.error95(self.noise, self.people)
        return Z95 * self.standard_error if found is None else found

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the guarantee, or about what is learned."""
        told = self.question.too_few(self.noise, self.people, WEAK)
        own, n = self.noise.local.epsilon, self.people.n
        found = warnings_of(self.central.delta, n, honest=self.people.trusted, epsilon0=own)
        return (*found, *([] if told is None else [told]), *self.noise.repeated(self.noise.local)[:1])

    @cached_property
    def central(self) -> CentralDP:
        """The guarantee of the shuffled batch."""
        found = self.noise.central(Uniform(self.people.n), self.people, delta=self.delta)
        if not isinstance(found, CentralDP):
            raise UnsupportedError(found.reason)
        return found

    def keeps(self, epsilon: float) -> bool:
        """True if the shuffled batch promises epsilon, by one evaluation where that is enough."""
        own: Any = self.noise.accounted
        law = sent_law(own) if self.question.of_arrays else own
        if law is None or self.noise.local.delta > 0.0:
            return self.central.epsilon <= epsilon
        known = Accountant(law, n=self.people.trusted)
        return known.log_ratio(epsilon * (1.0 - MARGIN), delta=self.delta, points=SEARCH_POINTS) <= 0.0


@dataclass(frozen=True)
class _Asked:
    """The question, and everything but how many people there are and how strong the noise is."""

    section: Mapping[str, Any]
    data: Mapping[str, Any]
    trust: str
    randomizer: str | None
    delta: float | None
    honest: float | None
    promise: Mapping[str, Any]  # which dummies, and for how many rounds
    memoize: Mapping[str, Any]  # the section, where answers are drawn once for all rounds

    @property
    def of_arrays(self) -> bool:
        return QUESTIONS[self.section["ask"]].of_arrays

    @property
    def most(self) -> float:
        """The largest epsilon of the noise that is searched."""
        return MOST_OF_ARRAYS if self.of_arrays else MOST

    @property
    def largest(self) -> float:
        """The largest epsilon that may be asked for."""
        return ASKED_OF_ARRAYS if self.of_arrays else ASKED

    def made(self, epsilon: float, n: int) -> QuestionPlan:
        """The plan of the least error among the values of settings that were left to it."""
        best: QuestionPlan | None = None
        for chosen in self._choices():
            try:
                found = self._of(chosen, epsilon, n)
                gain = 1.0 - found.question.planned_gain
                better = best is None or found.standard_error < gain * best.standard_error
            except DovetailError:  # more dummies than a person, or an answer, can have
                if best is None:
                    raise
                break
            if not better:  # errors fall to the best value and rise behind it
                break
            best = found
        assert best is not None
        return best

    def _choices(self) -> Iterator[dict[str, Any]]:
        kind = QUESTIONS[self.section["ask"]]
        open_ = [(name, values) for name, values in kind.planned.items() if name not in self.section]
        if not open_:
            yield {}
        for name, values in open_:
            yield from ({name: value} for value in values)

    def _of(self, chosen: dict[str, Any], epsilon: float, n: int) -> QuestionPlan:
        delta, honest = default_delta(n) if self.delta is None else self.delta, honest_people(self.honest, n)
        promise: dict[str, Any] = {"delta": delta} | ({"honest": honest} if honest < n else {})
        arrays = self.of_arrays
        raw: dict[str, Any] = {
            "schema_version": 1, "mode": "rehearsal",
            "data": {"path": f"{FILL_IN}.{'parquet' if arrays else 'csv'}", "private": FILL_IN, **self.data},
            "question": {**self.section, **chosen}, **self.memoize,
        }  # fmt: skip
        if self.trust == "local":
            usual = DEFAULT if arrays else "krr"
            raw["randomize"] = {"randomizer": self.randomizer or usual, "epsilon": epsilon}
        else:
            promise |= {"trust": self.trust, "epsilon": epsilon, **self.promise}
        config = parse_config({**raw, "promise": promise}, name="")
        question = build_question(config, config.data.categories)
        people = People(n, honest=honest if honest < n else None)
        noise = build_noise(config, question, n=n)
        return QuestionPlan(question, noise, people, delta, {**raw, "promise": promise}, chosen)

    def needed(self, error: float, n: int) -> float:
        """The least epsilon of the noise that reaches an error; infinite where none does."""
        return least(lambda epsilon: self._error95(epsilon, n) <= error, LEAST, self.most)

    def affordable(self, epsilon: float, n: int) -> float:
        """The largest epsilon of the noise with which the batch promises `epsilon`; 0 where none does."""
        beyond = least(lambda own: not self.made(own, n).keeps(epsilon), LEAST, self.most)
        if math.isinf(beyond):
            return self.most
        for _ in range(8 if beyond > LEAST else 0):  # what is promised is computed to more digits than is searched
            beyond /= 1.0 + 2.0 * TOLERANCE
            if self.made(beyond, n).central.epsilon <= epsilon:
                return beyond
        return 0.0

    def _error95(self, epsilon: float, n: int) -> float:
        try:
            return self.made(epsilon, n).error95
        except DovetailError:
            return math.inf

    def enough(self, wishes: Mapping[str, float], n: int) -> bool:
        """True if n people can meet the wishes."""
        try:
            if (
                self.trust != "local" and {"error", "epsilon"} <= wishes.keys()
            ):  # all that dummies may promise is used
                return self._error95(wishes["epsilon"], n) <= wishes["error"]
            return self.meeting(wishes, n, quick=True) is not None
        except DovetailError:
            return False

    def meeting(self, wishes: Mapping[str, float], n: int, *, quick: bool = False) -> QuestionPlan | None:
        """The plan of n people that meets the wishes; None where none does, or none that a `quick` look sees."""
        own, ceiling = wishes.get("epsilon0"), wishes.get("epsilon", math.inf)
        if own is None and "error" in wishes:
            own = self.needed(wishes["error"], n)
        elif own is None:
            own = self.affordable(ceiling, n) if self.trust == "local" else ceiling
        if not 0.0 < own <= self.largest:
            return None
        plan = self.made(own, n)
        accurate = plan.error95 <= wishes.get("error", math.inf)
        if not accurate or math.isinf(ceiling):
            return plan if accurate else None
        return plan if (plan.keeps(ceiling) if quick else plan.central.epsilon <= ceiling) else None


def plan_question(
    ask: str,
    *,
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
    n: int | None = None,
    trust: str = "local",
    error: float | None = None,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    delta: float | None = None,
    honest: float | None = None,
    randomizer: str | None = None,
    dummies: str | None = None,
    rounds: int | None = None,
    constant_values: bool = False,
) -> QuestionPlan:
    """Plan a question of the registry: of people, error and privacy the one that was left out.

    Parameters
    ----------
    ask : str
        Name of the question.
    settings : mapping
        Of the question; a column that is left out is to be filled in, and so is the private one.
    data : mapping
        What [data] says of the private column: `lower` and `upper`, or `categories`.
    n : int, optional
        People; left out, the least number for two wishes.
    trust : "local", "shuffler" or "users"
    error : float, optional
        What may be off with probability 95 %, in the unit of what is learned.
    epsilon, epsilon0 : float, optional, nats
        Of the shuffled batch, and of one report (with `trust` "local").
    honest : int, or float below 1, optional
        People who are counted on, or their share; default all.
    dummies : "best", "geometric", "gaussian" or "sparse", optional
        Which the shuffler adds; the best is the better of the first two by the number of rounds, and of symbols that
        a person sends.
    rounds : int, optional
        Releases about the same people that keep `epsilon` together, with `trust` "shuffler".
    constant_values : bool
        Your word that nobody's value changes over rounds, with `trust` "local": everybody draws one answer for all of
        them, which together promise what one does.

    Raises
    ------
    ParameterError, ConfigError, InfeasibleError
        With what to relax.

    Examples
    --------
    >>> settings = {"other_lower": 0.0, "other_upper": 40.0}
    >>> data = {"lower": 0.0, "upper": 10.0}
    >>> plan = plan_question("covariance", settings=settings, data=data, n=10_000, trust="shuffler", epsilon=1.0)
    >>> plan.question.points, round(plan.error95, 1)
    (7, 0.4)
    """
    texts = dict.fromkeys(QUESTIONS[ask].of_table, FILL_IN + " TOO")
    for name in left_out(ask, {*settings, *data, *(["k"] if "categories" in data else [])}):
        raise ParameterError(f"`{name}` must be given for a plan of {QUESTIONS[ask].label}.")
    if trust != "shuffler" and (dummies is not None or rounds is not None):
        raise ParameterError('`dummies` and `rounds` go with `trust` "shuffler".')
    if trust != "local" and constant_values:
        raise ParameterError('`constant_values` goes with `trust` "local": dummies are drawn for each round.')
    often = rounds is not None or QUESTIONS[ask].several or QUESTIONS[ask].bounds_sums  # many symbols of a person
    # where the kind of noise is left open, the best of the kinds
    again = partial(
        plan_question, ask, settings=settings, data=data, n=n, trust=trust, error=error, epsilon=epsilon,
        epsilon0=epsilon0, delta=delta, honest=honest, constant_values=constant_values,
    )  # fmt: skip
    if trust == "shuffler" and often and dummies in (None, "best"):
        kinds = ("geometric", "gaussian")
        return replace(_best({kind: partial(again, dummies=kind, rounds=rounds) for kind in kinds}, error), others={})
    if trust == "local" and QUESTIONS[ask].of_arrays and randomizer is None:
        # a local delta is nothing to be had unasked
        pure = [kind.name for kind in VECTOR_RANDOMIZERS if kind.is_pure]
        return _best({name: partial(again, randomizer=name) for name in pure}, error)
    # the collection that is asked for, and what is wished of it
    data = {**data, "missing": ABSENT} if QUESTIONS[ask].takes_gaps else data
    several: dict[str, Any] = {} if rounds is None else {"rounds": rounds}
    if dummies not in (None, "best", "geometric"):
        several["dummies"] = dummies
    memoize = {"memoize": {"constant_values": True}} if constant_values else {}
    asked = _Asked({"ask": ask, **texts, **settings}, data, trust, randomizer, delta, honest, several, memoize)
    wishes = _wishes({"error": error, "epsilon": epsilon, "epsilon0": epsilon0}, n, trust, most=asked.largest)
    # its people, and the plan that meets the wishes with them
    people = (
        float(n) if n is not None else least(lambda n: asked.enough(wishes, math.ceil(n)), 2.0, MANY, tolerance=1e-3)
    )
    if math.isinf(people):
        listed = " and ".join(f"`{name}` = {value:g}" for name, value in wishes.items())
        raise ParameterError(f"{listed} cannot both hold with any number of people up to {MANY:,.0f}.")
    plan = asked.meeting(wishes, math.ceil(people))
    if plan is None:
        raise _refusal(asked, wishes, math.ceil(people))
    told = plan.question.too_few(plan.noise, plan.people) if plan.question.drowns else None
    if told is not None:
        raise ParameterError(f"{told}, or a larger epsilon.")
    return plan


def left_out(ask: str, told: Iterable[str]) -> list[str]:
    """List what a plan lacks, beside what it is `told`, and no table can fill in: settings, and the column's range.

    >>> left_out("covariance", {"lower", "upper", "other_lower"})
    ['other_upper']
    """
    kind = QUESTIONS[ask]
    own = [] if kind.of_arrays else ["lower", "upper"] if kind.of_numbers else ["k"]
    needed = [*own, *(one.name for one in kind.settings() if one.required and one.name not in kind.of_table)]
    return [name for name in needed if name not in told]


def _best(kinds: Mapping[str, Callable[[], QuestionPlan]], error: float | None) -> QuestionPlan:
    """The plan of the fewest people, the least epsilon that reaches a wanted error, and the least error."""
    tried, refused = dict[str, QuestionPlan](), dict[str, ParameterError | UnsupportedError]()
    for name, plan in kinds.items():
        try:
            tried[name] = plan()
        except (ParameterError, UnsupportedError) as fault:  # where one kind is too wide another may not be
            refused[name] = fault
    if not tried:
        raise min(refused.values(), key=lambda one: dict(getattr(one, "ways", ())).get("error", math.inf))

    def price(name: str) -> tuple[float, ...]:
        plan = tried[name]
        spent = plan.config["promise"].get("epsilon", plan.central.epsilon)
        return plan.people.n, 0.0 if error is None else spent, plan.standard_error

    best = min(tried, key=price)
    others: dict[str, QuestionPlan | str] = {name: one for name, one in tried.items() if name != best}
    return replace(tried[best], others=others | {name: str(fault) for name, fault in refused.items()})


def _wishes(given: Mapping[str, float | None], n: int | None, trust: str, *, most: float) -> dict[str, float]:
    if trust != "local" and given["epsilon0"] is not None:
        raise ParameterError(f"`epsilon0` does not go with `trust` {trust!r}: no report promises anything by itself.")
    if n is None:
        return check_wishes(dict(given))
    whole("n", n, least=2, most=MOST_PEOPLE)
    wishes = {
        name: positive(name, value) if name == "error" else privacy_budget(name, value, most=most)
        for name, value in given.items()
        if value is not None
    }
    if not wishes or ("epsilon0" in wishes and len(wishes) > 1):
        raise ParameterError("with `n`, give one of `error`, `epsilon` and `epsilon0`, or both first ones.")
    return wishes


def _refusal(asked: _Asked, wishes: Mapping[str, float], n: int) -> ParameterError:
    """The error that names changes of which each by itself would be enough."""
    without = {name: value for name, value in wishes.items() if name != "error"}
    best = asked.meeting(without or {"epsilon0": asked.most}, n)
    ways: dict[str, float] = {} if best is None else {"error": best.error95}
    if "error" in wishes and "epsilon" in wishes:
        alone = asked.meeting({"error": wishes["error"]}, n)
        ways |= {} if alone is None else {"epsilon": alone.central.epsilon}
    if "error" in wishes and asked.trust == "local":
        all_ = wishes if without else {**wishes, "epsilon0": asked.most}
        ways["n"] = least(lambda n: asked.enough(all_, math.ceil(n)), 2.0, MANY, tolerance=1e-3)
    return infeasible(" and ".join(f"{name} {value:g}" for name, value in wishes.items()), n, ways)


def least(true: Callable[[float], bool], low: float, high: float, *, tolerance: float = TOLERANCE) -> float:
    """The least number from `low` to `high` at which a monotone condition is true, from above; else infinity."""
    if true(low):
        return low
    if not true(high):
        return math.inf
    while high > (1.0 + tolerance) * low and math.ceil(high) - low > 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def infeasible(what: str, n: int, ways: Mapping[str, float]) -> InfeasibleError:
    """The error for what is out of reach: it names changes of which each alone is enough."""
    words = {"error": "allow an error of {}", "epsilon": "allow epsilon {}", "n": "collect {} people"}
    rounded = {
        name: f"{math.ceil(value):,}" if name == "n" else round_up_to_three_digits(value)
        for name, value in ways.items()
        if math.isfinite(value)
    }
    listed = (
        " or ".join(words[name].format(value) for name, value in rounded.items())
        or "use another randomizer, or a larger delta"
    )
    numbers = [(name, float(value.replace(",", ""))) for name, value in rounded.items()]
    return InfeasibleError(f"{what} cannot be had from {n:,} people: {listed}.", numbers)


def data_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [data] for a column of which a plan knows `lower` and `upper`, or how many categories, `k`."""
    data = dict(given)
    if "k" in data:
        data["categories"] = [f"{FILL_IN} {place}" for place in range(1, data.pop("k") + 1)]
    return data


def question_document(plan: QuestionPlan) -> dict[str, Any]:
    """The plan for JSON."""
    return {
        "question": {**plan.question.described(FILL_IN), **plan.chosen},
        "measure": plan.question.measure,
        "error_of": plan.question.planned_measure or plan.question.measure,
        "n": plan.people.n,
        "trust": plan.noise.trust,
        "randomizer": plan.noise.randomizer.name,
        "local": {"epsilon": plan.noise.local.epsilon, "delta": plan.noise.local.delta},
        **_numbers(plan),
        "central": central_document(plan.central),
        "verdict": judge_central(plan.central, local_delta=plan.noise.local.delta).document(),
        "alternatives": [
            {"randomizer": name, **({"reason": one} if isinstance(one, str) else _numbers(one))}
            for name, one in plan.others.items()
        ],
        "files": {},
    }


def _numbers(plan: QuestionPlan) -> dict[str, Any]:
    return {
        "epsilon0": plan.noise.local.epsilon,
        "epsilon": plan.central.epsilon,
        "delta": plan.central.delta,
        "standard_error": plan.standard_error,
        "error95": plan.error95,
        **plan.question.planned_beside(plan.noise, plan.people),
    }


def question_error(plan: QuestionPlan, error: float) -> str:
    """An error of the plan in the unit of what is learned."""
    return Unit.of(plan.question.planned_measure or plan.question.measure)(error, error, ROUND_CEILING)


def question_rows(plan: QuestionPlan) -> dict[str, str]:
    """The plan as rows by name."""
    central, own, slack = plan.central, plan.noise.local.epsilon, plan.noise.local.delta
    randomizer, length = plan.noise.randomizer, " in Euclidean length" if plan.question.of_arrays else ""
    sent = {"randomizer": f"{randomizer.label} ({randomizer.name}), {randomizer.report_bits:,} bits a report"}
    beside = {
        name.replace("_", " "): question_error(plan, value)
        for name, value in plan.question.planned_beside(plan.noise, plan.people).items()
    }
    others = {
        f"or {name}": one
        if isinstance(one, str)
        else f"epsilon0 {upward(one.noise.local.epsilon)}, epsilon {upward(one.central.epsilon)}, error "
        f"{question_error(one, one.error95)}, {one.noise.randomizer.report_bits:,} bits a report"
        for name, one in plan.others.items()
    }
    chosen = "".join(f"; {name} = {value}" for name, value in plan.chosen.items())
    return {
        "protection": judge_central(central).sentence(),
        "question": f"{plan.question.label}{chosen}",
        "noise": plan.noise.label,
        **({} if math.isinf(own) else sent),
        "epsilon0": "infinite: no local promise"
        if math.isinf(own)
        else f"{upward(own)}{f', delta {upward(slack)}' if slack else ''}: one report",
        "epsilon": f"{upward(central.epsilon)} with delta {upward(central.delta)}: the shuffled batch",
        "trust": "; ".join(central.lines()),
        "error": f"{question_error(plan, plan.error95)}{length} with 95 % probability, {plan.question.planned_of}",
        "standard error": f"{question_error(plan, plan.standard_error)}, of exactly these people",
        **beside,
        **others,
        **numbered(plan.warnings),
    }
