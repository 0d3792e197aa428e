"""Several questions in one run: what is asked, released, estimated and promised, and what is refused."""

import json
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.job.surveys import survey
from tests.statistics import expect_caught, expect_mean, expect_standard_error, rng_of
from tests.tiers import EXHAUST
from typer.testing import CliRunner

from dovetail.account.amplify import amplify
from dovetail.account.compose import compose
from dovetail.account.questions import JointReport, OneQuestion
from dovetail.account.rounds import ShuffledRound
from dovetail.cli.main import app
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError, DovetailError, UnsupportedError
from dovetail.core.estimate import Estimate, Spread
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.job.build import build_noise, build_question
from dovetail.job.config import EstimateSection
from dovetail.job.evaluate import NOT_GROUPED, of_everybody
from dovetail.job.messages import draw_questions
from dovetail.job.questions import Answered, QuestionsCollection, evaluate_question, parse_questions
from dovetail.job.questions_plan import mean_inverse, plan_questions, predicted
from dovetail.job.run import run
from dovetail.leak.vulnerability import vulnerability
from dovetail.randomize.krr import KRR
from dovetail.randomize.window import Window
from dovetail.report.document import BayesLeakage
from dovetail.report.html import render_html

SECRET: dict[str, Any] = {"column": "secret", "categories": ["no", "yes"], "epsilon": 2.0}
HOURS: dict[str, Any] = {"column": "hours", "lower": 0.0, "upper": 10.0, "randomizer": "window", "epsilon": 1.0}
TOWN: dict[str, Any] = {"column": "town", "categories": ["north", "south"], "epsilon": 1.0}


def asked(ask: str, *questions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1, "mode": "rehearsal", "seed": 1, "ask": ask, "data": {"person": "id"},
        "questions": list(questions or (SECRET, HOURS)),
    }  # fmt: skip
    return {name: value for name, value in {**base, **changes}.items() if value is not None}


