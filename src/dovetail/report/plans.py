"""A plan in words, in rows and as a JSON document, the same for the command line and the browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING
from typing import TYPE_CHECKING, Any

from dovetail.core.display import chance_in_words, error_in_words, guess_in_words
from dovetail.core.missing import Missing
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.core.verdict import judge_central, numbered, warnings_of
from dovetail.report.charts import NamedCurve, ReferenceLine, curve_chart
from dovetail.report.document import central_document
from dovetail.report.html import Number, Picture, ResultPage, Section
from dovetail.report.number_format import ABSENT, Unit, upward
from dovetail.report.tables import Table

if TYPE_CHECKING:
    from dovetail.plan.dummies import DummiesPlan, TrustingPlan, UserDummiesPlan
    from dovetail.plan.planner import CollectionPlan, Recommendation
    from dovetail.plan.requirements import Requirements


# A plan in words, row by row, the same for the command line and the browser.


def short_plan_rows(plan: CollectionPlan) -> dict[str, str]:
    """The five rows that decide, and every warning."""
    rows, seen = plan_rows(plan), plan.risk.exact
    if seen is not None:
        batch, own = (guess_in_words(guess, seen.prior) for guess in (seen.randomized_shuffled, seen.randomized))
        rows["best guess"] = (
            f"right in {batch.best} from the shuffled batch, {own.best} if it is known who sent what; blind "
            f"{batch.blind}"
        )
    rows["randomizer"] = f"{rows['randomizer']}, epsilon0 = {upward(plan.epsilon0)}"
    decide = ("protection", "randomizer", "epsilon", "error", "best guess")
    return {name: rows[name] for name in decide} | numbered(plan.notes)


def _grid(randomizer: FrequencyRandomizer | NumericRandomizer) -> str:
    """The grid that numbers are reported on."""
    if not isinstance(randomizer, NumericRandomizer):
        return ""
    steps = round((randomizer.upper - randomizer.lower) / randomizer.step)
    return f", on a grid of {steps:,} steps of {randomizer.step:.6g}"


def plan_rows(plan: CollectionPlan) -> dict[str, str]:
    """Rows of a plan by name: what is collected, guaranteed and risked."""
    everybody, some, colluding = plan.central.lines()
    return {
        "protection": plan.verdict.sentence(),
        "randomizer": f"{plan.randomizer.label} ({plan.randomizer.name})",
        "report": f"{plan.report_bits:,} bits{_grid(plan.randomizer)}",
        "epsilon0": f"{upward(plan.epsilon0)} (one report); to configure a randomizer: {plan.epsilon0!r}",
        "epsilon": f"{upward(plan.epsilon)} (shuffled batch), delta {upward(plan.central.delta)}",
        "shuffle": _shuffle(plan),
        "all honest": everybody,
        "some honest": some,
        "colluding": colluding,
        **_error_rows(plan),
        "best guess": _guess(plan),
        "which report is hers": _linked(plan),
        "smallest n": plan.smallest_n_reason if plan.smallest_n is None else f"{plan.smallest_n:,}",
        **numbered(plan.notes),
    }


def _error_rows(plan: CollectionPlan) -> dict[str, str]:
    what = "of one share" if plan.requirements.question == "frequency" else "of the mean"
    held = "whatever people hold" if plan.requirements.shares == "any" else "where every value is equally frequent"
    condition = f", {held}" if plan.requirements.k is not None else ""
    drawn = plan_error(plan, plan.accuracy.population_error95)
    rows = {
        "error": f"{plan_error(plan, plan.error95)} {what} with 95 % probability{condition}",
        "standard error": f"{plan_error(plan, plan.standard_error)}, among exactly these people",
        "with sampling": f"at most {drawn}, for the population behind them",
    }
    if plan.in_smallest_group is not None:
        rows["smallest group"] = f"{plan_error(plan, plan.in_smallest_group.error95)} {what} of that group alone"
    if plan.flat is not None and plan.requirements.shares == "any":
        rows["even shares"] = f"{plan_error(plan, plan.flat.error95)} where every value is equally frequent"
    return rows


def _shuffle(plan: CollectionPlan) -> str:
    people = plan.requirements.smallest_group
    if people is None:
        return f"{plan.shuffler}: everybody with everybody"
    return f"{plan.shuffler}: the smallest group has {people:,} people"


def plan_error(plan: CollectionPlan | Recommendation, value: float) -> str:
    """An error of this plan's estimates with its unit."""
    return error_in_words(value, share=plan.requirements.question == "frequency")


