"""Every question that goes with a campaign is asked in one: devices answer, and estimates are the job's."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.analyzer.world import ANALYZER, NOON, World, batch, campaign, store
from tests.device.words import SimulatedBits
from tests.job.test_together import CELLS, question_of, table_of
from tests.statistics import rng_of

from dovetail.account.dummies import dummies_for_rounds, sparse_for_rounds, user_dummies_for
from dovetail.account.gaussian_dummies import message_for
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import RosterSlotEstimator
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render_body
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee
from dovetail.collect.campaign.terms import (
    added_dummies,
    asked_of,
    draft_campaign,
    law_of,
    noise_of_campaign,
    question_about,
    require_question,
)
from dovetail.collect.campaign.terms import question_of as asked_question
from dovetail.collect.clock import FrozenClock
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.core.question import QUESTIONS, Question
from dovetail.job.build import build_question
from dovetail.job.config import parse_config
from dovetail.job.together import CAMPAIGN, RELEASE, SEVERAL, Choices
from dovetail.randomize.sampling.open_reports import decode_reports
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail.shuffle.uniform import Uniform
from dovetail_device.client import _answer
from dovetail_device.entropy import system_entropy
from dovetail_device.session import read_value
from dovetail_protocol import messages as message
from dovetail_protocol.asked import Value
from dovetail_protocol.campaign import Campaign, draft
from dovetail_protocol.dummies import Unrandomized, delta_of_each
from dovetail_protocol.keys import SigningKey

ALLOWED = [one for one, why in CELLS if why is None and one.engine == CAMPAIGN]
UNIFORM = [
    pytest.param(one, marks=[pytest.mark.exhaust] if one.question in ("regression", "tables") else [])
    for one in ALLOWED
    if one.order == "uniform" and one.question not in SEVERAL  # several: test_several_questions
]
EPSILON, DELTA = 8.0, 1e-2
MEMOIZED = "[memoize]\nconstant_values = true\n"


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def section(name: str, table: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table.items()), ""])


def made(one: Choices, n: int, shuffle: str = "") -> tuple[Campaign, Question]:
    """The campaign of a cell, by the settings that a run of it has."""
    plain = replace(one, noise="users" if QUESTIONS[one.question].several else "local", order="uniform")
    settings = parse_config(question_of(plain))
    question = build_question(settings, settings.data.categories)
    mean, dummies = question.needs == "mean", one.noise not in ("local", "classes", "memoized")
    k = 9 if dummies and (mean or question.of_arrays) else question.domain.get("k")
    own = settings.question.settings_of(settings.question_kind) if settings.question.ask else {}
    digits = 2 if one.noise == "digits" else 0
    asked = asked_of(question, private=settings.data.private, settings=own, k=k, digits=digits)
    k = 3 * digits or k
    randomizer = {"name": "krr", "k": k, "epsilon": 2.0}
    if mean and not dummies:
        randomizer = {"name": "laplace", **question.column, "epsilon": 2.0, "grid": 1.0}
    if question.of_arrays:
        own_noise = ClosestDirection(**question.domain, epsilon=2.0).device
        randomizer = {"name": own_noise.name, **own_noise.stated()}
    rest, trust = section("asks", asked.stated()), "local"
    if one.noise == "memoized":
        rest += MEMOIZED
    if one.noise == "classes":
        rest += section("classes", {"careful": 1.0, "standard": 2.0})
    if dummies:
        randomizer = {"name": "none", "k": k}
        trust = "users" if one.noise == "users" else "shuffler"
        if trust == "users":
            rate = user_dummies_for(k=k or 0, epsilon=EPSILON, delta=DELTA, honest=n, symbols=question.symbols).rate
            rest += section("dummies", {"epsilon": EPSILON, "delta": DELTA, "rate": rate})
        elif one.noise == "digits":
            both = message_for(weights=(1, 3), epsilon=EPSILON, delta=DELTA)
            of_all = {"epsilon": EPSILON, "delta": DELTA, "variance": str(both.scale)}
            rest += section("dummies", {**of_all, "reaches": both.reaches})
        elif one.noise == "sparse":
            m = question.symbols
            few = sparse_for_rounds(k=k or 0, epsilon=m * EPSILON, delta=DELTA, rounds=m)
            rest += section("dummies", {"epsilon": few.epsilon, "kept": float(few.kept), "more": float(few.more)})
        else:
            law = "gaussian" if one.noise == "gaussian" else "geometric"
            delta = delta_of_each(DELTA, question.symbols)
            found = dummies_for_rounds(k=k or 0, epsilon=EPSILON, delta=delta, rounds=1, law=law)
            more = {"variance": str(found.noise.scale)} if law == "gaussian" else {}  # type: ignore[union-attr]
            rest += section("dummies", {"epsilon": EPSILON, "delta": delta, "reach": found.reach, **more})
    promise = f'trust = "{trust}"' + (f"\nassumed_honest = {n}" if trust == "users" else "")
    body = "\n".join(section("randomizer", randomizer).splitlines()[1:])
    return campaign(
        body, minimum=n, promise=promise, shuffle=shuffle, delta=repr(DELTA), budget=4000.0, more=rest
    ), question


def reports_of(asked: Campaign, plains: list[bytes]) -> Any:
    encoded = np.frombuffer(b"".join(each[3:] for each in plains), dtype=np.uint8)
    return decode_reports(asked.mechanism, encoded.reshape(len(plains), -1))[0]


def kind_of(value: Value) -> Any:
    return pl.String if value.categories else pl.Float64


def values_of(asked: Any, table: pl.DataFrame) -> list[Any]:
    """What devices are given, person by person."""
    columns = [
        table[one.name].to_list() if one.length else table[one.name].cast(kind_of(one)).to_list()
        for one in asked.values
    ]
    names = [one.name for one in asked.values]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("one", UNIFORM, ids=str)
def test_a_campaign_asks_the_question_and_tells_what_the_job_tells_of_the_same_reports(one: Choices) -> None:
    table = table_of(one).head(1000)
    made_of, question = made(one, table.height)
    require_question(made_of)
    assert asked_question(made_of) == question
    noise, world = noise_of_campaign(made_of, question), World((made_of,))
    assert noise.name == one.noise
    words, device = system_entropy(), SigningKey.generate()
    plains: list[bytes] = []
    for place, held in enumerate(values_of(made_of.asked, table)):
        own = made_of.of_class(place % 2 if made_of.classes else 0)
        drawn = message.draw(own, _answer(held, own), words)
        if place == 0:
            sent = message.seal(own, 1, drawn, device, place=0 if made_of.classes else None)
            assert len(sent) == message.wire_bytes(own)
        plains += message.split(drawn, made_of.entries)
    dummies = added_dummies(made_of)
    if dummies is not None:
        plains = [plains[place] for place in dummies.places(len(plains), simulation(2))]
    symbols = [] if dummies is None else dummies.drawn(simulation(1)).tolist()
    plains += [message.plain(made_of, made_of.mechanism.encode(symbol)) for symbol in symbols]
    n, stated = table.height, dict[str, Any]()
    if dummies is not None:
        stated = {"people": n, "dummies": law_of(dummies)}
    elif made_of.sent is not None:
        stated = {"people": n}
    if made_of.classes:
        stated = {"classes": (n // 2, n // 2)}
    sealed = [message.seal_inner(made_of, 1, each) for each in plains]
    world.analyzer.receive(batch(made_of, sealed, **stated))

    reports: Any = reports_of(made_of, plains)
    if isinstance(made_of.mechanism, Unrandomized):
        reports = reports[reports < made_of.mechanism.k]
    people = People(n, pl.DataFrame(), counted={"careful": n // 2, "standard": n // 2} if made_of.classes else {})
    wanted = question.learned(noise, noise.tally(reports), people)
    found = world.answers.document(world.answers.latest(), detail=True)
    if question.several and question.span is not None:  # no list of shares, which would add up to 1
        assert [found["groups"][0]["possible"]] == [np.clip(found["groups"][0]["value"], *question.bounds).tolist()]
    (told,) = found["groups"]
    assert found["measure"] == question.measure and told["labels"] == question.labels and told["n"] == n
    assert told["value"] == np.atleast_1d(wanted.value).tolist()
    assert told["standard_error"] == np.atleast_1d(wanted.standard_error).tolist()
    curve, page = found.get("curve", {}), render_body([world.answers])
    assert ("place" in curve) == (one.question == "distribution")
    assert ("Share of people below a number, round 1" in page) == ("place" in curve)
    assert ("How much two columns tell of one another, round 1" in page) == (len(curve.get("pairs", ())) > 1)
    promised = noise.central(Uniform(n), people, delta=DELTA)
    assert isinstance(promised, CentralDP)
    assert world.answers.guarantee(1)["central"]["all"] == pytest.approx(promised.all, rel=1e-9)


@pytest.mark.parametrize("kind", ["shuffler", "users"])
def test_a_device_that_sends_nothing_readable_is_one_person_whatever_it_sends(kind: str) -> None:
    """All entries of two devices: two people are left out, and the others are told of."""
    (one,) = [one for one in ALLOWED if (one.question, one.noise) == ("covariance", kind)]
    n, bad = 400, 2
    made_of, _ = made(one, n - 40)
    world, words, plains = World((made_of,)), system_entropy(), list[bytes]()
    for held in values_of(made_of.asked, pl.concat([table_of(one)] * 5).head(n)):
        plains += message.split(message.draw(made_of, _answer(held, made_of), words), made_of.entries)
    dummies, stated = added_dummies(made_of), dict[str, Any](people=n)
    if dummies is not None:
        stated["dummies"] = law_of(dummies)
        plains += [
            message.plain(made_of, made_of.mechanism.encode(one)) for one in dummies.drawn(simulation(1)).tolist()
        ]
    sealed = [message.seal_inner(made_of, 1, each) for each in plains]
    for place in range(bad * made_of.entries):
        sealed[place] = bytes(len(sealed[place]))
    world.analyzer.receive(batch(made_of, sealed, **stated))
    (told,) = world.answers.document(world.answers.latest(), detail=True)["groups"]
    assert told["n"] == n - bad and np.isfinite(told["value"]).all()


def test_a_person_may_say_on_the_command_line_that_she_gives_no_answer() -> None:
    (one,) = [one for one in ALLOWED if (one.question, one.noise, one.order) == ("nonresponse", "local", "uniform")]
    asked, _ = made(one, 80)
    assert asked.asked is not None
    (gone,) = asked.asked.check(read_value("no answer", asked))
    assert np.isnan(gone) and asked.asked.check(read_value("172", asked)) == (172.0,)
    with pytest.raises(DataError, match="must be a number"):
        read_value("nothing", asked)


@pytest.mark.parametrize("change", [{"points": 3}, {"other_lower": 40.0}, {"question": "correlation"}])
def test_a_campaign_whose_symbols_are_not_those_of_its_question_is_refused(change: dict[str, Any]) -> None:
    (one,) = [one for one in ALLOWED if (one.question, one.noise, one.order) == ("covariance", "local", "uniform")]
    made_of, _ = made(one, 80)
    assert made_of.asked is not None
    stated = made_of.asked.stated()
    stated["settings"] |= {key: value for key, value in change.items() if key != "question"}
    stated |= {key: value for key, value in change.items() if key == "question"}
    other = campaign('name = "krr"\nk = 4\nepsilon = 2.0', more=section("asks", stated))
    with pytest.raises(ConfigError, match=r"other values or symbols|at least 3|equal to 3"):
        require_question(other)


def test_a_promise_counts_every_symbol_of_a_person() -> None:
    (one,) = [one for one in ALLOWED if (one.question, one.noise) == ("regression", "shuffler")]
    asked, question = made(one, 100)
    noise, people = noise_of_campaign(asked, question), People(100, pl.DataFrame())
    central = noise.central(Uniform(100), people, delta=DELTA)
    found = batch_guarantee(asked, ReleasedBatch(t=1, sent=100, n=100, smallest=100)).central
    assert isinstance(central, CentralDP) and isinstance(found, CentralDP)
    assert found.all == pytest.approx(central.all, rel=1e-9) and found.all > 2.0 * EPSILON
    assert asked.symbols == 4 and asked.charged == 4 * EPSILON >= found.all
    assert 0.999 * DELTA < asked.charged_delta <= DELTA


@pytest.mark.parametrize("noise", ["shuffler", "users"])
def test_a_campaign_whose_symbols_take_more_than_its_delta_is_refused(noise: str) -> None:
    (one,) = [one for one in ALLOWED if (one.question, one.noise) == ("regression", noise)]
    body = made(one, 120)[0].signed.decode()
    less = body.replace(f"[promise]\ndelta = {DELTA!r}", f"[promise]\ndelta = {0.99 * DELTA!r}")
    assert less != body and draft(body.encode()).promise.delta == DELTA
    with pytest.raises(ConfigError, match=r"at most `promise\.delta` = 0\.0099"):
        draft(less.encode())


@pytest.mark.parametrize("change", [{"upper": 1e6}, {"lower": -1.0}, {"missing": "no answer"}])
def test_a_number_that_is_asked_as_it_is_has_the_range_of_the_randomizer(change: dict[str, Any]) -> None:
    (one,) = [one for one in ALLOWED if (one.question, one.noise, one.order) == ("number", "local", "uniform")]
    asked = made(one, 80)[0].asked
    assert asked is not None and asked.symbols == ()
    value = asked.values[0]
    body = f'name = "laplace"\nlower = {value.lower}\nupper = {value.upper}\nepsilon = 2.0\ngrid = 1.0'
    stated = asked.stated()
    assert campaign(body, more=section("asks", stated)).asked == asked
    stated["values"][0] |= change
    with pytest.raises(ConfigError, match="must then be those of"):
        campaign(body, more=section("asks", stated))


def test_a_number_of_a_huge_range_is_asked_on_where_its_quantiles_were_found() -> None:
    """One campaign after another: the second one's bins are uneven. Draws are fixed; an interval covers with 95 %."""
    held = (2.0 ** np.linspace(4.0, 18.0, 600)).tolist()
    words, settings, widths = SimulatedBits(rng_of("asked on")), {"bins": 16, "quantiles": "0.5"}, list[float]()
    for _ in range(3):
        column = {"private": "size", "lower": 0.0, "upper": 2.0**20}
        question = question_about("distribution", column, settings, name="a test")
        k = question.domain["k"]
        asks = section("asks", asked_of(question, private="size", settings=settings, k=k).stated())
        asked = campaign(f'name = "krr"\nk = {k}\nepsilon = 6.0', minimum=500, more=asks)
        require_question(asked)
        sealed = [message.seal_inner(asked, 1, message.draw(asked, _answer(each, asked), words)) for each in held]
        world = World((asked,))
        world.analyzer.receive(batch(asked, sealed))
        found = world.answers.document(world.answers.latest(), detail=True)
        ((low, high),) = found["groups"][0]["interval"]
        assert low <= question.truth(np.array(held))[0] <= high
        widths.append(high - low)
        settings = found["next"]
    assert widths[0] >= 2.0**16 and widths[2] < 0.5 * widths[1] < 0.1 * widths[0]


