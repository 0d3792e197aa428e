"""Parts of a batch that are sent at the same time: never more than were asked for, and resumed like any other."""

from itertools import count
from threading import Barrier, Semaphore

import pytest
from tests.collect.shuffler.world import World, campaign
from tests.waiting import PATIENCE

from dovetail.collect.shuffler.shuffler import ShufflerSettings


@pytest.mark.exhaust
def test_parts_are_sent_at_the_same_time_and_go_on_where_one_of_them_failed(monkeypatch):
    world = World(campaign(minimum=5), settings=ShufflerSettings(part_reports=1, parts_at_once=3))
    together, real, read = Barrier(3), world.analyzer.send_part, world.store.part
    in_memory, most, turn = Semaphore(3), [], count()

    def part(batch, number):
        most.append(in_memory.acquire(blocking=False))
        return read(batch, number)

    def send(batch, number, body):
        try:
            if next(turn) < 3:
                together.wait(PATIENCE)  # nobody goes on before three are under way
            real(batch, number, body)
        finally:
            in_memory.release()

    monkeypatch.setattr(world.store, "part", part)
    monkeypatch.setattr(world.analyzer, "send_part", send)
    world.send(*range(6))
    world.analyzer.parts_left = 4
    world.to_round(2)
    assert world.states()[1] == "released" and all(most)
    ((batch, here),) = world.analyzer.parts.items()
    assert len(here) == 4
    monkeypatch.setattr(world.analyzer, "send_part", real)
    world.analyzer.parts_left = 2  # those that it lacks
    for _ in range(5):
        world.advance(400.0)
    assert world.states()[1] == "delivered" and len(world.analyzer.only().entries) == 6 and world.analyzer.sent == 1
    assert sorted(set(world.analyzer.put)) == sorted(world.analyzer.put) == [(batch, number) for number in range(6)]
