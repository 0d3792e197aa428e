"""Where people send fewer dummies than everybody would, every answer says how many of them can have sent theirs."""

from __future__ import annotations

import pytest
from tests.collect.shuffler.test_people_dummies import DEVICES, HONEST, RULE, K, Story, tables, world

from dovetail.collect.analyzer.live_page import render
from dovetail.collect.analyzer.sentences import guarantee_sentences
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee
from dovetail.collect.simulate.deployment import ThrowawayCampaign
from dovetail.core.missing import Missing
from dovetail.shuffle.sampling.dummies import UserDummies
from dovetail_protocol.dummies import SentDummies


@pytest.mark.exhaust
def test_a_batch_to_which_not_everybody_can_have_sent_dummies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SentDummies, "filled", lambda self, values, words: [*values, self.k])
    crowd = {"promise": {"delta": 0.05, "trust": "users", "assumed_honest": 50}, "batch": {"minimum": 50}}
    story = Story(ThrowawayCampaign.of(tables(**crowd), 75))
    story.play()
    answers, most = story.answers, UserDummies(K, RULE["rate"]).most_followers(75, 75)
    assert most < 60
    warning = f"At most {most} of its 75 people can have followed the campaign's rule for dummies"
    told = (answers.document(answers.latest()), answers.frequencies(), answers.guarantee(1), answers.guarantee())
    for document in (*told, answers.window(1, width=1)):
        assert [warning in line for line in document["warnings"]] == [True]
    assert any(line.name == "Dummies are missing" and warning in line.meaning
               for line in guarantee_sentences(story.world.campaign, answers.guarantees()))  # fmt: skip
    page = render([answers])
    assert "Dummies are missing" in page and f"at most {most} people sent dummies by the rule" in page
    assert answers.status()["batches"][0]["followers"] == most


@pytest.mark.exhaust
def test_a_batch_of_people_who_send_dummies_is_not_doubted() -> None:
    story = Story()
    story.play()
    answers = story.answers
    assert answers.status()["batches"][0]["followers"] is None
    assert answers.guarantee()["warnings"] == answers.frequencies()["warnings"] == []
    assert "Dummies are missing" not in render([answers])


def test_a_promise_counts_on_no_more_people_than_can_have_sent_dummies() -> None:
    full, doubted = (
        batch_guarantee(world().campaign, ReleasedBatch(1, DEVICES, DEVICES, DEVICES, followers=followers)).central
        for followers in (None, HONEST - 2)
    )
    assert not isinstance(full, Missing) and not isinstance(doubted, Missing)
    assert (full.honest_n, doubted.honest_n) == (HONEST, HONEST - 2) and doubted.epsilon > full.epsilon
