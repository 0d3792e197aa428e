"""Reports, retries, time, a failing analyzer and crashes at any call of the store, in random order.

Failure is: an acknowledged report in two batches, or in none although nothing explains it; a device twice in one
batch; a batch below the minimum; a batch counted twice; a key that outlives its round. A report may wait, or be
dropped or superseded by the rule of its campaign, and is then counted as such.
"""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.collect.shuffler.world import DEVICES, SHUFFLER, World, campaign, message
from tests.tiers import tiered

from dovetail_protocol.messages import open_envelope

assert SHUFFLER.opening
OPENER = SHUFFLER.opening.opener()


class Crash(BaseException):
    """The process ends here."""


class Fragile:
    """A store whose process ends before or after one of the coming calls."""

    def __init__(self, store):
        self.store, self.left, self.after = store, None, False

    def __getattr__(self, name):
        def call(*arguments):
            strikes = self.left == 0
            if self.left is not None:
                self.left -= 1
            if strikes and not self.after:
                raise Crash
            result = getattr(self.store, name)(*arguments)
            if strikes:
                raise Crash
            return result

        return call


class Story(RuleBasedStateMachine):
    small = "wait"

    @initialize(late=some.sampled_from(["refuse", "next"]))
    def begin(self, late):
        self.world = World(campaign(minimum=3, small=self.small, late=late))
        self.store = Fragile(self.world.store)
        self.world.store = self.store
        self.world.restart()
        self.sent, self.acknowledged = [], set()  # messages; those that were acknowledged, by number

    def survive(self, work):
        """Do it, and after a crash start again."""
        try:
            return work()
        except Crash:
            self.store.left = None
            self.world.restart()

    @rule(device=some.integers(0, 7), round=some.integers(1, 5))
    def send(self, device, round):
        self.sent.append(message(self.world.campaign, DEVICES[device], round=round))
        self.deliver(len(self.sent) - 1)

    @rule(number=some.integers(0, 99))
    def send_again(self, number):
        if self.sent:
            self.deliver(number % len(self.sent))

    def deliver(self, number):
        if self.survive(lambda: self.world.deliver([self.sent[number]])) == ["accepted"]:
            self.acknowledged.add(number)

    @rule(hours=some.floats(0.0, 1.5))
    def wait(self, hours):
        self.survive(lambda: self.world.advance(hours * 3600.0))

    @rule(calls=some.integers(0, 12), after=some.booleans())
    def crash_soon(self, calls, after):
        self.store.left, self.store.after = calls, after

    @rule(failing=some.booleans())
    def analyzer(self, failing):
        self.world.analyzer.failing = failing

    @rule()
    def restart(self):
        self.survive(self.world.restart)

    def entries(self):
        return [entry for batch in self.world.analyzer.batches.values() for entry in batch.entries]

    @invariant()
    def no_report_leaves_twice(self):
        if hasattr(self, "world"):
            assert all(times == 1 for times in Counter(self.entries()).values())

    @invariant()
    def every_batch_is_large_enough(self):
        if hasattr(self, "world"):
            assert all(batch.header.count >= 3 for batch in self.world.analyzer.batches.values())

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.store.left, self.world.analyzer.failing = None, False
        self.world.restart()
        for _ in range(3):
            self.world.advance(6 * 3600.0)
        rounds = self.store.rounds("commute")
        batches = self.world.analyzer.batches.values()
        assert all(round.state in ("open", "delivered", "dropped", "merged") for round in rounds)
        gone = sum(batch.header.dropped.get("superseded", 0) for batch in batches)
        lost = sum(round.superseded for round in rounds if round.state == "dropped")
        left = sum(round.count for round in rounds if round.state in ("open", "dropped"))
        out = len(self.entries())
        assert len(self.acknowledged) <= out + gone + left + lost <= len(self.sent)
        inners = [open_envelope(self.world.campaign, sent, OPENER).inner for sent in self.sent]
        kept = {inners[number] for number in self.acknowledged} - set(self.entries())
        assert set(self.entries()) <= set(inners) and len(kept) <= gone + left + lost
        for round in rounds:
            assert (self.world.link_keys.key("commute", round.number) is None) == (round.state != "open")


@pytest.mark.exhaust
@pytest.mark.parametrize("small", tiered(["wait", "drop", "merge"], first=lambda small: small == "merge"))
def test_nothing_is_lost_and_nothing_is_doubled(small):
    story = type("Story", (Story,), {"small": small})
    run_state_machine_as_test(story, settings=settings(max_examples=12, stateful_step_count=30, deadline=None))