def order_rule(one: Choices, folder: Path) -> str:
    """The section [shuffle] of an order, with the public table that it is fitted to."""
    if one.order == "uniform":
        return ""
    public = table_of(one).select("age", "time").write_csv()
    (folder / "public.csv").write_text(public)
    apart = one.order in ("within_groups", "rase")
    groups = "labels = 'age'" if apart else "points = ['age', 'time']\nradius = 1.0"
    digest = sha256(public.encode()).hexdigest()
    alpha = "" if apart or one.order == "identity" else "alpha = 2.0\n"
    named = f"shuffler = '{one.order}'\n{alpha}public = 'public.csv'\npublic_sha256 = '{digest}'"
    return f"{named}\n[shuffle.groups]\n{groups}"


@pytest.mark.parametrize(
    "one", [one for one in ALLOWED if one.order != "uniform" and one.question not in SEVERAL], ids=str
)
def test_a_campaign_asks_the_question_in_an_order_that_is_private(one: Choices, tmp_path: Path) -> None:
    n = 80
    asked, question = made(one, n, order_rule(one, tmp_path))
    require_question(asked)
    slots = RosterSlotEstimator.load(asked, tmp_path)
    assert slots is not None
    words = system_entropy()
    plains = [message.draw(asked, _answer(held, asked), words) for held in values_of(asked.asked, table_of(one))]
    order = slots.shuffler.permutation(simulation(1))
    entries = [slot.to_bytes(4) + message.seal_inner(asked, 1, plains[at]) for slot, at in enumerate(order)]
    analyzer = Analyzer(
        AnalyzerCampaigns.of((asked,), (ANALYZER,)), store=store(), clock=FrozenClock(NOON), slots={asked.id: slots}
    )
    analyzer.receive(batch(asked, entries))
    answers = analyzer.answers(asked.id)
    told = answers.document(answers.latest())["groups"][0]
    noise = noise_of_campaign(asked, question)
    reports = reports_of(asked, plains)
    wanted = question.learned(noise, noise.tally(reports), People(n, pl.DataFrame()))
    assert told["group"] is None and told["value"] == np.atleast_1d(wanted.value).tolist()


@pytest.mark.parametrize(
    "one",
    [
        one
        for one, why in CELLS
        if why is not None and (one.engine, one.mode) == (CAMPAIGN, RELEASE) and one.question not in SEVERAL
    ],
    ids=str,
)
def test_what_does_not_go_with_a_campaign_is_refused_in_one_line(one: Choices, tmp_path: Path) -> None:
    with pytest.raises(DovetailError) as refused:
        draft_campaign(made(one, 80, order_rule(one, tmp_path))[0].signed)
    assert "\n" not in str(refused.value)