def _guess(plan: CollectionPlan) -> str:
    seen = plan.risk.exact
    if seen is None:
        return f"not known: {plan.risk.reason}"
    guess = guess_in_words(seen.randomized_shuffled, seen.prior)
    return (
        f"who finds all {plan.requirements.k:,} values equally likely guesses one person's in one try with "
        f"probability {guess.best}, {guess.times} times the {guess.blind} without any data; from the report itself, "
        f"if the shuffler colludes: {guess_in_words(seen.randomized, seen.prior).best}"
    )


def _linked(plan: CollectionPlan) -> str:
    found = plan.risk.linkage
    return (
        f"who knows everybody's value names a person's report with chance {chance_in_words(found.values_known)} at "
        f"most, who knows hers and the shares of the others' {chance_in_words(found.shares_known)}; blind "
        f"{chance_in_words(found.blind)}"
    )


def plan_objections(plan: CollectionPlan) -> dict[str, list[str]]:
    """Reasons against other randomizers, each with those that it holds for."""
    found: dict[str, list[str]] = {}
    for row in plan.alternatives:
        if row.reason:
            found.setdefault(row.reason, []).append(row.randomizer)
    return found


# A plan as a JSON document, the same for the command line and the browser.


def plan_document(plan: CollectionPlan) -> dict[str, Any]:
    """The plan as a JSON document; what does not apply is null with its reason."""
    unknown = Missing(plan.risk.reason)
    local = plan.randomizer.guarantee
    return {
        "question": {
            name: Missing("not asked") if value is None else value for name, value in _requirements(plan.requirements)
        },
        "n": plan.requirements.n,
        "trust": plan.central.trust,
        "shuffler": plan.shuffler,
        "randomizer": plan.randomizer.name,
        "parameters": vars(plan.randomizer).copy(),
        "report_bits": plan.report_bits,
        "epsilon0": plan.epsilon0,
        "epsilon": plan.epsilon,
        "delta": plan.central.delta,
        "standard_error": plan.standard_error,
        "error95": plan.error95,
        "population_error95": plan.accuracy.population_error95,
        "flat_error95": Missing("a mean has no shares") if plan.flat is None else plan.flat.error95,
        "group_error95": Missing("everybody is shuffled together: no group is estimated by itself")
        if plan.in_smallest_group is None
        else plan.in_smallest_group.error95,
        "vulnerability": unknown if plan.vulnerability is None else plan.vulnerability,
        "gain": unknown if plan.risk.gain is None else plan.risk.gain,
        "leakage": unknown if plan.risk.exact is None else {**asdict(plan.risk.exact), "prior_law": "uniform"},
        "linkage": asdict(plan.risk.linkage),
        "local": {"epsilon": local.epsilon, "delta": local.delta, "source": local.source},
        "central": central_document(plan.central),
        "verdict": plan.verdict.document(),
        "smallest_n": Missing(plan.smallest_n_reason) if plan.smallest_n is None else plan.smallest_n,
        "tradeoff": [_step(asdict(step), unknown) for step in plan.tradeoff],
        "alternatives": [_step(asdict(row), Missing(row.reason)) for row in plan.alternatives],
        "notes": list(plan.notes),
    }


def _requirements(requirements: Requirements) -> list[tuple[str, Any]]:
    return [("kind" if name == "question" else name, value) for name, value in asdict(requirements).items()]


def _step(row: dict[str, Any], unknown: Missing) -> dict[str, Any]:
    return {name: unknown if value is None else value for name, value in row.items()}


# A plan that trusts the shuffler or people together, row by row, the same for the command line and the browser.


TRUSTED = {
    "shuffler": "the shuffler adds the noise; with the analyst it reads every answer",
    "users": "people add the noise together; shuffler and analyst together read every answer",
}
DUMMIES = {
    "geometric": "two-sided geometric, the least noise for people who are asked up to four times",
    "gaussian": "Gaussian, the least noise for people who are asked five times and more",
    "digits": "Gaussian, of the digits of a number: each person sends a report of every digit",
    "sparse": "sparse, of few answers and without delta: for long lists, never for accuracy",
}
TITLES = {"shuffler": "trusting the shuffler", "users": "who add the noise together"}


