"""The issuer's store on SQLite or PostgreSQL: which rounds somebody has a token of, under names that tell nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sqlalchemy import Connection, func, select

from dovetail.collect.store.engine import Database, open_database
from dovetail.collect.store.tables import ISSUED, ISSUER_PROBE, NAMING, SOLD
from dovetail.core.errors import ConfigError

IssueOutcome = Literal["new", "same", "other"]


class IssuerStore:
    """The store of what was issued; each method is one durable transaction, or an error and nothing done."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_keys(self, keys: Iterable[tuple[bytes, str, int]], *, naming: bytes) -> None:
        """Note for which campaign and round each key is, by its id, and once how people are named here.

        naming : fingerprint of the secret, and of the kind of people, that names are made with.

        Raises
        ------
        ConfigError
            For a key that is for two campaigns or rounds, now or since before: its tokens could be spent in both. For
            other names than before: everybody would get a second token of each round.
        """
        wanted: dict[bytes, tuple[str, int]] = {}
        for key, campaign, number in keys:
            _require_one_place(wanted.setdefault(key, (campaign, number)), (campaign, number))
        rows = [{"key": key, "campaign": place[0], "number": place[1]} for key, place in wanted.items()]

        def work(connection: Connection) -> None:
            note = self._database.insert(NAMING).values(one=1, fingerprint=naming)
            connection.execute(note.on_conflict_do_nothing())
            if connection.scalar(select(NAMING.c.fingerprint)) != naming:
                raise ConfigError(
                    "the issuer's store is of another `issuer.key`, or of another one of `roster`, `invitations` and "
                    "`accounts`: everybody could ask once more. Take these back, or for new campaigns an empty store "
                    "and new keys."
                )
            for row in rows:
                connection.execute(self._database.insert(SOLD).values(row).on_conflict_do_nothing())
            for key, campaign, number in connection.execute(select(SOLD.c.key, SOLD.c.campaign, SOLD.c.number)):
                _require_one_place((campaign, number), wanted.get(key, (campaign, number)))

        self._database.write(work)

    def issue(self, campaign: str, round: int, who: bytes, request: bytes) -> IssueOutcome:
        """Note that this person has her token of this round, by the digest of the request for it.

        "same": by this request before; "other": by another one, which stands.
        """
        row = {"campaign": campaign, "number": round, "who": who, "request": request}
        mine = (ISSUED.c.campaign == campaign, ISSUED.c.number == round, ISSUED.c.who == who)

        def work(connection: Connection) -> IssueOutcome:
            made = self._database.insert(ISSUED).values(row).on_conflict_do_nothing().returning(ISSUED.c.who)
            if connection.scalar(made) is not None:
                return "new"
            stands = connection.scalar(select(ISSUED.c.request).where(*mine))
            return "same" if stands == request else "other"

        return self._database.write(work)

    def counts(self) -> dict[tuple[str, int], int]:
        """How many tokens each round has."""
        places = (ISSUED.c.campaign, ISSUED.c.number)
        query = select(*places, func.count()).group_by(*places)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return {(campaign, number): count for campaign, number, count in rows}

    def ready(self) -> bool:
        """True if something could be issued now."""
        return self._database.ready(ISSUER_PROBE)

    def close(self) -> None:
        self._database.close()


def _require_one_place(first: tuple[str, int], other: tuple[str, int]) -> None:
    if first != other:
        raise ConfigError(
            f"one key is that of round {first[1]} of {first[0]} and of round {other[1]} of {other[0]}: "
            "somebody entitled to one could spend tokens in the other. Make new keys."
        )


def open_issuer_store(url: str) -> IssuerStore:
    """The store at this URL, with its tables."""
    return IssuerStore(open_database(url, "issuer"))