def released(ask: str, *questions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return asked(ask, *questions, mode="release", seed=None, **changes)


def collected(ask: str, *questions: dict[str, Any], table: pl.DataFrame, seed: int = 1) -> QuestionsCollection:
    return QuestionsCollection.of(parse_questions(asked(ask, *questions)), simulation(seed), table=table)


def one_door(rng: Any) -> Any:
    return lambda purpose: rng


def answers_to(collection: QuestionsCollection, table: pl.DataFrame) -> list[Any]:
    """The reports about each question, of a table that was released."""
    return [part.read(table) for part in collection.sent]


def evaluated(collection: QuestionsCollection, q: int, reports: Any, *, known: bool = False) -> Answered:
    part = collection.parts[q]
    return evaluate_question(
        part, part.noise.tally(reports), NOT_GROUPED, part.question.truth(part.survey.values) if known else None,
        drawn=len(reports) if collection.ask == "one" else None, wanted=EstimateSection(), provenance="simulation",
    )  # fmt: skip


PARTS = (KRR(2, 2.0), Window(0.0, 10.0, epsilon=1.0))
PROMISES = {
    "all": lambda n: compose([ShuffledRound.of(part, n) for part in PARTS], delta=1e-6).epsilon,
    "joint": lambda n: amplify(JointReport(PARTS), n=n, delta=1e-6).epsilon,
    "one": lambda n: amplify(OneQuestion(PARTS, (0.75, 0.25)), n=n, delta=1e-6).epsilon,
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some central guarantee, where a test is not about it."""

    def some(parts: Any, *, n: int, delta: float, **_: Any) -> CentralDP:
        return amplify(float(sum(part.guarantee.epsilon for part in parts)), n=n, delta=delta)

    monkeypatch.setattr("dovetail.job.questions.questions_guarantee", some)


@EXHAUST
@pytest.mark.parametrize("ask", [pytest.param("all", marks=EXHAUST), pytest.param("joint", marks=EXHAUST), "one"])
def test_a_person_has_one_budget_and_one_guarantee(ask: str) -> None:
    weighted = [{**SECRET, "weight": 3}, HOURS] if ask == "one" else [SECRET, HOURS]
    report = run(asked(ask, *weighted, promise={"honest": 500}), table=survey())
    central = report.evaluation.central
    assert isinstance(central, CentralDP) and (central.n, central.honest_n) == (600, 500)
    assert report.evaluation.local.epsilon == central.colluding == (2.0 if ask == "one" else 3.0)
    assert central.honest == PROMISES[ask](500) and central.all < central.honest
    assert ask == "all" or central.all == PROMISES[ask](600)  # a composition takes its time
    assert central.neighbours == "replace one person's answers to all questions"
    document = json.loads(json.dumps(report.document()))
    assert [one["column"] for one in document["questions"]] == ["secret", "hours"]
    assert document["estimates"]["overall"]["value"] is None and document["leakage"]["value"] is None
    shares, mean = (one["estimates"]["overall"] for one in document["questions"])
    assert shares["labels"] == ["no", "yes"] and mean["labels"] == ["mean"]
    assert mean["truth"] == pytest.approx([survey()["hours"].mean()])
    for each in (shares, mean):
        for value, error, truth in zip(each["value"], each["standard_error"], each["truth"], strict=True):
            assert abs(value - truth) < 6.2 * error  # false alarm below 1e-9
    page = render_html(document)
    assert "Estimates for everybody: secret" in page and "Estimates for everybody: hours" in page
    frame = report.to_polars()
    assert frame["group"].to_list() == ["secret", "secret", "hours"]


TRIALS = 1000  # standard errors a fifth off are seen


LOUD = [{**TOWN, "epsilon": 40.0}, {**TOWN, "column": "same", "epsilon": 40.0}]


def twins(n: int = 400) -> pl.DataFrame:
    """Two columns that hold the same answer, which local noise at epsilon 40 leaves alone."""
    towns = [["north", "south"][i % 2] for i in range(n)]
    return pl.DataFrame({"id": range(n), "town": towns, "same": towns, "row": [str(i) for i in range(n)]})


def test_answers_are_linked_in_a_joint_report_alone() -> None:
    apart = collected("all", *LOUD, table=twins()).release(simulation(2))
    joint = collected("joint", *LOUD, table=twins()).release(simulation(2))
    one = collected("one", *LOUD, table=twins()).release(simulation(2))
    assert apart.columns == joint.columns == one.columns == ["town.report", "same.report"]
    assert apart.height == joint.height == one.height == 400
    assert joint.filter(pl.col("town.report") != pl.col("same.report")).height == 0
    differ = apart.filter(pl.col("town.report") != pl.col("same.report")).height
    assert 140 <= differ <= 260  # hypergeometric, mean 200, standard deviation 10: false alarm below 1e-8
    assert apart["town.report"].sort().equals(apart["same.report"].sort().alias("town.report"))
    assert one.select(pl.all().is_null().cast(pl.Int8)).sum_horizontal().to_list() == [1] * 400
    names = one.select(pl.col("town.report").is_null()).to_series().to_list()
    assert sum(left != right for left, right in pairwise(names)) > 120  # mixed: mean 200, sd 10


def test_no_row_stands_where_the_people_stood() -> None:
    """Of the people in the random order that the collection itself has drawn, which a device's row would betray."""
    for ask in ("all", "joint", "one"):
        collection = collected(ask, *LOUD, table=twins())
        stood = [["north", "south"][code] for code in collection.parts[0].survey.values]
        found = collection.release(simulation(3))["town.report"].to_list()
        same = [one == other for one, other in zip(found, stood, strict=True) if one is not None]
        assert 0.2 < sum(same) / len(same) < 0.8  # about 200 or 400 of them, a half on average: 8 standard deviations


def test_the_answer_to_a_drawn_question_is_the_persons_own() -> None:
    collection = collected("one", *LOUD, table=twins())
    for seed in range(3):
        (message,) = collection.messages
        values = [part.survey.values for part in collection.parts]
        asked = draw_questions(collection.n, collection.weights, simulation(seed))
        sent = message.send(values, collection.parts[0].people, one_door(simulation(seed)), asked)
        drawn, made = sent["drawn"], message.columns(sent)
        assert 100 < np.count_nonzero(drawn) < 300  # 200 on average, standard deviation 10
        for q, name in enumerate(made.columns):
            own = [["north", "south"][code] for code in collection.parts[q].survey.values[drawn == q]]
            assert made[name].drop_nulls().to_list() == own


def test_questions_are_drawn_with_the_chances_of_their_weights() -> None:
    class Each:
        def below(self, bound: int, count: int) -> Any:
            assert count == bound
            return np.arange(bound)

    drawn = draw_questions(6, (1, 3, 2), Each())  # type: ignore[arg-type]
    assert np.bincount(drawn).tolist() == [1, 3, 2]


def test_the_error_for_everybody_is_that_of_drawing_without_replacement() -> None:
    values = np.array([0.0, 1.0, 1.0, 3.0, 5.0, 5.0])
    n, variance = values.size, values.var()
    for m in range(2, n + 1):
        means = [values[list(chosen)].mean() for chosen in combinations(range(n), m)]
        noise = 0.3 / m
        found = of_everybody(
            Estimate(np.array(0.0), np.array(noise**0.5), m, np.array((noise + variance / m) ** 0.5)), n
        )
        assert float(found.standard_error) ** 2 == pytest.approx(noise + np.var(means), rel=1e-12)
        assert np.mean(means) == pytest.approx(values.mean())


def test_score_intervals_for_everybody_hold_the_drawing() -> None:
    spread = Spread(np.array(0.1), np.array(0.2), np.array(0.0), np.array(0.0))
    share = Estimate(np.array(0.4), np.array(0.1), 10, np.array((0.01 + 0.024) ** 0.5), spread=spread)
    found = of_everybody(share, 19).spread
    assert found is not None and found.at_zero == 0.1
    assert found.slope == pytest.approx(0.25) and found.curvature == pytest.approx(0.05)


@EXHAUST
def test_estimates_of_one_question_each_are_unbiased_and_as_far_off_as_they_say() -> None:
    """Over draws of questions, noise and the number of answers."""
    table, rng = survey(300), rng_of("questions")
    collection = collected("one", SECRET, {**HOURS, "randomizer": "laplace", "epsilon": 4.0}, table=table)
    truth = np.array([(table["secret"] == "yes").mean(), table["hours"].mean()])
    found, alone = [], list[float]()  # errors without the drawing
    for _ in range(TRIALS):
        answers = answers_to(collection, collection.release(rng))
        alone.append(float(estimate_frequencies(KRR(2, 2.0), answers[0]).standard_error[-1]))
        both = [evaluated(collection, q, reports).estimates for q, reports in enumerate(answers)]
        found.append([(one.overall.value[-1], one.overall.standard_error[-1]) for one in both])  # type: ignore[union-attr]
    values, claimed = np.moveaxis(np.array(found), -1, 0)
    expect_mean(values, truth)
    expect_standard_error(values - truth, claimed)
    expect_caught(expect_standard_error, (values - truth)[:, 0], np.array(alone))


def test_a_guess_at_one_question_knows_not_who_answered_it() -> None:
    table = survey(40)
    collection = collected("one", SECRET, TOWN, table=table)
    reports = answers_to(collection, collection.release(simulation(4)))[0]
    m = len(reports)
    found = evaluated(collection, 0, reports, known=True).leakage
    assert isinstance(found, BayesLeakage) and 5 < m < 35 and f"{m}/40" in found.source
    alone = vulnerability(KRR(2, 2.0), n=m)
    assert found.randomized == pytest.approx(0.5 + m / 40 * (alone.randomized - 0.5))
    assert found.randomized_shuffled == pytest.approx(0.5 + m / 40 * (alone.randomized_shuffled - 0.5))


@EXHAUST
@pytest.mark.usefixtures("quick")
def test_a_question_that_hardly_anybody_draws_has_no_estimate() -> None:
    for rare in (SECRET, {**TOWN, "randomizer": "unary"}):
        report = run(asked("one", rare, {**HOURS, "weight": 1000}), table=survey(40))
        first = report.document()["questions"][0]
        assert first["answers"] < 2 and "too few" in first["estimates"]["reason"]
        assert "too few" in render_html(report.document())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ask", ["all", pytest.param("joint", marks=EXHAUST), pytest.param("one", marks=EXHAUST)])
def test_a_release_is_drawn_once_and_read_back(ask: str, tmp_path: Path) -> None:
    given = released(ask, SECRET, HOURS, {**TOWN, "randomizer": "unary"})
    first, again = (run(given, table=survey(), ledger=tmp_path) for _ in range(2))
    assert first.sanitized.equals(again.sanitized) and first.sanitized.height == 600
    assert first.document()["questions"] == again.document()["questions"]
    assert first.sanitized.columns == ["secret.report", "hours.report", "town.report_0"]
    assert all("truth" not in one["estimates"]["overall"] for one in first.document()["questions"])
    assert "Release" in render_html(first.document())
    assert first.release["total_epsilon"] == (2.0 if ask == "one" else 4.0)
    with pytest.raises(DovetailError, match="other terms"):
        run(released("joint" if ask == "all" else "all", SECRET, HOURS, TOWN), table=survey(), ledger=tmp_path)
    second = run(given, table=survey(), ledger=tmp_path, new_release=True)
    assert second.release["total_epsilon"] == 2 * first.release["total_epsilon"]
    told = second.document()
    assert told["central"]["epsilon"] == pytest.approx(2 * first.document()["central"]["epsilon"])
    assert all(one["leakage"]["value"] is None for one in told["questions"])


@EXHAUST
@pytest.mark.usefixtures("quick")
def test_other_answers_to_one_question_are_another_table(tmp_path: Path) -> None:
    given = released("joint")
    run(given, table=survey(), ledger=tmp_path)
    moved = survey().with_columns((10.0 - pl.col("hours")).alias("hours"))
    assert run(given, table=moved, ledger=tmp_path).release["releases"] == 2
    assert run(given, table=survey().reverse(), ledger=tmp_path).release["number"] == 1


@pytest.mark.usefixtures("quick")
def test_a_column_that_was_released_alone_counts_with_the_others(tmp_path: Path) -> None:
    alone = {
        "schema_version": 1, "mode": "release", "randomize": {"epsilon": 1.5},
        "data": {"private": "secret", "person": "id", "categories": ["no", "yes"]},
    }  # fmt: skip
    run(alone, table=survey(), ledger=tmp_path)
    assert run(released("all"), table=survey(), ledger=tmp_path).release["total_epsilon"] == 4.5


@EXHAUST
@pytest.mark.usefixtures("quick")
def test_releases_of_everybody_in_two_tables_promise_no_order_together(tmp_path: Path) -> None:
    """Everybody here is not everybody there: the promises about order are about other groups."""
    run(released("one"), table=survey(), ledger=tmp_path)
    answers = survey().with_columns(secret=pl.col("secret").reverse())
    alphas = [
        run(released("one"), table=table, ledger=tmp_path).evaluation.order.guarantee.alpha
        for table in (answers, answers.head(500))
    ]
    assert alphas == [0.0, float("inf")]


WRONG: list[tuple[dict[str, Any], str]] = [
    (asked("all", SECRET, SECRET), r"\[\[questions\]\] ask for column 'secret' twice"),
    (asked("all", SECRET), r"\[\[questions\]\] must stand 2 to 16 times, got 1"),
    (asked("both", SECRET, HOURS), r"`ask` must be 'all', 'joint' or 'one', got 'both'"),
    (asked("all", SECRET, {"epsilon": 1.0}), r"question 2: `column` must name the column to protect, got None"),
    (asked("all", SECRET, {"column": "hours", "lower": 0.0, "upper": 9.0, "randomizer": "window"}),
     r"question 2 \('hours'\): `epsilon` is missing"),
    (asked("all", SECRET, {**HOURS, "randomizer": "krr"}), r"question 2 \('hours'\): randomizer 'krr' does not fit"),
    (asked("all", SECRET, {**HOURS, "epsilom": 1.0}), r"question 2 \('hours'\): unknown key `epsilom`; did you mean"),
    (asked("all", SECRET, {**HOURS, "upper": -1.0}), r"question 2 \('hours'\): `lower` must be below `upper`"),
    (asked("all", SECRET, {**TOWN, "column": "id"}), r"question 2 \('id'\): column 'id' has more than one role"),
    (asked("all", SECRET, {**HOURS, "weight": 2}), "`weight` goes with `ask` = \"one\""),
    (asked("one", SECRET, {**HOURS, "weight": 0}), "`weight` must be a whole number, 1 to 1,000, got 0"),
    (asked("all", SECRET, {**TOWN, "by": "age", "epsilons": {"20": 1.0}}), "column 'age' is not listed in `public`"),
    (asked("joint", SECRET, {**TOWN, "by": "age", "epsilons": {"20": 1.0}}, data={"public": ["age"]}),
     "an epsilon by class hides one answer: amplification of a mixture"),
    (asked("all", data={"private": "secret"}), r"\[data\] private does not go with .* give `column` in each of them"),
    (asked("all", data={"lower": 0.0}), r"\[data\] lower does not go with .* give `lower` in each of them"),
    (asked("all", data={"public": ["age"]}), r"\[data\] public does not go with \[\[questions\]\]"),
    (asked("all", data={"labels": {"age": {"": "0"}}}), r"\[data.labels\] column 'age' is not asked for"),
    (asked("all", data={"persn": "id"}), "unknown key `data.persn`; did you mean 'person'"),
    (asked("all", shuffle={"shuffler": "mallows", "groups": {"labels": "town"}}), "shuffler 'mallows' needs `alpha`"),
    (released("all", shuffle={"shuffler": "identity"}), "a release must shuffle"),
    (asked("all", strings={"epsilon": 1.0}), r"\[strings\] does not go with \[\[questions\]\]"),
    (asked("joint", SECRET, {"column": "town", "categories": ["north", "south"]},
           promise={"trust": "shuffler", "epsilon": 1.0}),
     "`epsilon` of a question does not go with all answers in one report among dummies"),
    (asked("all", HOURS, {"column": "town", "categories": ["north", "south"]},
           promise={"trust": "shuffler", "epsilon": 1.0}),
     "goes without a randomizer for numbers: they are rounded"),
    (asked("all", promise={"cap": 3.0}), r"\[promise\] cap is for streams"),
    (asked("all", mode="release"), "a release draws from the operating system and refuses `seed`"),
    (released("all", SECRET, {"column": "town", "epsilon": 1.0}), "a release must declare `categories`"),
    (asked("all", promise={"honest": 601}), "`promise.honest` must be at most the 600 people"),
    (asked("all") | {"questions": {"column": "secret"}}, r"`questions` must be tables, each headed \[\[questions"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[words[:40] for _, words in WRONG])
def test_what_does_not_go_with_several_questions_is_refused_in_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        run(given, table=survey())
    assert "\n" not in str(refused.value)


def test_a_column_that_the_table_has_not_is_named() -> None:
    with pytest.raises(DataError, match="the table has no column 'secrt'; did you mean 'secret'"):
        run(asked("all", {**SECRET, "column": "secrt"}, HOURS), table=survey())
    with pytest.raises(UnsupportedError, match="one person is shuffled with nobody"):
        run(asked("all"), table=survey(1))


@pytest.mark.usefixtures("quick")
def test_the_command_line_runs_and_refuses_several_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey().write_csv("survey.csv")
    Path("asked.toml").write_text(
        'schema_version = 1\nmode = "release"\nask = "one"\n[data]\npath = "survey.csv"\nperson = "id"\n'
        '[[questions]]\ncolumn = "secret"\ncategories = ["no", "yes"]\nepsilon = 1.0\n'
        '[[questions]]\ncolumn = "hours"\nlower = 0\nupper = 10\nrandomizer = "laplace"\nepsilon = 1.0\n'
    )
    runner = CliRunner()
    made = runner.invoke(app, ["run", "asked.toml", "--ledger", "private", "--full"])
    assert made.exit_code == 0 and "What hours tells" in made.output and "drawn by chance" in made.output
    released_table = pl.read_parquet("asked-report/sanitized.parquet")
    assert released_table.columns == ["secret.report", "hours.report"]
    refused = runner.invoke(app, ["estimate", "asked-report/sanitized.parquet"])
    assert isinstance(refused.exception, DovetailError) and "questions" in str(refused.exception)


@EXHAUST
def test_a_plan_says_of_every_way_to_ask_what_run_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cheap(parts: Any, *, ask: str, n: int, delta: float, honest: int | None, weights: Any = ()) -> CentralDP:
        said = 1.0 + 0.1 * len(ask) + 0.01 * (honest or 0) / n + 0.001 * sum(weights)
        return amplify(said, n=n, delta=delta)

    for module in ("questions", "questions_plan"):
        monkeypatch.setattr(f"dovetail.job.{module}.questions_guarantee", cheap)
    weights = [{**SECRET, "weight": 3}, HOURS]
    ways = plan_questions(parse_questions(asked("one", *weights, promise={"honest": 500})), 600)
    assert [(way.ask, way.messages) for way in ways] == [("all", 2), ("joint", 1), ("one", 1)]
    for way in ways:
        given = asked(way.ask, *(weights if way.ask == "one" else (SECRET, HOURS)), promise={"honest": 500})
        report = run(given, table=survey())
        assert isinstance(report.evaluation.central, CentralDP)
        assert report.evaluation.central.epsilon == way.central.epsilon
        for one, planned in zip(report.document()["questions"], way.questions, strict=True):
            made, error = one["estimates"]["overall"], one["estimates"]["overall"]["standard_error"][-1]
            assert abs(made["n"] - planned.expected) <= 6 * (600 * 3 / 16) ** 0.5  # false alarm below 1e-8
            assert 0.4 * planned.accuracy.standard_error < error < 1.25 * planned.accuracy.standard_error


PAIR: dict[str, Any] = {
    "column": "hours", "lower": 0.0, "upper": 10.0, "ask": "covariance", "other": "age", "other_lower": 20.0,
    "other_upper": 24.0,
}  # fmt: skip


@EXHAUST
@pytest.mark.parametrize("trust", ["shuffler", "users"])
def test_a_plan_of_questions_behind_dummies_is_what_run_says(trust: str) -> None:
    """Whatever the file says of `ask`; covariances say their own error."""
    open_ones = [{key: value for key, value in SECRET.items() if key != "epsilon"}, PAIR]
    promise = {"trust": trust, "epsilon": 4.0, "delta": 1e-2}
    ways = {way.ask: way for way in plan_questions(parse_questions(asked("all", *open_ones, promise=promise)), 600)}
    other = plan_questions(parse_questions(asked("one", *open_ones, promise=promise)), 600)
    assert other == tuple(ways.values())
    for ask in ("all", "one"):
        given = asked(ask, *open_ones, promise=promise)
        report, way = run(given, table=survey()), ways[ask]
        assert isinstance(report.evaluation.central, CentralDP)
        assert way.central.epsilon == report.evaluation.central.epsilon
        assert [one.measure for one in way.questions] == ["share", "covariance"]
        for one, planned in zip(report.document()["questions"], way.questions, strict=True):
            error = one["estimates"]["overall"]["standard_error"][-1]
            assert 0.2 * planned.accuracy.standard_error < error < 1.1 * planned.accuracy.standard_error


@EXHAUST
def test_a_covariance_is_planned_beside_a_share_by_its_own_error() -> None:
    loud = {**PAIR, "epsilon": 4.0}
    ways = plan_questions(parse_questions(asked("one", SECRET, loud)), 10_000)
    part = ways[0].questions[1]
    made = parse_questions(asked("one", SECRET, loud)).questions[1].settings
    question = build_question(made, None)
    alone = question.error(build_noise(made, question, n=10_000), People(10_000, pl.DataFrame()))
    assert part.measure == "covariance" and part.accuracy.standard_error == pytest.approx(alone)
    drawn = ways[2].questions[1]
    assert drawn.expected == 5000.0 and drawn.accuracy.standard_error > 1.4 * alone  # half of the people


def test_a_plan_does_not_know_how_many_people_each_class_has() -> None:
    by = {**TOWN, "by": "age", "epsilons": {"20": 1.0}}
    with pytest.raises(ConfigError, match="how many people each class has"):
        plan_questions(parse_questions(asked("all", SECRET, by, data={"public": ["age"]})), 600)


@pytest.mark.exhaust
def test_the_planned_error_of_a_drawn_question_is_the_mean_over_numbers_of_answers() -> None:
    krr, n, share = KRR(2, 1.0), 6, 0.25
    alone = predict_accuracy(krr, n=1)
    noise, total, planned = alone.standard_error**2, 0.0, 0.0
    for drawn in product((False, True), repeat=n):
        if (m := sum(drawn)) > 0:
            chance = share**m * (1 - share) ** (n - m)
            total += chance
            planned += chance * (noise + (n - m) / (n - 1) * 0.25) / m
    found = predicted(krr, n, share)
    assert found.standard_error**2 == pytest.approx(planned / total, rel=1e-9)
    assert predicted(krr, n, 1.0) == predict_accuracy(krr, n=n)
    assert mean_inverse(10**12, 0.5) == pytest.approx(2e-12, rel=1e-9)


@pytest.mark.usefixtures("quick")
def test_the_command_line_plans_several_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    some = amplify(1.0, n=10_000, delta=1e-6)
    monkeypatch.setattr("dovetail.job.questions_plan.questions_guarantee", lambda *_, **__: some)
    text = (
        'schema_version = 1\nmode = "rehearsal"\nask = "one"\n[data]\npath = "no.csv"\n'
        '[[questions]]\ncolumn = "secret"\ncategories = ["no", "yes"]\nepsilon = 1.0\n'
        '[[questions]]\ncolumn = "hours"\nlower = 0\nupper = 10\nrandomizer = "window"\nepsilon = 1.0\n'
    )
    Path("asked.toml").write_text(text)
    runner = CliRunner()
    told = json.loads(runner.invoke(app, ["plan-questions", "asked.toml", "--n", "1e4", "--json"]).output)
    assert told["ask"] == "one" and told["ways"]["one"]["questions"][1]["answers"] == 5000.0
    trusting = (
        text.replace('ask = "one"', 'ask = "all"')
        .replace("epsilon = 1.0\n", "")
        .replace('randomizer = "window"\n', "")
    )
    Path("trusting.toml").write_text(trusting + '[promise]\ntrust = "shuffler"\nepsilon = 1.0\n')
    behind = json.loads(runner.invoke(app, ["plan-questions", "trusting.toml", "--n", "1e4", "--json"]).output)
    assert [*behind["ways"]] == ["all", "joint", "one"] and behind["ways"]["all"]["questions"][0]["epsilon0"] == "inf"
    assert behind["honest"] == 10_000 and not any("assumed honest" in note for note in behind["notes"])
    shown = runner.invoke(app, ["plan-questions", "asked.toml", "--n", "1e4"]).output
    assert "± secret" in shown and "one each, drawn" in shown
    Path("open.toml").write_text(text.replace('categories = ["no", "yes"]\n', ""))
    Path("single.toml").write_text('schema_version = 1\nmode = "rehearsal"\n[data]\nprivate = "x"\n')
    for name, words in (("open", "a plan needs its `categories`"), ("single", r"has no [[questions]]")):
        refused = runner.invoke(app, ["plan-questions", f"{name}.toml", "--n", "1e4"])
        assert isinstance(refused.exception, ConfigError) and words in str(refused.exception)
    with pytest.raises(ConfigError, match=r"`promise\.honest` must be at most n = 10"):
        plan_questions(parse_questions(asked("all", promise={"honest": 11})), 10)
