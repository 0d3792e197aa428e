"""The planner's pages: the question is the address, so that a link holds the whole state.

What is asked while fields change is answered in three parts, in the order in which they are known: what is
recommended, the plan, and what it costs to be more accurate.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from math import isinf
from shlex import quote
from typing import Any, TypeVar

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dovetail.core.display import counted, upward
from dovetail.core.errors import DovetailError, ParameterError
from dovetail.core.settings import Parameter
from dovetail.core.stages import RANDOMIZERS
from dovetail.core.verdict import Promise, Verdict, judge, judge_central, warnings_of
from dovetail.job.plan_file import dummies_toml, plan_toml, question_toml
from dovetail.job.question_plan import QuestionPlan, data_of, question_document, question_error, question_rows
from dovetail.plan.dummies import DummiesPlan, UserDummiesPlan
from dovetail.plan.explain import ParticipationPoint, absent_curve, dishonest_curve, why_recommended
from dovetail.plan.infeasible import InfeasibleError, round_up_to_three_digits
from dovetail.plan.planner import CollectionPlan, Recommendation
from dovetail.plan.requirements import Requirements
from dovetail.report.charts import NamedCurve, ReferenceLine, TickFormat, line_chart
from dovetail.report.document import to_jsonable
from dovetail.report.number_format import ABSENT, percent, percent_up
from dovetail.report.plans import (
    DUMMIES,
    TRUSTED,
    plan_document,
    plan_error,
    plan_objections,
    plan_rows,
    trusting_error,
    trusting_rows,
)
from dovetail.web.pages import Pages
from dovetail.web.questions import OTHERS, SETTINGS, SLIDERS, Ahead, Kept, Planned, Plans, Question, Refused

# Charts of a plan: the price of accuracy, and what is left when people lie or stay away.


def price_chart(plan: CollectionPlan) -> Markup:
    """Central epsilon over the error that it buys."""
    steps = sorted(plan.tradeoff, key=lambda step: step.error95)
    return line_chart(
        [
            NamedCurve(
                "shuffled batch (central ε)", "curve-main", [s.error95 for s in steps], [s.epsilon for s in steps]
            )
        ],
        title="Price of accuracy",
        description=f"Epsilon falls from {upward(steps[0].epsilon)} to {upward(steps[-1].epsilon)} as the error "
        f"grows from {plan_error(plan, steps[0].error95)} to {plan_error(plan, steps[-1].error95)}.",
        axis="95 % error of the estimate",
        tick=_plain,
        across=percent if plan.requirements.question == "frequency" else _plain,
        mark=ReferenceLine(f"this plan: {plan_error(plan, plan.error95)}", "mark", plan.error95),
    )


def share_chart(points: Sequence[ParticipationPoint], *, title: str, axis: str, mark: float | None) -> Markup:
    """Central epsilon over a share of people."""
    first, last = points[0], points[-1]
    return line_chart(
        [NamedCurve("central ε, at most", "curve-main", [p.share for p in points], [p.epsilon for p in points])],
        title=title,
        description=f"Central epsilon rises from {upward(first.epsilon)} at {percent(first.share)} to "
        f"{upward(last.epsilon)} at {percent(last.share)}.",
        axis=axis,
        tick=_plain,
        across=percent,
        mark=None if mark is None else ReferenceLine("this plan", "mark", mark),
    )


def error_chart(points: Sequence[ParticipationPoint], plan: CollectionPlan) -> Markup:
    """The error over the share of people who do not answer."""
    tick: TickFormat = percent if plan.requirements.question == "frequency" else _plain
    return line_chart(
        [NamedCurve("95 % error", "curve-other", [p.share for p in points], [p.error95 for p in points])],
        title="Error by share of people who do not answer",
        description=f"The error grows from {plan_error(plan, points[0].error95)} to "
        f"{plan_error(plan, points[-1].error95)}.",
        axis="share of people who do not answer",
        tick=tick,
        across=percent,
    )


def _plain(value: float) -> str:
    return f"{value:,.6g}"


# A plan to take away: the configuration for `run`, Python that makes it again, and the document of `--json`.


def toml_of(plan: Planned, asked: dict[str, Any]) -> str:
    """Configuration that `dovetail plan --out` writes."""
    if isinstance(plan, QuestionPlan):
        return question_toml(plan.config)
    return plan_toml(plan) if isinstance(plan, CollectionPlan) else dummies_toml(plan)


def json_of(plan: Planned, asked: dict[str, Any]) -> str:
    """Document that `dovetail plan --json` prints, less the list of files."""
    if isinstance(plan, QuestionPlan):
        document = {name: value for name, value in question_document(plan).items() if name != "files"}
    else:
        document = plan_document(plan) if isinstance(plan, CollectionPlan) else plan.document()
    document = {"schema_version": 1, **document}
    return json.dumps(to_jsonable(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def python_of(plan: Planned, asked: dict[str, Any]) -> str:
    """A program that plans the same and makes the randomizer."""
    if isinstance(plan, QuestionPlan):
        return _python_of_question(asked)
    if not isinstance(plan, CollectionPlan):
        return _python_with_dummies(asked)
    given = "".join(f"    {name}={value!r},\n" for name, value in asked.items())
    kind = type(plan.randomizer).__name__
    settings = ", ".join(f"{name}={value!r}" for name, value in vars(plan.randomizer).items() if value is not None)
    return (
        f"import dovetail as dt\n\nplan = dt.plan_collection(\n{given})\n"
        f"randomizer = plan.randomizer  # dt.{kind}({settings})\n"
        "print(plan.randomizer.name, plan.epsilon0, plan.epsilon, plan.error95)\n"
        "for line in plan.central.lines():\n    print(line)\n"
    )


def _python_with_dummies(asked: dict[str, Any]) -> str:
    given = "".join(f"    {name}={value!r},\n" for name, value in asked.items())
    return (
        f"from dovetail.plan.dummies import plan_trusting\n\nplan = plan_trusting(\n{given})\n"
        "print(plan.dummies, plan.central.epsilon, plan.accuracy.error95)\n"
        "for line in plan.trust_statement:\n    print(line)\n"
    )


def _python_of_question(asked: dict[str, Any]) -> str:
    settings = {name: value for name, value in asked.items() if name in SETTINGS}
    data = {name: value for name, value in asked.items() if name in ("lower", "upper", "k")}
    rest = {name: value for name, value in asked.items() if name not in ("question", *settings, *data)}
    given = "".join(f"    {name}={value!r},\n" for name, value in rest.items())
    return (
        "from dovetail.job.question_plan import plan_question\n\n"
        f"plan = plan_question(\n    {asked['question']!r},\n    settings={settings!r},\n"
        f"    data={data_of(data)!r},\n"
        f"{given})\n"
        "print(plan.question, plan.noise, plan.central.epsilon, plan.error95)\n"
        "for line in plan.central.lines():\n    print(line)\n"
    )


def command_of(asked: dict[str, Any]) -> str:
    """The command line that plans the same."""
    words = [f"--{name.replace('_', '-')} {quote(str(value).removesuffix('.0'))}" for name, value in asked.items()]
    return " ".join(["dovetail plan", *words])


# What the planner's pages show, as values for their templates; every number has passed the display rules.


_GUARANTEE = ("all honest", "some honest", "colluding")
_SAID_ABOVE = ("protection", "trust", "but")
_SHOWN = ("protection", "randomizer", *_GUARANTEE, "best guess")  # rows that have places of their own
_WAYS = {"n": "Collect {} people", "error": "Allow an error of {}", "epsilon": "Allow a central epsilon of {}"}


def form_view(question: Question, error: DovetailError | None) -> dict[str, Any]:
    """The fields as they were filled in, and which of them is wrong."""
    return {
        "texts": question.texts,
        "query": question.query,
        "sliders": SLIDERS,
        "kinds": [(kind.name, kind.name.replace("_", " "), kind.question) for kind in RANDOMIZERS if _free(kind)],
        "others": OTHERS,
        "dummies": DUMMIES,
        "settings": [(one, " ".join(found.values()), found) for one, found in _settings()],
        "of_numbers": " ".join(kind.name for kind in OTHERS if kind.of_numbers),
        "of_lists": " ".join(kind.name for kind in OTHERS if not kind.of_numbers),
        "wrong": _field_of(error),
        "said": "" if error is None else str(error),
    }


def _settings() -> Iterator[tuple[Parameter, dict[str, str]]]:
    """Each setting of a question, and by what is said of it the names of the questions that say so."""
    for one in SETTINGS.values():
        said = [(kind.name, own.help) for kind in OTHERS for own in kind.settings() if own.name == one.name]
        yield one, {told: " ".join(name for name, help in said if help == told) for _, told in said}


def answer_view(question: Question, plan: CollectionPlan) -> dict[str, Any]:
    """The plan: recommendation, guarantee, risk, numbers, and where it can be taken."""
    asked, rows = question.arguments(), plan_rows(plan)
    return {
        "query": question.query,
        "n": f"{plan.requirements.n:,}",
        "people": counted(plan.requirements.n, "person", "people"),
        "solved": "n" not in asked,
        "label": plan.randomizer.label,
        "name": plan.randomizer.name,
        "why": why_recommended(plan, forced=asked.get("randomizer"), least_n="n" not in asked),
        "epsilon": upward(plan.epsilon),
        "epsilon0": upward(plan.epsilon0),
        "delta": upward(plan.central.delta),
        **_verdict(plan.verdict),
        "error": plan_error(plan, plan.error95),
        "kind": _kind(plan.requirements),
        "guarantee": [rows[name] for name in _GUARANTEE],
        "guess": rows["best guess"][0].upper() + rows["best guess"][1:],
        "rows": [(name, text) for name, text in rows.items() if name not in _SHOWN and not name.startswith("note")],
        "notes": plan.notes,
        "source": plan.central.source,
        "method": plan.central.method,
        "command": command_of(asked),
    }


def first_view(question: Question, found: Recommendation) -> dict[str, Any]:
    """View of what is known first; its epsilon is an upper bound and says so."""
    return {
        "query": question.query,
        "n": f"{found.requirements.n:,}",
        "solved": found.least is not None,
        "label": found.randomizer.label,
        "epsilon": upward(found.epsilon),
        "epsilon0": upward(found.epsilon0),
        "error": plan_error(found, found.error95),
        **_verdict(_judged(found)),
        "kind": _kind(found.requirements),
    }


def trusting_view(question: Question, plan: DummiesPlan | UserDummiesPlan) -> dict[str, Any]:
    """The same as `answer_view` of a plan whose noise is made by the shuffler, or by people together."""
    asked, trust, error = question.arguments(), plan.central.trust, trusting_error(plan)
    words = TRUSTED[trust]
    return {
        "query": question.query,
        "n": f"{plan.n:,}",
        "people": counted(plan.n, "person", "people"),
        "solved": False,
        "label": f"Dummies of {'the shuffler' if trust == 'shuffler' else 'people'}",
        "why": words[0].upper() + words[1:] + ".",
        "epsilon": upward(plan.central.epsilon),
        "epsilon0": "none",
        "delta": upward(plan.central.delta),
        **_verdict(judge_central(plan.central)),
        "error": error,
        "kind": f"the shares of {plan.dummies.k:,} answers" if plan.span is None else _mean_of(*plan.span),
        "guarantee": list(plan.trust_statement),
        "guess": "",
        "rows": [
            (name, text)
            for name, text in trusting_rows(plan).items()
            if name not in _SAID_ABOVE and not name.startswith("note")
        ],
        "notes": tuple(warnings_of(plan.central.delta, plan.n)),
        "source": plan.central.source,
        "method": plan.central.method,
        "command": command_of(asked),
    }


def question_view(question: Question, plan: QuestionPlan) -> dict[str, Any]:
    """The same of a question that is planned by its own error."""
    asked, central, rows = question.arguments(), plan.central, question_rows(plan)
    own = plan.noise.local.epsilon
    return {
        "query": question.query,
        "n": f"{plan.people.n:,}",
        "people": counted(plan.people.n, "person", "people"),
        "solved": "n" not in asked,
        "label": plan.noise.label[0].upper() + plan.noise.label[1:],
        "why": f"{rows['question'][0].upper()}{rows['question'][1:]}. Error: {rows['error']}.",
        "epsilon": upward(central.epsilon),
        "epsilon0": "none" if isinf(own) else upward(own),
        "delta": upward(central.delta),
        **_verdict(judge_central(central)),
        "error": question_error(plan, plan.error95),
        "kind": plan.question.label,
        "guarantee": central.lines(),
        "guess": "",
        "rows": [(name, text) for name, text in rows.items() if name != "protection" and not name.startswith("note")],
        "notes": plan.warnings,
        "source": central.source,
        "method": central.method,
        "command": command_of(asked),
    }


def view_of(question: Question, plan: Planned) -> dict[str, Any]:
    """Whichever it is."""
    if isinstance(plan, QuestionPlan):
        return question_view(question, plan)
    return answer_view(question, plan) if isinstance(plan, CollectionPlan) else trusting_view(question, plan)


def more_view(plan: CollectionPlan) -> dict[str, Any]:
    """View of what takes longer: the trade-off, and the other kinds."""
    return {
        "chart": price_chart(plan),
        "steps": [
            (
                upward(step.epsilon0),
                upward(step.epsilon),
                plan_error(plan, step.error95),
                ABSENT if step.vulnerability is None else percent_up(step.vulnerability),
            )
            for step in plan.tradeoff
        ],
        "chosen": [step.epsilon0 for step in plan.tradeoff].index(plan.epsilon0),
        "alternatives": [
            (
                row.randomizer.replace("_", " "),
                *_numbers(plan, row.epsilon0, row.epsilon, row.error95, row.report_bits),
            )
            for row in plan.alternatives
        ],
        "objections": [(", ".join(names), why) for why, names in plan_objections(plan).items()],
    }


def curves_view(plan: CollectionPlan) -> dict[str, Any]:
    """Curves of what is left when a share of the people is dishonest, or does not answer."""
    dishonest, absent = dishonest_curve(plan), absent_curve(plan)
    assumed = 1.0 - plan.requirements.honest / plan.requirements.n
    return {
        "dishonest_chart": share_chart(
            dishonest,
            title="Central epsilon by share of dishonest people",
            axis="share of people who are dishonest",
            mark=assumed,
        ),
        "absent_chart": share_chart(
            absent,
            title="Central epsilon by share of people who do not answer",
            axis="share of people who do not answer",
            mark=None,
        ),
        "error_chart": error_chart(absent, plan),
        "dishonest": [_point(plan, point) for point in dishonest],
        "absent": [_point(plan, point) for point in absent],
        "assumed": percent(assumed),
    }


def refusal_view(question: Question, error: DovetailError) -> dict[str, Any]:
    """View of what is wrong with a question, and what would do instead."""
    ways = error.ways if isinstance(error, InfeasibleError) else ()
    return {
        "said": str(error),
        "query": question.query,
        "wrong": _field_of(error),
        "ways": [
            (_WAYS[name].format(_value(name, value)), question.with_value(name, value).query) for name, value in ways
        ],
    }


def _value(name: str, value: float) -> str:
    return f"{value:,.0f}" if name == "n" else round_up_to_three_digits(value)


def _numbers(plan: CollectionPlan, epsilon0: Any, epsilon: Any, error: Any, bits: Any) -> tuple[str, ...]:
    if None in (epsilon0, epsilon, error, bits):
        return (ABSENT,) * 4
    return upward(epsilon0), upward(epsilon), plan_error(plan, error), f"{bits:,}"


def _point(plan: CollectionPlan, point: ParticipationPoint) -> tuple[str, ...]:
    return (
        percent(point.share), f"{point.answers:,}", f"{point.honest:,}", upward(point.epsilon),
        plan_error(plan, point.error95),
    )  # fmt: skip


def _verdict(found: Verdict) -> dict[str, str]:
    return {"grade": found.word, "verdict": found.sentence()}


def _judged(found: Recommendation) -> Verdict:
    asked = found.requirements
    mixed = asked.n if asked.smallest_group is None else asked.smallest_group
    return judge(
        Promise(found.epsilon0, found.randomizer.guarantee.delta),
        people=Promise(found.epsilon, asked.delta),
        n=mixed,
        honest=asked.honest_with_anyone(asked.n),
    )


def _kind(asked: Requirements) -> str:
    if asked.question == "frequency":
        return f"the shares of {asked.k:,} answers"
    assert asked.lower is not None and asked.upper is not None
    return _mean_of(asked.lower, asked.upper)


def _mean_of(lower: float, upper: float) -> str:
    return f"the mean of a number from {lower:g} to {upper:g}"


def _free(kind: Any) -> bool:
    return not any(one.required for one in kind.settings())


def _field_of(error: DovetailError | None) -> str:
    """The field that an error is about: the first that it names."""
    found = re.match(r"`(\w+)`", "" if error is None else str(error))
    return found[1] if found else ""


Found = TypeVar("Found")

_FILES: dict[str, tuple[str, Callable[[Planned, dict[str, Any]], str]]] = {
    "survey.toml": ("application/toml", toml_of),
    "plan.py": ("text/x-python", python_of),
    "plan.json": ("application/json", json_of),
}
_NOTHING: dict[str, Any] = {"first": None, "answer": None, "more": None, "refusal": None}
_GONE = DovetailError("nobody waits for this any more.")


class Planner:
    """The routes of the planner around one store of answers."""

    def __init__(self, pages: Pages, plans: Plans, ahead: Ahead) -> None:
        self._pages, self._plans, self._ahead = pages, plans, ahead
        self._curves = Kept(lambda **asked: curves_view(_local(plans.plan(**asked))))
        self._first, self._rest = asyncio.Semaphore(2), asyncio.Semaphore(2)  # worked out at once

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self._page),
            Route("/plan/answer", self._answer),
            Route("/plan/exact", self._exact),
            Route("/plan/more", self._more),
            Route("/plan/sheet", self._sheet),
            Route("/participation", self._participation),
            *(Route(f"/plan/{name}", self._file(name)) for name in _FILES),
        ]

    async def _work(
        self, request: Request, ask: Callable[..., Found], few: asyncio.Semaphore
    ) -> tuple[Question, Found | DovetailError]:
        """The question of the address, and what is found or what is wrong with it."""
        question = Question.of(request.query_params)

        def work() -> Found | DovetailError:
            try:
                with self._ahead.while_asking(question):
                    return ask(**question.arguments())
            except DovetailError as error:
                return error

        async with few:
            if await request.is_disconnected():  # the next change came before this one was begun
                return question, _GONE
            return question, await asyncio.to_thread(work)

    async def _planned(self, request: Request) -> tuple[Question, Planned | DovetailError]:
        return await self._work(request, self._plans.plan, self._rest)

    async def _whole(self, request: Request) -> tuple[Question, Planned | DovetailError]:
        return await self._work(request, self._plans.whole, self._rest)

    async def _page(self, request: Request) -> Response:
        full = "full" in request.query_params
        question, found = await (self._whole(request) if full else self._planned(request))
        form = form_view(question, found if isinstance(found, DovetailError) else None)
        return self._pages("planner", form=form, **_shown(question, found, full=full))

    async def _answer(self, request: Request) -> Response:
        """At once: the plan where it is known, or what is recommended."""
        question, found = await self._work(request, self._known_or_first, self._first)
        page = self._pages("answer", **_shown(question, found))
        page.headers["HX-Replace-Url"] = f"/?{question.query}"
        return page

    def _known_or_first(self, **asked: Any) -> Planned | Recommendation | Refused:
        return self._plans.plan(**asked) if self._plans.knows(**asked) else self._plans.first(**asked)

    async def _exact(self, request: Request) -> Response:
        return self._pages("answer", **_shown(*await self._planned(request)))

    async def _more(self, request: Request) -> Response:
        _, found = await self._whole(request)
        return self._pages("more", more=more_view(found) if isinstance(found, CollectionPlan) else None)

    async def _sheet(self, request: Request) -> Response:
        question, found = await self._whole(request)
        if isinstance(found, DovetailError):
            return self._refuse(question, found)
        return self._pages("sheet", **_shown(question, found, full=True))

    async def _participation(self, request: Request) -> Response:
        question, found = await self._planned(request)
        if isinstance(found, DovetailError):
            return self._refuse(question, found)
        try:
            curves = await asyncio.to_thread(self._curves, **question.arguments())
        except DovetailError as error:
            return self._refuse(question, error)
        return self._pages("participation", answer=view_of(question, found), curves=curves)

    def _refuse(self, question: Question, error: DovetailError) -> Response:
        return self._pages("refused", status=400, refusal=refusal_view(question, error))

    def _file(self, name: str) -> Callable[[Request], Any]:
        kind, make = _FILES[name]

        async def answer(request: Request) -> Response:
            question, found = await self._whole(request)
            if isinstance(found, DovetailError):
                return PlainTextResponse(f"{found}\n", 400)
            text = make(found, question.arguments())
            return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

        return answer


def _shown(
    question: Question, found: Planned | Recommendation | Refused | DovetailError, *, full: bool = False
) -> dict[str, Any]:
    """Values for the template `answer`, as far as they are known."""
    if isinstance(found, DovetailError):
        return {**_NOTHING, "refusal": refusal_view(question, found)}
    if isinstance(found, Refused):
        return {**_NOTHING, "first": {"query": question.query, "label": ""}}
    if isinstance(found, Recommendation):
        return {**_NOTHING, "first": first_view(question, found)}
    more = more_view(found) if full and isinstance(found, CollectionPlan) else None
    shown = {**view_of(question, found), "local": isinstance(found, CollectionPlan)}
    return {**_NOTHING, "answer": shown, "more": more}


def _local(plan: Planned) -> CollectionPlan:
    if isinstance(plan, QuestionPlan):
        raise ParameterError('`question` must be "frequency" or "mean" for these curves.')
    if not isinstance(plan, CollectionPlan):
        raise ParameterError(f'`trust` must be "local" for these curves, got "{plan.central.trust}".')
    return plan