def trusting_rows(plan: TrustingPlan) -> dict[str, str]:
    """Rows of a plan by name: what is collected and guaranteed, and who has to be trusted with what."""
    from dovetail.plan.dummies import DummiesPlan, UserDummiesPlan

    rows = _rows(plan)
    if isinstance(plan, DummiesPlan):
        return {**rows, **_of_the_shuffler(plan)}
    assert isinstance(plan, UserDummiesPlan)
    return {**rows, **_of_users(plan)}


def _of_the_shuffler(plan: DummiesPlan) -> dict[str, str]:
    each, own = plan.added / plan.dummies.k, plan.reports
    of_a_count = f"standard deviation {plan.count_variance**0.5:.3g}, "
    if plan.largest_count_error is None:
        of_a_count += "of an answer that nobody gives; frequent answers pay, since reports are kept by chance"
    else:
        of_a_count += f"at most {plan.largest_count_error:,} off"
    what = "value" if plan.kind != "digits" else "digit"
    together = (
        {}
        if plan.rounds == 1
        else {"rounds": f"{plan.rounds:,} releases about the same people keep this epsilon together"}
    )
    return {
        **together,
        "dummies": DUMMIES[plan.kind],
        **({} if plan.kind == "digits" else {"of a count": of_a_count}),
        "messages": f"{own:,} a person, and {plan.added:,} dummies ({each:,.3g} for each {what}) on average",
        "bytes": f"{plan.message_bytes:,} of each message, sealed for the service",
    }


def _of_users(plan: UserDummiesPlan) -> dict[str, str]:
    every, rate = plan.central.all, upward(plan.dummies.rate)
    return {
        "dropouts": f"who does not send takes noise away: counted on are {plan.central.honest_n:,} people; if all "
        f"{plan.n:,} send, epsilon is {upward(every)}",
        "of a count": f"standard deviation {plan.dummies.variance(plan.n) ** 0.5:.3g}, whatever the count",
        "messages": f"1 a person, and a dummy with probability {rate}: at most 2, {upward(plan.messages)} on average",
        "bytes": f"{plan.message_bytes:,} a person, sealed for the service: room for both, filled or not",
    }


def _rows(plan: TrustingPlan) -> dict[str, str]:
    against, condition, together = plan.trust_statement
    whom = "of one share with 95 % probability, frequent or rare"
    if getattr(plan, "kind", "") == "sparse":
        whom = "of the share of an answer that everybody gives, with 95 % probability; rare ones are surer"
    if plan.span is not None:
        whom = f"of the mean with 95 % probability, on a grid of {plan.points:,} points"
    return {
        "protection": judge_central(plan.central).sentence(),
        "trust": f"{against}, {condition}",
        "but": together,
        "epsilon": f"{upward(plan.central.epsilon)}, delta {upward(plan.central.delta)}",
        "epsilon0": "infinite: no local promise",
        "error": f"{trusting_error(plan)} {whom}",
        "with sampling": f"at most {_in_its_unit(plan, plan.accuracy.population_error95)}",
        **numbered(warnings_of(plan.central.delta, plan.n)),
    }


def trusting_error(plan: TrustingPlan) -> str:
    """Error of one share, or of the mean, with its unit."""
    return _in_its_unit(plan, plan.accuracy.error95)


def _in_its_unit(plan: TrustingPlan, error: float) -> str:
    return Unit.of("share" if plan.span is None else "mean")(error, error, ROUND_CEILING)


# The frontier of order privacy in words and pictures: what alpha buys, and what it costs.


Document = dict[str, Any]

COLUMNS = ("alpha asked", "shuffler", "alpha kept", "told apart", "lambda", "group error", "attack", "verdict")
LEGEND = (
    "told apart: bound on the chance to guess who of two people of one group sent a report, e^alpha / (1 + e^alpha).",
    "lambda: share of the differences between regions that the order takes away, 0 none, 1 all.",
    "group error: root mean square error of the share of a region, noise of the reports included.",
    "attack: chance that the likelihood attack, which knows the shuffle's law, names a person's simulated value.",
    "verdict: beside stands for comparison; keeps is 1 - lambda, exposes the part of an attack's gain from a uniform "
    "shuffle to none. Buys nothing: keeps under 10 %; a uniform shuffle promises alpha = 0 for it. "
    "Costs everything: exposes more than 90 %. No promise: two of a group may be told apart with more than 99 %.",
)
LIMITS = (
    "The values are simulated: real ones may follow public columns more or less than these do.",
    "The attack is the best of ours, not of all; the bound in the column told apart holds whatever is done.",
    "The guarantee is alpha for the groups as they were given; what one report tells is up to epsilon.",
)


