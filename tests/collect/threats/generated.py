"""The generated parts of docs/data-model.md; `python -m tests.collect.threats.generated` writes them anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import MetaData

from dovetail.collect.analyzer.unseal import KINDS
from dovetail.collect.shuffler.rounds import BATCH_RULE, EFFECTS, FACTS
from dovetail.collect.store.tables import ANALYZER, ISSUER, SHUFFLER
from dovetail_device import ledger, outbox
from dovetail_device.sender import FINAL, LATER, TRANSITIONS

PAGE = Path(__file__).parents[3] / "docs" / "data-model.md"

LIVES = {
    "round": "from its first report or its begin on; never deleted, so that no round opens twice",
    "shard": "reports that `total` does not count yet, by first bits of tags; PostgreSQL only, until the round ends",
    "report": "until its round is released, merged or dropped",
    "fresh": "digests of report ids of rounds that take reports; they pass to `spent` when the round ends",
    "spent": "for the retention period: a retry is acknowledged alike and counts nowhere",
    "batch": "for the retention period; `header` is what was signed, empty while built and once delivered; "
    "`secret` draws the order of a batch in parts, sealed under its round's key, and is gone once the batch is built",
    "part": "the body, in released order, until the analyzer has counted it",
    "fault": "counters of refused messages; published in tens",
    "vault": "which vault goes with this database: a random name, not a secret",
    "challenge": "digests of challenges with which owners have closed or dropped rounds, for a minute",
    "moment": "when the service last believed its clock, in whole minutes",
    "shuffler_probe": "random bytes while it is tried whether the disk takes more; empty otherwise",
    "analyzer_probe": "random bytes while it is tried whether the disk takes more; empty otherwise",
    "counted": "for ever: one row for each batch",
    "counted_round": "for ever: a round is counted once",
    "rejected": "for ever: bad reports by kind",
    "class_size": "for ever: people of each class, where people have different epsilons",
    "tally": "for ever: one row for each batch and public group",
    "cell": "for ever: counts, from which every estimate is made",
    "aside": "bad reports, still sealed, ordered by kind and bytes, for the retention period",
    "incoming": "manifests of batches in parts until they are counted, for the retention period at most",
    "incoming_part": "their parts, still sealed, as long",
    "placed": "reports by public roster slot, for ever; order-private campaigns only",
    "token": "for ever: no round has a second one; key, token and what hid its request go with the report",
    "issued": "for ever: who has the token of which round, under a name that is another one in each round",
    "sold": "for ever: which key is for which round of which campaign",
    "naming": "for ever: a fingerprint of `issuer.key` and of who is entitled; no other one is taken",
    "issuer_probe": "random bytes while it is tried whether the disk takes more; empty otherwise",
    "device": "for ever",
    "memory": "for ever: since when the device remembers, and its limits",
    "owner": "for ever: whom the device has consented to answer",
    "question": "for ever: exact budget spent on each question, under whatever campaign",
    "campaign": "for ever: pinned owner, newest version, exact budget spent",
}
OUTBOX = {**LIVES, "report": "for ever; id, report and message are emptied once it has arrived or never will"}


def tables(metadata: MetaData) -> Iterator[str]:
    yield from _head("table", "columns (key first)", "lives")
    for table in metadata.tables.values():
        keys = [column.name for column in table.primary_key]
        rest = [column.name for column in table.columns if column.name not in keys]
        yield _row(f"`{table.name}`", _named([f"**{key}**" for key in keys], rest), LIVES[table.name])


def device_tables() -> Iterator[str]:
    yield from _head("table", "columns (key first)", "lives")
    with sqlite3.connect(":memory:") as base:
        base.executescript(outbox._TABLES + ledger.TABLES)
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = base.execute(f"PRAGMA table_info({name})").fetchall()
            keys = [f"**{column[1]}**" for column in sorted(columns, key=lambda column: column[5]) if column[5]]
            yield _row(f"`{name}`", _named(keys, [column[1] for column in columns if not column[5]]), OUTBOX[name])


def device_states() -> Iterator[str]:
    yield from _diagram((state, event, after) for (state, event), (after, _) in TRANSITIONS.items())
    yield ""
    yield from _head("state", "event", "effects", "then")
    for (state, event), (after, effects) in TRANSITIONS.items():
        yield _row(state, event, ", ".join(effects), after)


def refusals() -> Iterator[str]:
    yield from _head("refusal", "means", "the device")
    for words, does in ((LATER, "tries again"), (FINAL, "gives up")):
        for kind, meaning in words.items():
            yield _row(f"`{kind}`", meaning, does)


def rounds() -> Iterator[str]:
    yield from _diagram((row.state, _when(row.event, row.when), row.after) for row in BATCH_RULE)
    yield ""
    yield from _head("state", "event", "where", "effects", "then")
    for row in BATCH_RULE:
        yield _row(row.state, row.event, row.when or "otherwise", ", ".join(row.effects), row.after)
    yield ""
    yield from (f"* *{name}*: {meaning}." for name, meaning in [*FACTS.items(), *EFFECTS.items()])


def kinds() -> Iterator[str]:
    yield ", ".join(f"`{kind}`" for kind in KINDS)


BLOCKS = {
    "device tables": device_tables,
    "device states": device_states,
    "refusals": refusals,
    "shuffler tables": lambda: tables(SHUFFLER),
    "rounds": rounds,
    "analyzer tables": lambda: tables(ANALYZER),
    "kinds": kinds,
    "issuer tables": lambda: tables(ISSUER),
}


def filled(page: str) -> str:
    """The page with every generated part as the code has it."""
    for name, lines in BLOCKS.items():
        begin = f"<!-- generated: {name} -->\n"
        before, _, rest = page.partition(begin)
        after = rest.partition("<!-- end -->")[2]
        page = "\n".join([before + begin + "\n".join(lines()), f"<!-- end -->{after}"])
    return page


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _named(keys: Sequence[str], rest: Sequence[str]) -> str:
    return ", ".join([*keys, *rest])


def _when(event: str, situation: str) -> str:
    return f"{event} ({situation})" if situation else event


def _diagram(arrows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"  {state} --> {after}: {event}" for state, event, after in arrows)
    yield "```"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
