"""The tables of the privacy report, shared by the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from dovetail.attack.experiment.run_attack import ATTACK
from dovetail.core.display import guess_in_words
from dovetail.core.stages import RANDOMIZERS, SECTIONS, SHUFFLERS
from dovetail.estimate.tables import Pairs
from dovetail.report.number_format import (
    ABSENT,
    Document,
    Unit,
    display_name,
    label_of,
    missing_reason,
    odds,
    percent,
    percent_up,
    plain_number,
    upward,
)
from dovetail.report.sentences import (
    MetricSummary,
    adversary_of_dummies,
    amplifies,
    attacks_of,
    has_dummies,
    honesty_assumption,
    is_stream,
    learnability_of,
    over_all_releases,
    single_report,
    summarize_metrics,
    uniform_instead,
)

# What a report on a mean of vectors says of the vector as a whole.


UNIT = Unit.of("mean")


def is_vector(document: Document) -> bool:
    """True if people's answers are vectors."""
    return bool(document["collection"]["kind"] == "vector")


def vector_kind(document: Document) -> str:
    """Say what one person holds."""
    collection = document["collection"]
    return f"a vector of {collection['dimension']:,} numbers, of length at most {collection['clip']:g}"


def vector_sentences(document: Document) -> Iterator[str]:
    """Say how far the mean as a whole may be off, and was; nothing of what is no mean of vectors."""
    vector = document["estimates"].get("vector")
    if vector is None:
        return
    error, most, coordinate = vector["error"], vector["error95"], vector["coordinate_error"]
    yield (
        f"The estimated mean has length {UNIT(vector['length'], error)} and is off by at most "
        f"{UNIT(most, most, ROUND_CEILING)} in Euclidean length with probability 95%; the standard error of one "
        f"coordinate is {UNIT(coordinate, coordinate, ROUND_CEILING)}."
    )
    if missing_reason(vector["off"]) is None:
        moved = float(vector["clipping"])  # of the longest vectors beyond a double
        yield (
            f"In this rehearsal it is off by {UNIT(vector['off'], error)}; {vector['clipped']:,} of "
            f"{document['collection']['n']:,} vectors were shortened, which moved the mean by "
            f"{UNIT(moved, max(error, moved))}."
        )
    if vector["length"] ** 2 < 2.0 * error**2:  # of which error^2 is the noise's
        yield "Most of this is noise: ask more people, or for fewer coordinates, or allow a larger ε."


