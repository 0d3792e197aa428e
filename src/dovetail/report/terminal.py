"""The privacy report on a terminal: in short, and as a whole."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from dovetail.core.verdict import percent_up
from dovetail.report.charts import printable
from dovetail.report.number_format import (
    ABSENT,
    Document,
    Unit,
    display_name,
    missing_reason,
    percent,
)
from dovetail.report.rounds import budget_table, series_table, window_table
from dovetail.report.sentences import (
    attacks_of,
    banner,
    is_stream,
    mode_sentence,
    over_all_releases,
    summarize_metrics,
)
from dovetail.report.tables import (
    Table,
    attack_table,
    comparison_table,
    estimate_table,
    group_table,
    headline_place,
    is_vector,
    learnability_table,
    median_error,
    pair_table,
    question_documents,
    question_parts,
    summary,
)
from dovetail.report.verdict import judged, verdict

LONGEST = 30  # rows of a table on the terminal
FEW = 3  # estimates, and names in a row, of the short form


# --- in short ------------------------------------------------------------------------------------------------------


def print_short(document: Document, console: Console, *, place: str, after: str | None) -> None:
    """Print the privacy report in at most 20 lines of 80 columns; the whole of it lies in `place`.

    Parameters
    ----------
    document : dict
        A privacy report as loaded from report.json.
    console : rich.console.Console
    place : str
        Where report.html is.
    after : str or None
        The command to go on with, if there is one.
    """
    console.print(_words(_brief(document["title"], 78), style="bold"))
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="cyan", max_width=18, overflow="fold")
    grid.add_column(overflow="fold")
    rows = [*_short_rows(document), ("report", place)]
    for name, words in rows:
        grid.add_row(_words(name), _words(words))
    console.print(grid)
    if after is not None:  # on one line, however long, so that it can be pasted
        widest = min(18, max(len(name) for name, _ in rows))
        console.print(_words(f"{'next':{widest}}  "), style="cyan", end="")
        console.print(_words(after, style="bold"), soft_wrap=True)


def _short_rows(document: Document) -> Iterator[tuple[str, str]]:
    *_, public, steps = verdict(document)
    found = judged(document)
    yield "collected", _collected(document)
    yield "protection", found.sentence()
    release = document.get("release")
    if isinstance(release, dict) and release.get("releases", 1) > 1:
        yield "releases", f"{release['releases']} about these people; {over_all_releases(document)}"
    yield (
        "worst guess",
        (
            "between two answers of a person, if it is known who sent what: right in at most "
            f"{percent_up(found.rows[0].guess)}; blind 50%"
        ),
    )
    tried = [one for part in question_documents(document) or [document] for one in _attacks(part)]
    if tried:
        best = max(tried, key=lambda one: float(one["success"]) - float(one["chance"]))
        yield (
            "best attack tried",
            f"right in {percent(best['success'])}; a guess from public columns alone in {percent(best['chance'])}",
        )
    yield from _short_estimates(document)
    yield "public", _published(document, public.text)
    yield "what to do", _brief(steps.text, 200)  # warnings come first


def _attacks(document: Document) -> list[Document]:
    found = attacks_of(document) if "attacks" in document else []
    return [one for one in found if missing_reason(one) is None and missing_reason(one.get("success")) is None]


def _collected(document: Document) -> str:
    collection = document["collection"]
    whom = f"{collection['n']:,} people"
    if is_stream(document):
        whom = f"{document['rounds']['devices']:,} devices in {document['rounds']['rounds']:,} rounds"
    asked = [str(one["column"]) for one in question_documents(document)] or [str(collection["private"])]
    return f"{_few(asked)} of {whom} ({document['mode']})"


def _short_estimates(document: Document) -> Iterator[tuple[str, str]]:
    """Rows of the largest shares, or of the mean; of several questions the first few."""
    questions = question_documents(document)
    for one in questions[:FEW] or [document]:
        estimates = one["estimates"]
        overall = estimates.get("overall")
        if missing_reason(estimates) is not None or missing_reason(overall) is not None:
            continue
        name = str(one["column"]) if questions else ""
        yield from _estimates_of(one, name, estimates)


def _estimates_of(document: Document, name: str, estimates: Document) -> Iterator[tuple[str, str]]:
    if is_vector(document):
        vector = estimates["vector"]
        unit = Unit.of("mean")
        yield "mean vector", f"off by at most {unit(vector['error95'], vector['error95'])} in length (95%)"
        return
    overall, unit = estimates["overall"], Unit.of(estimates["measure"])
    error, values = median_error([overall]), overall["possible"]
    middle = max(0, headline_place(document) - FEW // 2)
    largest = sorted(range(len(values)), key=lambda place: -float(values[place]))[:FEW]
    shown = largest if estimates["measure"] == "share" else range(len(values))[middle : middle + FEW]
    for place in [headline_place(document)] if name else shown:
        label = str(overall["labels"][place])
        what = f"{name}: {label}" if name and estimates["measure"] == "share" else name or label
        yield (
            _brief(what, 18),
            f"{unit(values[place], error)}, {percent(estimates['level'])} interval "
            f"{unit.interval(overall['interval'][place], error)}",
        )


def _published(document: Document, otherwise: str) -> str:
    collection = document["collection"]
    columns = collection.get("published", collection["public"])
    if not columns:
        return otherwise
    alone = collection.get("alone")
    if missing_reason(alone) is not None:
        return _few(columns)
    return f"{_few(columns)}; {alone:,} of {collection['n']:,} people are alone"


def _few(names: Sequence[str]) -> str:
    """The first few names, each cut, and how many more there are."""
    shown = names if len(names) <= FEW + 1 else names[:FEW]
    more = f" and {len(names) - FEW} more" if len(names) > FEW + 1 else ""
    return ", ".join(_brief(str(name), 16) for name in shown) + more


def _brief(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- as a whole ----------------------------------------------------------------------------------------------------


def print_report(document: Document, console: Console) -> None:
    """Print the privacy report: compact, in plain words, 80 columns are enough.

    Parameters
    ----------
    document : dict
        A privacy report as loaded from report.json.
    console : rich.console.Console
    """
    console.print(_words(document["title"], style="bold"))
    if warning := banner(document):
        console.print(Panel(_words(warning, style="bold"), style="yellow"))
    else:
        console.print(_words(mode_sentence(document)))
    for line in verdict(document):
        console.print(_words(f"{line.name}:", style="bold"), _words(line.words))
    console.print()
    console.print(_words(" ".join(summary(document))))
    console.print()
    console.print(_metric_grid(document))
    several = question_parts(document)
    for part in several:
        _print_table(part.name, part.table, console)
        if part.groups.columns:
            _print_table(f"{part.name} by group", part.groups, console)
        _print_list(f"What {part.name} tells", part.lines, console)
    if not several:
        _print_table("What was learned", estimate_table(document), console)
        if (pairs := pair_table(document)).rows:
            _print_table("How columns go together", pairs, console)
    if is_stream(document):
        _print_table("Round by round", series_table(document), console)
        _print_table("Windows", window_table(document), console)
        _print_table("What the rounds cost", budget_table(document), console)
    elif not several:
        _print_table("Groups", group_table(document), console)
        _print_table("What attackers got", attack_table(document), console)
        _print_table("What the order tells about groups", learnability_table(document), console)
    if document.get("comparison"):
        _print_table("The same collection with other shufflers", comparison_table(document), console)
    _print_list("What each step promises", [_step(step) for step in document["steps"]], console)
    _print_list("Assumptions", [str(line) for line in document["assumptions"]], console)
    if "made" in document:
        _print_list("Made", _made(document), console)
    _print_list(
        "Files", [f"{display_name(key)}: {_file(value)}" for key, value in document["files"].items()], console
    )


def _made(document: Document) -> list[str]:
    """When, by which version, and the digests by which table and configuration are known again."""
    found = [f"on {document['made']} by Dovetail {document['version']}"]
    for key, value in document["digests"].items():
        found.append(f"SHA-256 of the {key}: {_file(value)}")
    return found


def _metric_grid(document: Document) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False, expand=False)
    grid.add_column("metric", style="bold", max_width=16, overflow="fold")
    grid.add_column("number", justify="right", max_width=14, overflow="fold")
    grid.add_column("what it means", overflow="fold")
    for metric in summarize_metrics(document):
        meaning = _words(metric.meaning, style="" if metric.headline else "dim")
        for line in metric.lines:
            meaning.append(f"\n• {printable(line)}")
        for caveat in metric.caveats:
            meaning.append(f"\nBut: {printable(caveat)}", style="yellow")
        if metric.source:
            meaning.append(f"\n{printable(metric.source)}", style="dim")
        grid.add_row(_words(metric.name), _words(metric.headline or ABSENT, style="bold cyan"), meaning)
    return grid


def _print_table(heading: str, table: Table, console: Console) -> None:
    console.print(_words(heading, style="bold"))
    if table.rows:
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, column in enumerate(table.columns):
            left = place == 0 or column in ("group", "answer", "missing rounds")
            grid.add_column(_words(column), justify="left" if left else "right", overflow="fold")
        for row in table.rows[:LONGEST]:
            grid.add_row(*(_words(cell) for cell in row))
        console.print(grid)
        if len(table.rows) > LONGEST:
            console.print(_words(f"{len(table.rows) - LONGEST} more rows in the report file.", style="dim"))
    for note in table.notes:
        console.print(_words(note, style="dim"))
    console.print()


def _print_list(heading: str, lines: Sequence[str], console: Console) -> None:
    console.print(_words(heading, style="bold"))
    for line in lines:
        grid = Grid.grid(padding=(0, 1))
        grid.add_row("•", _words(line))
        console.print(grid)
    console.print()


def _step(step: Document) -> str:
    return f"{step['stage']}: {step['what']} Promise: {step['guarantee']} [{step['theorem']}]"


def _file(value: Any) -> str:
    return str(value) if missing_reason(value) is None else f"none: {missing_reason(value)}"


def _words(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style, overflow="fold")
