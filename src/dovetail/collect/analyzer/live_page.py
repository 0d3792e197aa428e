"""The live page: what everybody may see of the campaigns, in one HTML file that loads nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dovetail.collect.analyzer.answers import CampaignAnswers, Document, RoundEstimates
from dovetail.collect.analyzer.sentences import GuaranteeSentence, summarize
from dovetail.collect.campaign.guarantees import CampaignGuarantees
from dovetail.core.missing import Missing
from dovetail.job.evaluate import LEVEL
from dovetail.report.charts import (
    CUT,
    LEFT,
    RIGHT,
    ROW,
    IntervalRow,
    LinearAxis,
    TickFormat,
    TimePoint,
    interval_chart,
    legend_height,
    svg_legend,
    svg_line,
    svg_picture,
    svg_text,
    time_series_chart,
)
from dovetail.report.document import to_jsonable
from dovetail.report.html import CaptionedChart, curve_of_shares, heat_of_pairs
from dovetail.report.number_format import Unit, percent, upward
from dovetail.report.tables import vector_sentences
from dovetail_protocol.asked import Asked
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.joint import Drawn

# Shares as horizontal bars with their intervals, as inline SVG in the style of the privacy report.


def bar_chart(rows: Sequence[IntervalRow], *, title: str, description: str, tick: TickFormat) -> Markup:
    """A bar from zero to each value, a whisker for its interval; a value below zero has no bar."""
    axis = LinearAxis.around(
        [0.0, *(row.value for row in rows), *(row.upper for row in rows), *(row.lower for row in rows)]
    )
    named = [("bar", "share"), ("whisker", "interval")]
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [svg_legend(named), axis.grid(top, bottom, tick)]
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        room = 46 - len(row.text)
        label = row.label if len(row.label) <= room else row.label[: room - 1] + "…"
        parts.append(svg_text("label start", LEFT, y - 10, label) + svg_text("value end", RIGHT, y - 10, row.text))
        parts.append(svg_line("bar", axis(0.0), y, axis(max(0.0, row.value)), y))
        parts.append(svg_line("whisker", axis(row.lower), y, axis(row.upper), y))
        parts += [svg_line("whisker", axis(end), y - 4, axis(end), y + 4) for end in (row.lower, row.upper)]
    return svg_picture(bottom + 24, title, description, parts)


MOST_ROUNDS = 60  # that are drawn and listed: the latest
MOST_ROWS = 24  # of the chart of one round
MOST_SERIES = 6  # answers whose course is drawn


class CampaignView(NamedTuple):
    """One campaign as the page shows it."""

    id: str
    question: str
    badges: tuple[str, ...]
    sentence: str
    figures: tuple[CaptionedChart, ...]
    lines: tuple[str, ...]  # about all numbers of the latest round together
    promises: tuple[GuaranteeSentence, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def render(answers: Sequence[CampaignAnswers]) -> str:
    """The whole page."""
    body = Markup(render_body(answers))
    return _environment().get_template("page.html.j2").render(body=body, style=_style(), script=_script())


def render_body(answers: Sequence[CampaignAnswers]) -> str:
    """The part that changes."""
    return _environment().get_template("body.html.j2").render(views=[campaign_view(each) for each in answers])


def campaign_view(answers: CampaignAnswers) -> CampaignView:
    """Document of the page about one campaign."""
    campaign, status, found = answers.campaign, answers.status(), answers.guarantees()
    rounds = answers.rounds()[-MOST_ROUNDS:]
    parts = [(one, [one.round(each.t) for each in rounds]) for one in answers.questions]
    drawn = [(one, each, [one.document(t) for t in each]) for one, each in parts]
    badges = (
        f"{campaign.id}, version {campaign.version}",
        _mechanism(campaign),
        f"shuffler: {campaign.shuffle.shuffler.replace('_', ' ')}",
        f"batches of at least {campaign.batch.minimum:,}",
    )
    return CampaignView(
        id=campaign.id,
        question=campaign.question,
        badges=badges,
        sentence=_together(_sentence(status, found)),
        figures=tuple(
            figure._replace(caption=f"{one.name}: {figure.caption}") if len(drawn) > 1 else figure
            for one, those, documents in drawn
            for figure in (
                *_figures([each for each in documents if each["groups"]]),
                *_curve(one, [each for each in those if each.by_group]),
            )
        ),
        lines=tuple(
            f"{one.name}: {line}" if len(drawn) > 1 else line
            for one, those, documents in drawn
            for t, told in [pair for pair in zip(those, documents, strict=True) if pair[1]["groups"]][-1:]
            for line in (*vector_sentences({"estimates": told}), *one.notes(t))
        )
        + tuple(
            f"{said[0].upper()}{said[1:]}." for _, those, _ in drawn for each in those[-1:] for said in each.refused
        ),
        promises=tuple(GuaranteeSentence(*map(_together, line)) for line in answers.sentences(found)),
        rows=tuple(_row(batch) for batch in reversed(status["batches"][-MOST_ROUNDS:])),
        note=_note(status["batches"]),
    )


def _mechanism(campaign: Campaign) -> str:
    if campaign.sent is not None:
        return f"answers as they are among dummies of people, ε = {upward(campaign.sent.epsilon)} a batch"
    if campaign.open:
        return f"answers as they are among dummies of the shuffler, ε = {upward(campaign.charged)} a batch"
    if len(campaign.questions) > 1:
        drawn = isinstance(campaign.mechanism, Drawn)
        what = "questions, of which each report answers one" if drawn else "answers in one report"
        return f"{len(campaign.questions)} {what}, ε = {upward(campaign.mechanism.epsilon)}"
    classes = [f"{upward(each.epsilon)} ({each.name})" for each in campaign.classes]
    epsilon = " or ".join(classes) or upward(campaign.mechanism.epsilon)
    return f"{campaign.mechanism.name.replace('_', ' ')}, ε = {epsilon}"


def _note(batches: Sequence[Document]) -> str:
    """Name the rounds that the table leaves out, and those that no batch has come of."""
    counted = {round for batch in batches for round in batch["rounds"]}
    latest = max(counted, default=0)
    missing = [str(round) for round in range(max(1, latest - MOST_ROUNDS), latest) if round not in counted]
    said = [f"The latest {MOST_ROUNDS:,} rounds."] if len(batches) > MOST_ROUNDS else []
    said += [f"No batch has come of round {', '.join(missing)}: it waits, was dropped or is lost."] if missing else []
    return " ".join(said)


def _together(text: str) -> str:
    """Formulas that are not broken over two lines."""
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _sentence(status: Document, found: CampaignGuarantees) -> str:
    batches = status["batches"]
    if not batches:
        return "No batch has been counted yet. A round appears here when its batch has been shuffled and handed over."
    n = sum(batch["n"] for batch in batches)
    how_many = "1 batch" if len(batches) == 1 else f"{len(batches):,} batches"
    return (
        f"{how_many} counted, {n:,} valid reports. Protection of one person so far: {found.verdict.sentence()} "
        f"({summarize(found)})."
    )


def _figures(documents: Sequence[Document]) -> list[CaptionedChart]:
    """The numbers of the latest round, and the course of each where there are several rounds."""
    if not documents:
        return []
    latest, several = documents[-1], len(documents) > 1
    labels, unit = latest["groups"][0]["labels"], Unit.of(latest["measure"])
    found = [_bars(latest)] if latest["measure"] == "share" else []
    found += [_numbers(latest, unit)] if not found and (len(labels) > 1 or not several) else []
    found += [_course(documents, place) for place in _charted_answers(labels) if several]
    if len(latest["groups"]) > 2:  # everybody, and more than one public group
        found += [_groups(latest, place, unit) for place in _charted_answers(labels)]
    return found


def _charted_answers(labels: Sequence[str]) -> range:
    """Answers whose course is drawn: of two the second, because the first is what remains."""
    return range(1, 2) if len(labels) == 2 else range(min(len(labels), MOST_SERIES))


def _bars(latest: Document) -> CaptionedChart:
    everybody, unit = latest["groups"][0], Unit.of("share")
    rows = sorted(_intervals(everybody, unit), key=lambda row: -row.value)
    more = f", the {MOST_ROWS} largest" if len(rows) > MOST_ROWS else ""
    rows, more = _shares(rows[:MOST_ROWS], more)
    title = f"Shares in round {latest['round']:,}{more}"
    chart = bar_chart(
        rows,
        title=title,
        description=f"{percent(latest['level'])} intervals, {latest['n']:,} reports: {_describe(rows, latest)}",
        tick=percent,
    )
    return CaptionedChart(title, chart)


def _numbers(latest: Document, unit: Unit) -> CaptionedChart:
    rows = _intervals(latest["groups"][0], unit)
    title = f"Estimates in round {latest['round']:,}" + (f", the first {MOST_ROWS}" if len(rows) > MOST_ROWS else "")
    named = f"estimate with {percent(latest['level'])} interval"
    rows = rows[:MOST_ROWS]
    said = {"description": _describe(rows, latest), "tick": _tick(latest), "names": (named, "")}
    return CaptionedChart(title, interval_chart(rows, title=title, **said))


def _curve(one: CampaignAnswers, told: Sequence[RoundEstimates]) -> Iterator[CaptionedChart]:
    """What lies behind the numbers of the latest round: a distribution, or how two columns go together."""
    curve = told[-1].curve if told else Missing("nothing is told yet")
    asked = one.campaign.asked
    if isinstance(curve, Missing) or not isinstance(asked, Asked):
        return
    names, shown = [value.name for value in asked.values], to_jsonable(curve)
    for found in (curve_of_shares(shown, level=LEVEL, axis=names[0]), heat_of_pairs(shown, names)):
        if found is not None:
            yield found._replace(caption=f"{found.caption}, round {told[-1].t:,}")


def _shares(everything: list[IntervalRow], more: str) -> tuple[list[IntervalRow], str]:
    """The rows as a chart of shares draws them, and the end of its title, which says so."""
    rows = [row.within_shares() for row in everything]
    return rows, more if rows == everything else f"{more} ({CUT})"


def _groups(latest: Document, place: int, unit: Unit) -> CaptionedChart:
    named = [each for each in latest["groups"] if each["group"] is not None]
    rows = [_interval(each, place, unit)._replace(label=f"{each['group']} (n = {each['n']:,})") for each in named]
    title = f"{_name(named[0]['labels'][place])} by public group in round {latest['round']:,}"
    said = {"description": _describe(rows, latest), "tick": _tick(latest)}
    if latest["measure"] != "share":
        return CaptionedChart(title, interval_chart(rows, title=title, **said))
    rows, more = _shares(rows, "")
    return CaptionedChart(title + more, bar_chart(rows, title=title + more, **said))


def _course(documents: Sequence[Document], place: int) -> CaptionedChart:
    """The estimates of one answer, or of the mean, round by round; gaps where there are none."""
    by_round = {each["round"]: each["groups"][0] for each in documents}
    points = [
        TimePoint(t, None) if t not in by_round else _point(t, by_round[t], place)
        for t in range(min(by_round), max(by_round) + 1)
    ]
    latest = documents[-1]
    last = _interval(latest["groups"][0], place, Unit.of(latest["measure"]))
    title = f"{_name(last.label)} by round"
    chart = time_series_chart(
        points,
        title=title,
        description=f"{percent(latest['level'])} intervals; in round {latest['round']:,}: "
        f"{_describe([last], latest)}",
        tick=_tick(latest),
        names=(f"estimate with {percent(latest['level'])} interval", ""),
    )
    return CaptionedChart(title, chart)


def _point(t: int, shares: Document, place: int) -> TimePoint:
    low, high = map(float, shares["interval"][place])
    return TimePoint(t, shares["possible"][place], low, high)


def _intervals(shares: Document, unit: Unit) -> list[IntervalRow]:
    return [_interval(shares, place, unit) for place in range(len(shares["labels"]))]


def _interval(shares: Document, place: int, unit: Unit) -> IntervalRow:
    value, (low, high) = shares["possible"][place], shares["interval"][place]
    words = unit(value, shares["standard_error"][place])
    return IntervalRow(shares["labels"][place], words, value, float(low), float(high))


def _describe(rows: Sequence[IntervalRow], document: Document) -> str:
    """Estimates in words, for people who do not see the picture."""
    ends: TickFormat = percent if document["measure"] == "share" else (lambda value: f"{value:,.3g}")
    return "; ".join(f"{row.label} {row.text}, {ends(row.lower)} to {ends(row.upper)}" for row in rows) + "."


def _tick(document: Document) -> Any:
    return percent if document["measure"] == "share" else (lambda value: f"{value:,g}")


def _name(label: str) -> str:
    return "Mean" if label == "mean" else f"“{label}”"


def _row(batch: Document) -> tuple[str, ...]:
    """One line of the table of rounds."""
    aside = ", ".join(f"{count:,} {kind}" for kind, count in batch["rejected"].items()) or "none"
    others = [str(round) for round in batch["rounds"][:-1]]
    notes = [f"with round {', '.join(others)}"] if others else []
    notes += [f"{n:,} {name}" for name, n in batch.get("classes", {}).items()]
    notes += ["below minimum, withheld"] if batch["short"] else []
    notes += [] if batch["followers"] is None else [f"at most {batch['followers']:,} people sent dummies by the rule"]
    return f"{batch['round']:,}", f"{batch['reports']:,}", f"{batch['n']:,}", aside, "; ".join(notes)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("dovetail.collect.analyzer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=1)
def _style() -> Markup:
    """The report's style sheet, and what the page adds."""
    report = files("dovetail.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return Markup(report + _own("page.css"))


@lru_cache(maxsize=1)
def _script() -> Markup:
    return Markup(_own("page.js"))


def _own(name: str) -> str:
    return files("dovetail.collect.analyzer").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash(_script())}",
        f"style-src {_hash(_style())}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