def frontier_table(document: Document) -> Table:
    """A row for each shuffler; uniform ones and none stand beside for comparison."""
    return Table(COLUMNS, tuple(_row(each) for each in document["points"]), LEGEND)


def frontier_page(document: Document, sentence: str) -> ResultPage:
    """The page: verdict, both curves, table, limits."""
    chance, agree = document["chance"], document["agree"]
    asked = [each for each in document["points"] if each["asked"] is not None]
    return ResultPage(
        kicker="Order privacy before any data",
        title="What alpha buys, and what it costs",
        verdict=sentence[:1].upper() + sentence[1:],
        found="nothing" if any(_worth(each) for each in asked) else "unclear",
        summary=(
            f"{document['n']:,} people in {document['regions']} regions of the public columns.",
            f"Simulated: {_percent(agree)} of a region hold its value, reports at epsilon = "
            f"{upward(document['epsilon'])}.",
        ),
        numbers=(
            Number("Blind guess", _percent(chance), "right without any report"),
            Number("Knowing the regions", _percent(agree), "right from the shares of regions alone"),
            Number("No shuffle", _percent(_of(document, "identity")["attack"]), "right with everybody's own report"),
        ),
        sections=(
            Section("The frontier", pictures=_pictures(document, asked)),
            Section("In numbers", tables=(("Shufflers", frontier_table(document)),), words=("shuffler", "verdict")),
        ),
        limits=LIMITS,
        source="Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR.",
    )


def _worth(point: Document) -> bool:
    return str(point["verdict"]).startswith("keeps") and "no promise" not in point["verdict"]


def _pictures(document: Document, asked: Sequence[Document]) -> tuple[Picture, ...]:
    shown = [each for each in asked if 0.0 < each["asked"] < math.inf]
    if len(shown) < 2:
        return ()
    x = [each["asked"] for each in shown]
    even, bare = _of(document, "uniform"), _of(document, "identity")
    axis = "alpha asked (logarithmic)"
    error = curve_chart(
        [NamedCurve("group error", "curve-main", x, [each["error"] for each in shown])],
        title="Group error against alpha",
        description="The error of a region's share falls from that of a uniform shuffle to that of none.",
        tick=lambda value: f"{value:.2f}",
        levels=(
            ReferenceLine("uniform shuffle", "level-other", even["error"]),
            ReferenceLine("none", "level-main", bare["error"]),
        ),
        axis=axis,
    )  # fmt: skip
    attack = curve_chart(
        [
            NamedCurve("attack", "curve-main", x, [each["attack"] for each in shown]),
            NamedCurve("bound: two told apart", "curve-other", x, [each["told_apart"] for each in shown]),
        ],
        title="Attack success against alpha",
        description="The success of the attack rises from the blind guess to that without a shuffle.",
        tick=lambda value: f"{100 * value:.0f} %",
        levels=(
            ReferenceLine("blind guess", "level-main", document["chance"]),
            ReferenceLine("no shuffle", "level-other", bare["attack"]),
        ),
        axis=axis,
    )
    return Picture("Error of a region's share", error), Picture("Right guesses of a person's value", attack)


def _of(document: Document, shuffler: str) -> Document:
    found: Document = next(e for e in document["points"] if e["asked"] is None and e["shuffler"] == shuffler)
    return found


def _row(point: Document) -> tuple[str, ...]:
    return (
        ABSENT if point["asked"] is None else _alpha(point["asked"]),
        str(point["shuffler"]),
        _alpha(point["alpha"]),
        _percent(point["told_apart"]),
        f"{point['lost']:.2f}",
        f"{point['error']:.3f}",
        _percent(point["attack"]),
        point["verdict"],
    )


def _alpha(value: float) -> str:
    return "inf" if math.isinf(value) else upward(value)


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"
