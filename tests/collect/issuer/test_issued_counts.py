"""How many tokens an issuer gave, signed: what is told, who is believed, and what the analyzer says of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from tests.collect.issuer.test_app import issuing
from tests.collect.issuer.test_app import run as collect
from tests.collect.issuer.world import SIGNING, TokenWorld, with_tokens
from tests.collect.shuffler.world import ANALYZER, BEGIN, PERIOD, campaign
from tests.waiting import PATIENCE

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render_body
from dovetail.collect.analyzer.sentences import token_sentence
from dovetail.collect.campaign.issued_counts import IssuedCounts
from dovetail.collect.issuer.app import scrape
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.core.errors import ConfigError, DataError
from dovetail_protocol.keys import SigningKey

ASKED = with_tokens(minimum=2)


def signed(counts: dict[int, int], *, of: str = "commute", key: SigningKey = SIGNING) -> bytes:
    return json.dumps(IssuedCounts(of, counts).document(key)).encode()


@pytest.mark.parametrize("small", ["drop", "wait"])
def test_rounds_that_sell_no_more_tokens_are_counted_exactly_and_others_not_told(small: str) -> None:
    world = TokenWorld(asked=with_tokens(minimum=2, small=small))
    for place in range(3):
        world.bench(place).device.fetch_tokens(1)

    def told(now: float, issuer: object = world.issuer) -> dict[int, int]:
        body = json.dumps(issuer.issued("commute", now)).encode()  # type: ignore[attr-defined]
        return dict(IssuedCounts.read(body, world.asked).counts)

    late = BEGIN + 1.9 * PERIOD
    assert told(BEGIN) == {} and told(late) == ({1: 3} if small == "drop" else {})
    assert told(late, world.opened(signers={})) == {1: 3, 2: 3}, "whose keys were taken away"


def test_watchers_of_metrics_see_nobody_ask_and_tens_when_the_round_sells_no_more() -> None:
    world = TokenWorld(count=11, asked=with_tokens(minimum=2, small="drop"))
    texts = [scrape(world.issuer, BEGIN)]
    for place in range(11):
        world.bench(place).device.fetch_tokens(1)
        texts.append(scrape(world.issuer, BEGIN))
    assert len(set(texts)) == 1 and world.store.counts() == {("commute", 1): 11, ("commute", 2): 11}
    over = scrape(world.issuer, BEGIN + 1.9 * PERIOD).decode()
    assert re.findall(r"^dovetail_tokens_issued.*", over, re.M) == [
        'dovetail_tokens_issued{campaign="commute",round="1"} 10.0'
    ]


def test_counts_are_believed_from_the_key_that_the_campaign_names_and_for_it_alone() -> None:
    good = signed({1: 95, 2: 120})
    assert IssuedCounts.read(good, ASKED).counts == {1: 95, 2: 120}
    wrong = [
        good.replace(b"95", b"96"),
        good.replace(b"[2, 120]", b"[3, 120]"),
        signed({1: 95}, key=SigningKey.generate()),
    ]
    wrong += [
        signed({1: 95}, of="others"),
        b"",
        b"[]",
        b"{}",
        good.replace(b"95", b"-1"),
        good.replace(b"95", b"true"),
    ]
    for body in wrong:
        with pytest.raises(DataError, match="counts"):
            IssuedCounts.read(body, ASKED)
    with pytest.raises(ConfigError, match="names no key"):
        IssuedCounts.read(good, campaign())


def test_more_reports_than_tokens_are_an_alarm_and_fewer_prove_nothing() -> None:
    told = token_sentence(ASKED, {1: 95, 2: 121, 3: 7}, {1: 95, 2: 120}).meaning
    assert "round 1: 95 tokens, 95 reports; round 2: 120 tokens, 121 reports" in told and "round 3" not in told
    assert "In round 2 there are more reports than tokens" in told and "In round 1" not in told
    assert "prove nothing: the issuer may have made people up, and the shuffler may have sent" in told
    assert "Of 1 round counted here it has told nothing yet" in told
    assert "told nothing" not in token_sentence(ASKED, {1: 95}, {1: 95, 2: 120}).meaning
    assert "none of those counted here" in token_sentence(ASKED, {1: 5}, {}).meaning
    assert "is not known here" in token_sentence(ASKED, {1: 5}, None).meaning


def test_the_analyzers_page_says_how_many_tokens_there_were_or_that_nobody_knows(tmp_path: Path) -> None:
    def page(issued: Path | None) -> str:
        campaigns = AnalyzerCampaigns.of([ASKED], [ANALYZER])
        store = open_analyzer_store("sqlite://")
        analyzer = Analyzer(campaigns, store=store, clock=TokenWorld().world.clock, issued=issued)
        said = render_body(analyzer.all_answers()) + json.dumps(analyzer.answers("commute").guarantee())
        store.close()
        return said

    assert page(None).count("is not known here") == 2
    (tmp_path / "commute.json").write_bytes(signed({1: 5}))
    assert page(tmp_path).count("issuer.example.org signs how many it gave") == 2
    (tmp_path / "commute.json").write_bytes(signed({1: 5}, key=SigningKey.generate()))
    assert page(tmp_path).count("its signed counts are not there, or do not hold") == 2
    assert str(tmp_path) not in page(tmp_path), "a page tells no place of this machine"


def test_the_counts_are_fetched_verified_and_kept_on_the_command_line(tmp_path: Path) -> None:
    world = TokenWorld()
    world.bench().device.fetch_tokens(0)
    (tmp_path / "campaign.toml").write_bytes(world.asked.signed)
    with issuing(world, world.opened(signers={})) as url:
        out = tmp_path / "issued"
        told = collect("issued", str(tmp_path / "campaign.toml"), "--issuer", url, "--out", str(out))
        assert "round 1" in told and "1 tokens" in told
        assert IssuedCounts.load(out / "commute.json", world.asked).counts == {1: 1}
        assert httpx.get(f"{url}/v1/issued/others", timeout=PATIENCE).status_code == 404
        found = json.loads(collect("issued", str(tmp_path / "campaign.toml"), "--issuer", url, "--json"))
        assert found["issued"] == [[1, 1]]
