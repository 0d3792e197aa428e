"""Somebody who writes the shuffler's database while a batch in parts is half built."""

import numpy as np
import pytest
from sqlalchemy import delete, insert, select, update
from tests.collect.shuffler.test_batch_in_parts import half_built, in_parts

from dovetail.collect.shuffler.batches import PartMacs
from dovetail.collect.store.tables import BATCH, PART, REPORT, ROUND
from dovetail_protocol.messages import plain, seal_inner


def swap(parts, evil):
    """Two parts change places, with what lies beside them."""
    parts[0], parts[1] = parts[1], parts[0]


DAMAGES = {
    "replaced": lambda parts, evil: parts.update({0: (evil, parts[0][1])}),
    "replaced, no code": lambda parts, evil: parts.update({0: (evil, None)}),
    "replaced, last": lambda parts, evil: parts.update({1: (evil, parts[1][1])}),
    "truncated": lambda parts, evil: parts.update({0: (parts[0][0][:1], parts[0][1])}),
    "shortened by a report": lambda parts, evil: parts.update({0: (parts[0][0][: len(evil) // 2], parts[0][1])}),
    "deleted in the middle": lambda parts, evil: parts.pop(0),
    "added": lambda parts, evil: parts.update({2: (evil, parts[1][1])}),
    "added beyond": lambda parts, evil: parts.update({7: (evil, parts[1][1])}),
    "changed places": swap,
}


@pytest.mark.exhaust
@pytest.mark.parametrize("how", DAMAGES)
def test_a_part_that_somebody_else_wrote_is_never_signed_and_the_batch_is_built_anew(how, monkeypatch):
    """By somebody who writes the database and has no key."""
    world = in_parts(2)
    world.send(*range(6), value=0)
    half_built(world, monkeypatch)
    (before,) = world.store.outgoing()
    asked = world.campaign
    evil = b"".join(seal_inner(asked, 1, plain(asked, asked.mechanism.encode(3))) for _ in range(2))
    mine = PART.c.batch == before.id
    with world.store._database.engine.begin() as connection:
        rows = connection.execute(select(PART.c.number, PART.c.body, PART.c.mac).where(mine)).all()
        parts = {number: (body, mac) for number, body, mac in rows}
        assert len(parts) == 2 and all(len(mac) == 32 for _, mac in parts.values())
        DAMAGES[how](parts, evil)
        connection.execute(delete(PART).where(mine))
        for number, (body, mac) in parts.items():
            connection.execute(insert(PART).values(batch=before.id, number=number, body=body, mac=mac))
    world.restart()
    world.restart()
    batch = world.analyzer.only()
    assert (world.states()[1], batch.header.count, batch.header.parts) == ("delivered", 6, 3)
    assert batch.values(asked) == [0] * 6 and len(set(batch.entries)) == 6
    assert batch.header.batch != before.id


def test_parts_of_other_reports_or_of_another_batch_do_not_stand():
    tags = np.arange(96, dtype=np.uint8).reshape(3, 32)
    codes = [
        PartMacs.of(batch, secret, tags[:n]).code(number, begin, body)
        for batch in ("a", "b")
        for secret in (bytes(32), bytes([1]) * 32)
        for n in (2, 3)
        for number, begin in ((0, 0), (1, 0), (0, 1))
        for body in (b"x", b"xy")
    ]
    assert len(set(codes)) == len(codes)


@pytest.mark.exhaust
def test_a_batch_that_somebody_made_too_small_is_not_built_on(monkeypatch):
    """Not even where no part stands yet, and every number says what is left."""
    world = in_parts(2)
    world.send(*range(6))
    half_built(world, monkeypatch, after=0)
    with world.store._database.engine.begin() as connection:
        spared = connection.scalar(select(REPORT.c.tag).limit(1))
        connection.execute(delete(REPORT).where(REPORT.c.tag != spared))
        connection.execute(update(ROUND).where(ROUND.c.number == 1).values(total=1))
        connection.execute(update(BATCH).values(total=1))
    world.restart()
    world.restart()
    assert world.states()[1] == "dropped" and world.analyzer.batches == {}