class Table(NamedTuple):
    """Words in rows and columns, with the notes below them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def shows_truth(document: Document) -> bool:
    """Only a rehearsal shows the truth, whatever the document holds."""
    return bool(document["mode"] == "rehearsal")


def shown_components(labels: Sequence[str]) -> range:
    """Places of the answers to show: of two only the second, as the first is what remains."""
    return range(1, 2) if len(labels) == 2 else range(len(labels))


def estimate_table(document: Document) -> Table:
    """Table of the estimates about everybody."""
    estimates = document["estimates"]
    overall, level = estimates["overall"], percent(estimates["level"])
    truth = shows_truth(document) and "truth" in overall
    unit, error = Unit.of(estimates["measure"]), median_error([overall])
    columns: tuple[str, ...] = (
        "answer" if estimates["measure"] == "share" else "quantity",
        "estimate",
        f"{level} interval",
    )
    columns += ("noise error", "with sampling") + (("truth",) if truth else ())
    rows = tuple(
        (str(label), *_estimate_cells(overall, place, unit, error, truth=truth))
        for place, label in enumerate(overall["labels"])
    )
    notes = [
        f"n = {overall['n']:,}. {_whose_interval(document)}",
        *_moved_note([overall], unit, error),
        *_bias_note([overall], unit),
        *_estimator_note(estimates),
        *_better_note(estimates, unit),
        *_precision_note(document["randomizer"]),
    ]
    return Table(columns, rows, tuple(notes))


def pair_table(document: Document) -> Table:
    """How every two columns go together; no rows where tables were not asked for."""
    curve = document["estimates"].get("curve")
    if missing_reason(curve) is not None or "pairs" not in curve:
        return Table((), ())
    names, values = document["collection"]["columns"], document["collection"]["values"]
    pairs, errors = Pairs(tuple(map(len, values))), document["estimates"]["overall"]["standard_error"]
    noise, needed = pairs.noise(errors), pairs.needed(errors, document["collection"]["n"])
    drowned = [
        f"{names[i]} and {names[j]} (it takes {needed[i, j]:,} people)" for (i, j), off in noise.items() if off > 1.0
    ]
    rows = [
        (
            f"{names[i]} and {names[j]}",
            f"{told:.3g}",
            ABSENT if missing_reason(p) is not None else f"{float(p):.3g}",
        )
        for (i, j), told, p in zip(curve["pairs"], curve["information"], curve["p"], strict=True)
    ]
    notes = (
        *([f"Noise is larger than a typical cell in the table of {', '.join(drowned)}."] if drowned else []),
        "Mutual information in nats, of tables that were made consistent; with noise it is above 0 for independent "
        "columns too. p: how often independent columns would look as dependent, by 199 draws with their noise; its "
        "size is right for many people, and not proved for few.",
        "A synthetic table of them (`dovetail synthesize`) is good for these pairs. What three columns say "
        "together in it is an assumption of the model. It has no standard errors: quote those of the cells.",
    )
    return Table(("columns", "mutual information", "p of independence"), tuple(rows), notes)


def _whose_interval(document: Document) -> str:
    if is_vector(document):
        return (
            "Intervals are of one coordinate each and for exactly these people, their vectors shortened; with "
            "sampling: at most so much for a population they are drawn from."
        )
    if document.get("config", {}).get("strings") is not None:
        return "The interval holds the noise and the drawing of the groups that are asked for all bytes."
    if document["collection"].get("n", 0) > document.get("answers", math.inf):
        return (
            "The interval is for everybody who was asked: the noise and who drew this question are its sources of "
            "error (noise error: the standard error of both). With sampling: the standard error for a population."
        )
    return (
        "The interval is for exactly these people: the noise is its only source of error (noise error: standard "
        "error). With sampling: the standard error for a population they are drawn from."
    )


def group_table(document: Document) -> Table:
    """Table of the estimates about groups; no rows where the estimator gives none."""
    estimates, notes = document["estimates"], []
    level, groups = percent(estimates["level"]), estimates["groups"]
    if missing_reason(groups) is not None:
        return Table((), (), (f"Group estimates do not apply: {missing_reason(groups)}", *_withheld(estimates)))
    truth = shows_truth(document) and any("truth" in group for group in groups)
    unit, error = Unit.of(estimates["measure"]), median_error(groups)
    several = any(len(shown_components(group["labels"])) > 1 for group in groups)
    columns = ("by", "group") + (("answer",) if several else ()) + ("estimate", f"{level} interval")
    columns += (("truth",) if truth else ()) + ("n",)
    rows = []
    for group in groups:
        for place in shown_components(group["labels"]):
            cells = _estimate_cells(group, place, unit, error, truth=truth)
            answer = (str(group["labels"][place]),) if several else ()
            rows.append(
                (str(group["by"]), plain_number(group["group"]), *answer, *cells[:2], *cells[4:], f"{group['n']:,}")
            )
    if groups and len(groups[0]["labels"]) == 2:
        notes.append(f"Share of “{groups[0]['labels'][1]}”; “{groups[0]['labels'][0]}” is what remains.")
    notes += [*_moved_note(groups, unit, error), *_bias_note(groups, unit), *_withheld(estimates)]
    return Table(columns, tuple(rows), tuple(notes))


def median_error(blocks: Sequence[Document]) -> float:
    """The error that decides the decimals of a whole table: the median, so that its columns align."""
    errors = [float(error) for block in blocks for error in block["standard_error"] if missing_reason(error) is None]
    return float(median(error for error in errors if 0.0 < error < math.inf)) if any(errors) else 0.0


def _estimate_cells(block: Document, place: int, unit: Unit, error: float, *, truth: bool) -> tuple[str, ...]:
    known = block.get("truth")
    return (
        unit(block["possible"][place], error),
        unit.interval(block["interval"][place], error),
        unit(block["standard_error"][place], error, ROUND_CEILING),
        unit(block["population_error"][place], error, ROUND_CEILING),
        *((unit(known[place], error) if known else ABSENT,) if truth else ()),
    )


def _moved_note(blocks: Sequence[Document], unit: Unit, error: float) -> Iterator[str]:
    """Says that what is shown is not what was unbiased, where that can be seen."""
    pairs = [pair for block in blocks for pair in zip(block["value"], block["possible"], strict=True)]
    moved = [pair for pair in pairs if unit(pair[0], error) != unit(pair[1], error)]
    if moved:
        yield (
            "Shown is the nearest answer that is possible (shares are at least 0 and sum to 100%, a mean lies in "
            f"its range); the unbiased values, {unit(min(pair[0] for pair in pairs), error)} to "
            f"{unit(max(pair[0] for pair in pairs), error)}, stand as `value` in report.json."
        )


def _bias_note(blocks: Sequence[Document], unit: Unit) -> Iterator[str]:
    bounds = [block.get("bias_bound") or 0.0 for block in blocks]
    largest = max(chain.from_iterable(bound if isinstance(bound, list) else [bound] for bound in bounds), default=0.0)
    if largest > 0.0:
        reach = unit(largest, largest, ROUND_CEILING)
        yield f"Intervals are widened by up to {reach} for a bias that cannot be excluded."


def _estimator_note(estimates: Document) -> Iterator[str]:
    estimator: Any = estimates.get("estimator")
    if missing_reason(estimator) is None:
        yield (
            f"Estimator: {estimator['name']}. The smaller error is promised by: {estimator['best']} "
            f"({estimator['reason']})."
        )


def _better_note(estimates: Document, unit: Unit) -> Iterator[str]:
    better: Any = estimates.get("better")
    if better is not None and missing_reason(better) is None:
        error = float(better["standard_error"])
        yield (
            f"A better choice for so many values: with the same ε, {label_of(RANDOMIZERS, better['name'])} has a "
            f"standard error of {unit(error, error, ROUND_CEILING)} for a share among many, instead of "
            f"{unit(better['here'], better['here'], ROUND_CEILING)}."
        )


def _precision_note(randomizer: Document) -> Iterator[str]:
    """Say what precision single reports have, beside what was asked of them."""
    precision: Any = randomizer.get("precision")
    if missing_reason(precision) is None:
        (low, high), (first, last) = precision["values"], precision["achieved"]
        yield (
            f"Precision of one report, asked for: within {percent(precision['beta'])} of its value with probability "
            f"{percent(precision['rho'])}; achieved: {percent(first, ROUND_FLOOR)} at {low:g}, "
            f"{percent(last, ROUND_FLOOR)} at {high:g}. Every value has what was asked for from "
            f"ε = {upward(precision['guaranteed_threshold'])}; Lemma 1 as published says "
            f"{upward(precision['published_threshold'])}. Reports are {'' if precision['clamps'] else 'not '}clamped."
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _withheld(estimates: Document) -> Iterator[str]:
    for item in estimates.get("withheld") or ():
        whom = f"{_count(item['groups'], 'group', 'groups')} with {_count(item['people'], 'person', 'people')}"
        yield f"Withheld because too small: by {item['by']}, {whom}."


def comparison_table(document: Document) -> Table:
    """Metrics in rows, shufflers in columns; what does not apply has a numbered reason."""
    entries = document.get("comparison") or ()
    reasons: dict[str, int] = {}

    def cell(block: Any, key: str, write: Any) -> str:
        why = missing_reason(block) if missing_reason(block) is not None else missing_reason(block.get(key))
        if why is None:
            return str(write(block[key]))
        return f"{ABSENT} [{reasons.setdefault(why, len(reasons) + 1)}]"

    lines = [
        ("local ε", "local", "epsilon", upward),
        ("central ε", "central", "epsilon", upward),
        ("order α", "order", "alpha", upward),
    ]
    rows = [(words, *(cell(entry[part], key, write) for entry in entries)) for words, part, key, write in lines]
    even = (cell(_guessed(entry["leakage"]), "randomized_shuffled", str) for entry in entries)
    rows.append(("best guess right, if all answers are equally likely", *even))
    for place, attack in enumerate(attacks_of(entries[0]) if entries else ()):
        found = (attacks_of(entry)[place] for entry in entries)
        rows.append((f"{attack['name']} right", *(cell(each, "success", percent) for each in found)))
    for words, part in (("± overall", "overall"), ("± widest group", "groups")):
        rows.append((words, *(cell({"reach": _reach(entry["estimates"], part)}, "reach", str) for entry in entries)))
    if shows_truth(document):
        errors = [_group_error(entry["estimates"]) for entry in entries]
        if any(error is not None for error in errors):
            rows.append(("group error, measured", *(error or ABSENT for error in errors)))
    for place, learned in enumerate(learnability_of(entries[0]) if entries else ()):
        rows.append(
            (f"λ by {learned['by']}", *(f"{learnability_of(entry)[place]['error']:.2f}" for entry in entries))
        )
    marks = (" (chosen)" if entry["shuffler"] == document["shuffler"] else "" for entry in entries)
    columns = (
        "metric",
        *(display_name(entry["shuffler"]) + mark for entry, mark in zip(entries, marks, strict=True)),
    )
    better = uniform_instead(document) if entries else ()
    return Table(columns, tuple(rows), (*better, *(f"[{number}] {why}" for why, number in reasons.items())))


def _blocks(estimates: Any, part: str) -> Any:
    if missing_reason(estimates) is not None:
        return estimates
    found = estimates.get(part)
    return [found] if isinstance(found, dict) and missing_reason(found) is None else found


def _reach(estimates: Any, part: str) -> Any:
    """Widest half interval, rounded up; or the null block that says why there is none."""
    blocks = _blocks(estimates, part)
    if missing_reason(blocks) is not None:
        return blocks
    reach = max((float(high) - float(low)) / 2 for block in blocks for low, high in block["interval"])
    if not blocks or not math.isfinite(reach):
        return None
    return Unit.of(estimates["measure"])(reach, reach, ROUND_CEILING)


def _group_error(estimates: Any) -> str | None:
    """Mean distance between estimate and truth over the groups."""
    blocks = _blocks(estimates, "groups")
    if missing_reason(blocks) is not None:
        return None
    gaps = [
        abs(float(value) - float(truth))
        for block in blocks
        if block.get("truth")
        for value, truth in zip(block["value"], block["truth"], strict=True)
    ]
    mean = sum(gaps) / len(gaps) if gaps else math.nan
    return Unit.of(estimates["measure"])(mean, mean) if gaps else None


def _guessed(leakage: Document) -> Document:
    """The chance of the best guess from the shuffled batch in words, or why there is none."""
    if missing_reason(leakage) is not None or missing_reason(leakage["randomized_shuffled"]) is not None:
        return leakage
    return {"randomized_shuffled": guess_in_words(leakage["randomized_shuffled"], leakage["prior"]).best}


# Whether a release repeats its people, in the words of each section.


_OWN = "the chosen shuffler of a rehearsal"  # other shufflers of a comparison and releases are not measured


def section_notes(document: Document) -> tuple[str, ...]:
    """Notes on what was measured of the release beside attacks; none in documents that do not say."""
    notes: list[str] = []
    for name in SECTIONS.names():
        if (found := document.get(name)) is None:
            continue
        if (why := missing_reason(found)) is None:
            notes += SECTIONS[name].notes(found)
        elif _OWN not in why:
            label = SECTIONS[name].label
            notes.append(f"{label[:1].upper()}{label[1:]} does not apply: {why}.")
    return tuple(notes)


# What attackers got and what can be learned about groups: the tables and the chart of a rehearsal.


def attack_table(document: Document) -> Table:
    """Every attack on the chosen shuffler beside the chance level; no rows where nothing was attacked."""
    attacks = attacks_of(document)
    if not attacks:
        why = f"No attack was mounted: {missing_reason(document['attacks'])}."
        return Table((), (), (why, *section_notes(document)))
    known = [attack for attack in attacks if missing_reason(attack) is None]
    level = percent(known[0]["level"]) if known else ABSENT
    columns = ("attack", "right", "chance level", f"{level} interval", "bound", "nearly always right")
    rows = tuple((str(attack["name"]), *_cells(attack)) for attack in attacks)
    notes = [
        f"{attack['name']} does not apply: {missing_reason(attack)}."
        for attack in attacks
        if missing_reason(attack) is not None
    ]
    if known:
        first = known[0]
        notes.insert(
            0,
            f"{first['targets']:,} targets, {first['trials']:,} releases. Chance level: naming the commonest answer "
            "of people with the same public columns. Nearly always right: share of the targets whom the attack "
            f"alone guessed right in at least {percent(first['vulnerable_at'])} of the releases. A better attack "
            "may exist.",
        )
        notes += [f"{attack['name']}: {attack['remark']}." for attack in known if attack.get("remark")]
        notes += worse_than_blind(known)
        notes += bound_notes(known)
    return Table(columns, rows, (*notes, *section_notes(document)))


def worse_than_blind(attacks: list[Document]) -> list[str]:
    """Name the attacks that do worse than naming the commonest answer."""
    return [
        f"{attack['name']} alone is right in {percent(attack['alone'])}: who attacks names the commonest answer "
        "instead, and is right as often as the chance level."
        for attack in attacks
        if attack.get("mounted", ATTACK) != ATTACK
    ]


def bound_notes(attacks: list[Document]) -> list[str]:
    """Notes on the bound beside each attack, and where an attack is above it; or why there is none."""
    first = attacks[0].get("bound")
    if first is None:  # a report from before there were bounds
        return []
    if (none := missing_reason(first)) is not None:
        return [f"No bound on attacks is known: {none}."]
    notes = [
        "Bound: no attacker who knows these public columns and the shares of the answers given them is right more "
        "often on average, if answers are independent given these columns. It is the smallest that follows from the "
        f"{attacks[0]['bound_by']}."
    ]
    return notes + [
        f"{attack['name']} is above the bound beyond its interval: answers in this table depend on each other, given "
        "these columns."
        for attack in attacks
        if attack["interval"][0] > attack["bound"]
    ]


def _bound(attack: Document) -> str:
    bound = attack.get("bound")
    return ABSENT if bound is None else "none known" if missing_reason(bound) is not None else percent_up(bound)


def _cells(attack: Document) -> tuple[str, ...]:
    if missing_reason(attack) is not None:
        return (ABSENT,) * 5
    low, high = attack["interval"]
    interval = f"{percent(low, ROUND_FLOOR)} to {percent(high, ROUND_CEILING)}"
    right, chance = percent(attack["success"]), percent(attack["chance"])
    return right, chance, interval, _bound(attack), percent_up(attack["vulnerable"])


def learnability_table(document: Document) -> Table:
    """Table of local errors, between no shuffle and a full one; no rows where that does not apply."""
    learned = learnability_of(document)
    if not learned:
        return Table((), (), (f"Learnability by group does not apply: {missing_reason(document['learnability'])}.",))
    columns = ("by", "not shuffled", display_name(document["shuffler"]), "fully shuffled", "groups")
    rows = tuple(
        (str(each["by"]), *(f"{each[key]:.2f}" for key in ("identity", "error", "uniform")), f"{each['groups']:,}")
        for each in learned
    )
    note = (
        "λ: the error of estimates read off the order of the release, the noise taken away. 0 is perfect, 1 is no "
        "better than a uniform guess. Near the left end groups can be told apart, near the right end they cannot. "
        f"Means of {learned[0]['draws']:,} releases."
    )
    better = () if document.get("comparison") else uniform_instead(document)  # the comparison says so itself
    return Table(columns, rows, (note, *better))


def attack_rows(document: Document) -> list[tuple[str, Any]]:
    """Attacks with an interval that can be drawn, by shuffler and name; without a comparison by name."""
    entries = document.get("comparison") or [document]
    many = len(entries) > 1
    return [
        (f"{display_name(entry['shuffler'])}: {attack['name']}" if many else str(attack["name"]), attack)
        for entry in entries
        for attack in attacks_of(entry)
        if missing_reason(attack) is None and all(math.isfinite(float(end)) for end in attack["interval"])
    ]


# Several questions in one report: each as a document of its own, and the sentences about all of them.


HOW = {
    "all": "everybody answers all of them, and the reports on each are shuffled by themselves",
    "joint": "everybody answers all of them in one report",
    "one": "everybody answers one of them, drawn by chance",
}


class QuestionPart(NamedTuple):
    """A question: what is written about it alone, its tables, and in words what its answers tell."""

    name: str
    document: Document
    table: Table
    groups: Table
    lines: tuple[str, ...]


def question_documents(document: Document) -> list[Document]:
    """Each question as a report about it alone; none where there is one private column."""
    questions = document.get("questions")
    return [] if not isinstance(questions, list) else [{**document, **one} for one in questions]


def question_parts(document: Document) -> list[QuestionPart]:
    """Every question, in the order in which they are asked."""
    return [
        QuestionPart(str(one["column"]), one, _table(one), _groups(one), tuple(_lines(one)))
        for one in question_documents(document)
    ]


def asked_of(document: Document) -> str:
    """A question in brackets: what its answers are."""
    return f"{document['collection']['private']} ({domain_words(document['collection'])})"


def domain_words(collection: Document) -> str:
    """The possible answers, in the words of the question where a document holds them."""
    if "domain" in collection:
        return str(collection["domain"])
    if collection["kind"] == "numeric":
        return f"a number between {collection['lower']:g} and {collection['upper']:g}"
    return f"one of {len(collection['categories'])} answers"


def setting(document: Document) -> Iterator[str]:
    """Say who is asked what, and how reports are made."""
    parts = question_documents(document)
    collection = document["collection"]
    asked = ", ".join(asked_of(one) for one in parts)
    yield f"{collection['n']:,} people, {len(parts)} private columns: {asked}; {HOW[collection['ask']]}."
    made = ", ".join(
        f"{one['column']}: {one['randomizer']['label']}, ε = {upward(one['local']['epsilon'])}" for one in parts
    )
    yield (
        f"Every answer is randomized before it leaves its owner ({made}), passes the shuffler "
        f"({label_of(SHUFFLERS, document['shuffler'])}), and is then estimated."
    )


def _table(one: Document) -> Table:
    why = missing_reason(one["estimates"])
    return estimate_table(one) if why is None else Table((), (), (f"No estimate: {why}.",))


def _groups(one: Document) -> Table:
    """The estimates by group; nothing at all where none were asked for."""
    known = missing_reason(one["estimates"]) is None and missing_reason(one["estimates"]["groups"]) is None
    return group_table(one) if known else Table((), (), ())


def _lines(one: Document) -> Iterator[str]:
    n, answers = one["collection"]["n"], one["answers"]
    if one["chance"] < 1.0:
        yield (
            f"Answered by {answers:,} of {n:,} people: each draws this question with probability "
            f"{percent(one['chance'])}."
        )
    local, _, _, leakage, attack = summarize_metrics(one)
    randomizer = one["randomizer"]["label"]
    yield f"One answer: {local.headline} ({randomizer}), no matter who reads it; it is part of the budget above."
    yield _said(leakage)
    yield _said(attack)


def _said(metric: MetricSummary) -> str:
    return (
        f"{metric.name}: {metric.headline}. {metric.meaning}"
        if metric.headline
        else f"{metric.name}: {metric.meaning}."
    )


# The privacy report in a handful of sentences.


def summary(document: Document) -> tuple[str, ...]:
    """The report in a handful of sentences: who, how, what it promises, what it leaks, what was learned."""
    return (*_setting(document), *_promises(document), *_learned(document))


def _setting(document: Document) -> Iterator[str]:
    if document["collection"]["kind"] == "questions":
        yield from setting(document)
        return
    collection, randomizer = document["collection"], document["randomizer"]
    kind = vector_kind(document) if is_vector(document) else domain_words(collection)
    who = f"{collection['n']:,} people"
    if is_stream(document):
        rounds = document["rounds"]
        who = f"{rounds['reports']:,} reports of {rounds['devices']:,} devices in {rounds['rounds']:,} rounds"
    columns = len(collection.get("columns", ())) or 1
    asked = "one private column" if columns == 1 else f"{columns} private columns"
    yield f"{who}, {asked}: {collection['private']} ({kind})."
    if has_dummies(document["central"]) and not math.isfinite(float(document["local"]["epsilon"])):
        measure = document["estimates"]["measure"]
        many = len(document["estimates"]["overall"].get("labels", ())) > 1
        learned = f"{measure}s are" if many else f"{measure} is"
        mixes = {
            "shuffler": "the shuffler mixes them, adds dummies",
            "users": "by chance with a dummy beside them, the shuffler mixes all messages",
        }[document["central"]["trust"]]
        yield (
            f"Answers leave their owners without noise; {mixes}, and the {learned} then estimated. Shuffler and "
            "analyst together read every answer."
        )
        return
    yield (
        "Every answer is randomized before it leaves its owner "
        f"({randomizer.get('label', display_name(randomizer['name']))}, ε = {upward(randomizer['epsilon'])}), "
        f"passes the shuffler ({label_of(SHUFFLERS, document['shuffler'])}), and is then estimated."
    )


def _promises(document: Document) -> Iterator[str]:
    local, central = document["local"], document["central"]
    if missing_reason(local) is None and math.isfinite(float(local["epsilon"])):
        batch = ""
        if is_stream(document):
            total, alone = upward(local["epsilon"]), upward(document["rounds"]["local_of_a_round"]["epsilon"])
            batch = f" (ε = {alone}); the device that reports most often spends ε = {total} over all rounds"
        elif missing_reason(central) is None:
            batch = (
                f"; the shuffled batch by at most {odds(central['epsilon'])} (slack δ = {upward(central['delta'])}), "
                f"if {honesty_assumption(central)}"
                if amplifies(central)
                else "; under the assumptions below, shuffling adds next to nothing to that promise"
            )
        once = document["rounds"]["local_of_a_round"] if is_stream(document) else local
        yield f"{_sent(document)} the odds about its owner by a factor of at most {odds(once['epsilon'])}{batch}."
    elif has_dummies(central):
        yield (
            f"The batch shifts the odds about one person by a factor of at most {odds(central['epsilon'])}, against "
            f"{adversary_of_dummies(central)}, if {honesty_assumption(central)}."
        )
    release = document.get("release")
    if isinstance(release, dict) and release.get("releases", 1) > 1:
        yield (
            f"This is release {release['number']} of {release['releases']} about these people; "
            f"{over_all_releases(document)}."
        )


def _sent(document: Document) -> str:
    what = single_report(document)
    return "All reports of one person together shift" if what.endswith("person") else "One report shifts"


def _learned(document: Document) -> Iterator[str]:
    for one in question_documents(document):
        if missing_reason(one["estimates"]) is None:
            yield from (f"{one['column']}: {line[0].lower()}{line[1:]}" for line in _estimated(one))
    yield from _estimated(document)


def _estimated(document: Document) -> Iterator[str]:
    overall, measure = document["estimates"]["overall"], document["estimates"]["measure"]
    if is_vector(document):
        yield from vector_sentences(document)
        return
    if missing_reason(overall) is None:
        unit, place = Unit.of(measure), headline_place(document)
        error = overall["standard_error"][place]
        over = " over all rounds" if is_stream(document) and measure != "share" else ""
        named = measure == "share" or len(overall["labels"]) > 1
        of = " of" if measure == "share" else ""
        what = f"{measure}{of} “{overall['labels'][place]}”" if named else measure
        yield (
            f"The estimated {what}{over} is {unit(overall['possible'][place], error)}, with a "
            f"{percent(document['estimates']['level'])} interval from "
            f"{unit.interval(overall['interval'][place], error)}."
        )


def headline_place(document: Document) -> int:
    """The component to quote: the second of two, else the largest share, or the number in the middle."""
    values = document["estimates"]["overall"]["possible"]
    if len(values) == 2 or document["estimates"]["measure"] != "share":
        return len(values) // 2
    return max(range(len(values)), key=lambda place: float(values[place]))
