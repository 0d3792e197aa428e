"""Terms of a campaign as this package reads them: its draft, its versions, its shuffler and its dummies."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from dovetail.account.dummies import UserDummiesLaw, dummies_delta, user_dummies_for
from dovetail.account.gaussian_dummies import Message
from dovetail.account.questions import JointReport, OneQuestion
from dovetail.collect.batch import BY_CHANCE, SQUARED
from dovetail.core.checks import MOST_PEOPLE
from dovetail.core.errors import ConfigError, DovetailError, ParameterError
from dovetail.core.noise import NOISES, Noise, People
from dovetail.core.question import DROWNED, MOST_KINDS, QUESTIONS, Question
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS, NumericRandomizer, Randomizer, Shuffler
from dovetail.job.build import build_shuffler, open_answer, public_data
from dovetail.job.collection import AnyDummies, noise_of
from dovetail.job.config import GroupsSection, QuestionSection, ShuffleSection, files_of
from dovetail.job.together import CAMPAIGN, RELEASE, Choices
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local
from dovetail.noise.memoized import Memoized
from dovetail.noise.shuffler import DummyNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers, from_device, randomizer_kind
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SeveralDummies,
    SparseDummies,
    TruncatedGaussian,
    UserDummies,
)
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.reader import Survey, read_table
from dovetail_protocol import mechanism as protocol_mechanism
from dovetail_protocol.asked import Asked, AskedTogether, Symbol, Value
from dovetail_protocol.campaign import Campaign, draft
from dovetail_protocol.dummies import SCALE, DigitsRule, DummiesRule, SentRule, Unrandomized
from dovetail_protocol.joint import Drawn, Several
from dovetail_protocol.mechanism import Mechanism
from dovetail_protocol.messages import inner_bytes, require_room

# What a campaign asks and what hides it, as the question and the noise that a run has.


def question_of(campaign: Campaign) -> Question:
    """The question of a campaign of one: as [asks] says, or shares or the mean of a number by the randomizer."""
    asked, mechanism, name = campaign.asked, campaign.mechanism, f"the campaign {campaign.id}"
    assert not isinstance(asked, AskedTogether)  # of `campaign.questions` each by itself
    if asked is None:
        k = getattr(mechanism, "k", None)
        if k is not None and k > MOST_KINDS:
            raise ConfigError(f"{name}: its answers are told one by one, and are {MOST_KINDS:,} at most, got {k:,}.")
        if k is not None:
            return QUESTIONS["shares"].of(None, campaign.categories or tuple(map(str, range(k))))
        own: Any = mechanism
        return QUESTIONS["number"].of(DataSection(private="answer", lower=own.lower, upper=own.upper), None)
    first = asked.values[0]
    column: dict[str, Any] = {} if first.length else {"lower": first.lower, "upper": first.upper}
    if first.categories:
        column = {"categories": list(first.categories)}
    elif first.missing:
        column["missing"] = first.missing
    return question_about(asked.question, {"private": first.name, **column}, asked.settings, name=name)


def question_about(ask: str, column: Mapping[str, Any], settings: Mapping[str, Any], *, name: str) -> Question:
    """The question of this name about a column as [data] declares it, by the settings of [question] in a run."""
    kind = QUESTIONS[ask]
    if kind.of_arrays and set(column) != {"private"}:
        raise ConfigError(f"{name}: {kind.label} takes arrays, which have no categories and no range.")
    data = parse_section(DataSection, dict(column), name=name, at="asks.values")
    section = parse_section(QuestionSection, {"ask": ask, **settings}, name=name, at="asks.settings")
    if data.numeric != kind.of_numbers:
        wanted = "`lower` and `upper`" if kind.of_numbers else "`categories`"
        raise ConfigError(f"{name}: {kind.label} needs {wanted}.")
    try:
        return kind.of(data, data.categories, **section.settings_of(kind))
    except ParameterError as error:
        raise ConfigError(f"{name}: [asks] {error}") from None


def asked_of(
    question: Question, *, private: str, settings: Mapping[str, Any], k: int | None, digits: int = 0
) -> Asked:
    """The table [asks] of a question about these columns, whose answers are `k` symbols, or what people hold.

    digits : ternary ones in which a number is sent, where it is.
    """
    if question.unsent:
        raise ConfigError(f"{question.label} is in no campaign: {question.unsent}.")
    columns = {private: question.column.get("categories") or tuple(question.column.values()), **question.further}
    values = tuple(
        Value(name, length=question.domain["d"])
        if question.of_arrays
        else Value(name, categories=tuple(held))
        if isinstance(held[0], str)
        else Value(name, float(held[0]), float(held[1]), missing="".join(held[2:]))
        for name, held in columns.items()
    )
    if digits and question.needs != "mean":
        raise ConfigError(f"{question.label}: {NOISES['digits'].unfit[question.needs]}.")
    symbols = question.device_symbols(tuple(columns), 3**digits if digits else k)
    if symbols and digits:
        symbols = tuple(Symbol(tuple(replace(part, rounding="digits") for part in one.parts)) for one in symbols)
    if symbols is None:
        raise ConfigError(f"with these settings no device can make the symbols of {question.label}.")
    return Asked(question.name, dict(sorted(settings.items())), values, symbols)


def forms_of(mechanism: Mechanism) -> tuple[Any, ...]:
    """The analyst's randomizers of a device's mechanism: one for each question."""
    return tuple(map(from_device, mechanism.parts if isinstance(mechanism, Several) else (mechanism,)))


def subject_of(campaign: Campaign) -> Randomizer | JointReport | OneQuestion:
    """The randomizer that accounts are about: of a report, of all answers in it, or of the one that was drawn."""
    forms, own = forms_of(campaign.mechanism), campaign.mechanism
    if isinstance(own, Drawn):
        return OneQuestion(forms, tuple(weight / sum(own.weights) for weight in own.weights))
    return JointReport(forms) if len(forms) > 1 else forms[0]


def noise_of_campaign(campaign: Campaign, question: Question, *, senders: int = 0) -> Noise:
    """The noise that hides the answers.

    senders : how many people send dummies, where they do and draw a question; as many as the campaign expects if 0.
    """
    own: Any = from_device(campaign.mechanism)
    if campaign.classes:
        epsilons = {each.name: each.epsilon for each in campaign.classes}
        return EpsilonClasses(own.k, "class", epsilons, own.epsilon)
    stated = added_dummies(campaign) or people_dummies(campaign, senders=senders)
    dummies: AnyDummies | None = stated
    if campaign.combinations:
        whole = noise_of(OpenAnswers(campaign.combinations), dummies)
        assert isinstance(whole, DummyNoise)
        return whole.marginal(open_answer(question, points=getattr(campaign.mechanism, "k", 0)))
    if stated is not None and campaign.open:
        points = stated.k
        if isinstance(stated, SeveralDummies):
            dummies, points = Message.of(stated.noises), 3**stated.messages
        own = OpenAnswers(points)
        if question.needs == "mean":
            low, high = question.span or (0.0, 0.0)
            own = OpenNumbers(low, high, points)
    try:
        found = noise_of(own, dummies, symbols=question.symbols)
    except ParameterError as error:
        raise ConfigError(f"the campaign {campaign.id}: {error}") from None
    return Memoized(found, campaign.schedule.count) if campaign.memoized else found


def too_few(campaign: Campaign, ratio: float) -> str | None:
    """That noise leaves no more of the smallest batch than this, as a run says it; of classes sizes are not known."""
    question, people = question_of(campaign), People(campaign.batch.minimum)
    return None if campaign.classes else question.too_few(noise_of_campaign(campaign, question), people, ratio)


def require_question(campaign: Campaign) -> None:
    """ConfigError where [asks] is not what its questions ask, or goes with no such noise or order."""
    for one in campaign.questions:
        _require_one(one)
        if (isinstance(campaign.mechanism, Drawn) or campaign.draws) and not (asked := question_of(one)).of_samples:
            raise ConfigError(f"the campaign {campaign.id}: {asked.label} is asked of everybody, and not drawn.")
    if isinstance(campaign.asked, AskedTogether) and campaign.open:
        first = campaign.questions[0]
        _require_choices(campaign, campaign.asked.question, noise_of_campaign(first, question_of(first)).name)
    if isinstance(campaign.mechanism, Several):
        _require_choices(campaign, campaign.mechanism.name, Memoized.name if campaign.memoized else Local.name)
        for own in forms_of(campaign.mechanism):
            if isinstance(own, NumericRandomizer) and not own.memoryless:
                raise ConfigError(
                    f"the campaign {campaign.id}: randomizer {own.name!r} goes with one question; use laplace."
                )


def _require_one(campaign: Campaign) -> None:
    asked, mechanism = campaign.asked, campaign.mechanism
    if asked is None:
        if campaign.memoized:
            _require_choices(campaign, question_of(campaign).name, Memoized.name)
        return
    assert not isinstance(asked, AskedTogether)
    question, name = question_of(campaign), f"the campaign {campaign.id}"
    k = getattr(mechanism, "k", None)
    wanted = asked_of(question, private=asked.values[0].name, settings=asked.settings, k=k, digits=asked.digits)
    if asked != wanted:
        raise ConfigError(f"{name}: [asks] has other values or symbols than {question.label} with these settings.")
    kind = None if campaign.open else randomizer_kind(mechanism.name)
    if kind is not None and kind.question != question.needs:
        raise ConfigError(f"{name}: randomizer {mechanism.name!r} does not go with {question.label}.")
    for key, value in question.domain.items():
        if value is not None and (own := getattr(mechanism, key, value)) != value:
            raise ConfigError(f"{name}: `randomizer.{key}` is {own!r}, and {question.label} asks for {value!r}.")
    if kind is not None and question.needs_names and not getattr(kind, "names_values", False):
        raise ConfigError(f'{name}: {question.label} needs reports that name an answer: use randomizer "krr".')
    if question.needs == "mean" and campaign.dummies and not campaign.open:
        raise ConfigError(f'{name}: {question.label} goes with dummies and `randomizer.name` = "none".')
    _require_choices(campaign, question.name, noise_of_campaign(campaign, question).name)


def _require_choices(campaign: Campaign, question: str, noise: str) -> None:
    refusal = Choices(question, noise, campaign.shuffle.shuffler, CAMPAIGN, RELEASE).refusal
    if refusal is not None:
        raise ConfigError(f"the campaign {campaign.id}: {refusal}.")


# The [shuffle] table of a campaign, checked by the schema that the same table of `dovetail run` has.


def shuffle_section(campaign: Campaign) -> ShuffleSection:
    """The [shuffle] table as `dovetail run` reads it, without the public table, which only a campaign has.

    Raises
    ------
    ConfigError
        One line that names the campaign, what is wrong and the nearest known key.
    """
    rule, name = campaign.shuffle, f"the campaign {campaign.id}"
    raw: dict[str, Any] = {**rule.settings, "shuffler": rule.shuffler, "alpha": rule.alpha}
    if rule.groups:
        raw["groups"] = rule.groups
    try:
        section = parse_section(ShuffleSection, raw, name=name, at="shuffle")
    except ConfigError as error:
        raise ConfigError(str(error).splitlines()[0]) from None  # the first fault; an odd key may hold more lines
    if objection := _objection(section):
        raise ConfigError(f"{name}: [shuffle] {objection}.")
    return section


def _objection(section: ShuffleSection) -> str:
    """The objection that only a campaign has: it shuffles once, by the public table that its owner has signed."""
    if not SHUFFLERS[section.shuffler].moves_reports:
        return f'a campaign must shuffle: `shuffler` "{section.shuffler}" would tell who sent what'
    if section.compare:
        return "`compare` is for rehearsals; remove it"
    for key, file in files_of(section).items():
        if file is not None:
            return f"`{key}` names a file that the owner does not sign; use `groups` of the `public` table"
    if section.groups is not None and section.groups.files:
        return "`groups` name a file that the owner does not sign; use columns of the `public` table"
    return ""


# The dummies of a campaign whose shuffler is trusted with the noise: both servers read them off the signed file.


MOST = 1_000_000  # dummies of a batch on average; each is sealed by itself
Law = tuple[int, ...]
ShufflerDummies = Dummies | GaussianDummies | SeveralDummies | SparseDummies


def added_dummies(campaign: Campaign) -> ShufflerDummies | None:
    """Dummies that the shuffler adds to each batch; None where it adds none.

    Raises
    ------
    ConfigError
        Where this program would add others than the file says: it is of another version than who drafted it.
    """
    rule = campaign.dummies
    if rule is None:
        return None
    mechanism: Any = campaign.mechanism
    try:
        dummies = _dummies_of(rule, campaign.combinations or mechanism.k)
    except ParameterError as error:
        raise ConfigError(f"in [dummies]: {error}") from None
    if isinstance(dummies, SparseDummies):
        made = float(dummies.kept), float(dummies.more)
        if rule.by_chance != made:
            raise ConfigError(
                f"the campaign {campaign.id} asks for `kept` and `more` of {rule.by_chance}, and this version of "
                f"dovetail would take {made} for epsilon {rule.epsilon:g}: it was drafted for another version."
            )
    elif not isinstance(rule, DigitsRule) and dummies.reach != rule.reach:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {rule.reach:,} dummies of each answer on average, and this version "
            f"of dovetail would add {dummies.reach:,}: it was drafted for another version."
        )
    if dummies.total > MOST:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {round(dummies.total):,} dummies in each batch, more than "
            f"{MOST:,}: join answers."
        )
    return dummies


@lru_cache(maxsize=64)
def _dummies_of(rule: DummiesRule, k: int) -> ShufflerDummies:
    """Sparse and geometric dummies follow from what they promise; Gaussian ones are stated, and have to keep it."""
    if rule.by_chance:
        return SparseDummies(k, rule.epsilon)
    if rule.variance is None:
        return Dummies(k, rule.epsilon, rule.delta)
    reaches = rule.reaches if isinstance(rule, DigitsRule) else (rule.reach,)
    message = Message(rule.variance, tuple(3**digit for digit in range(len(reaches))), reaches)
    if dummies_delta(message, rule.epsilon) > rule.delta:
        raise ConfigError(
            f"in [dummies]: `variance` {rule.variance} and `reach{'es' if len(reaches) > 1 else ''}` "
            f"{', '.join(f'{reach:,}' for reach in reaches)} do not keep epsilon {rule.epsilon:g} with delta "
            f"{rule.delta:g}."
        )
    if isinstance(rule, DigitsRule):
        return SeveralDummies(message.laws, (3,) * len(reaches), k // (3 * len(reaches)))
    return GaussianDummies(k, message.laws[0])


def law_of(dummies: ShufflerDummies) -> Law:
    """Distribution of a batch's dummies as it is stated: numerator, denominator, reach, and 2 of Gaussian ones.

    Of digits: of the last one, and then the reaches of the others.
    Of sparse ones: `kept` and `more` as multiples of 2^-32, which comes third, and 0.
    """
    if isinstance(dummies, SparseDummies):
        return int(dummies.kept * SCALE), int(dummies.more * SCALE), SCALE, BY_CHANCE
    noise, *others = dummies.noises if isinstance(dummies, SeveralDummies) else (dummies.noise,)
    if isinstance(noise, TruncatedGaussian):
        more = [law.reach for law in others]
        return noise.scale.numerator, noise.scale.denominator, noise.reach, SQUARED, *more
    return noise.numerator, noise.denominator, noise.reach


def readable_people(campaign: Campaign, devices: int, unreadable: int, *, each: int = 1) -> int:
    """How many of the devices sent what can be read, where entries cannot be, of which each bad one sent so many.

    Where reports are in the batch by chance, as many bad ones were left out beside those that were seen.
    """
    dummies = added_dummies(campaign)
    kept = Fraction(1) if dummies is None else dummies.kept
    return max(0, devices - ceil(unreadable / (each * kept)))


# The dummies of a campaign whose people make the noise: both servers read them off the file, and check them.


SLIP = 1e-9  # relative: the decimals of a file


def people_dummies(campaign: Campaign, *, senders: int = 0) -> UserDummies | None:
    """Messages that every device of the campaign sends; None where devices send no dummies.

    senders : as of `noise_of_campaign`.

    Raises
    ------
    ConfigError
        Where so many honest people are too few to hide anybody with these messages each, or send too few dummies for
        what the file promises.
    """
    rule, mechanism = campaign.sent, campaign.mechanism
    if rule is None or not isinstance(mechanism, Unrandomized):
        return None
    if campaign.among is not None and (whole := people_dummies(campaign.among)) is not None:
        return whole.restricted(mechanism.k, senders=senders or campaign.among.batch.minimum)
    assert campaign.promise.assumed_honest is not None  # a campaign without it is none
    k = campaign.combinations or mechanism.k
    wrong = _what_is_wrong(rule, k, campaign.promise.assumed_honest, campaign.symbols)
    if wrong:
        raise ConfigError(f"in [dummies]: {wrong}")
    return UserDummies(k, rule.rate)


def count_messages(sent: UserDummies, counts: Iterable[tuple[int, int]]) -> int:
    """Answers and dummies among symbols with their numbers."""
    return sum(count for symbol, count in counts if symbol < sent.k)  # the others are blank


@lru_cache(maxsize=256)
def _what_is_wrong(rule: SentRule, k: int, honest: int, symbols: int) -> str:
    """Empty where the dummies of so many people keep what the rule promises."""
    try:
        sent = UserDummies(k, rule.rate)
        if UserDummiesLaw(k, honest, sent.rate, symbols).epsilon(rule.delta) <= rule.epsilon * (1.0 + SLIP):
            return ""
        asked = user_dummies_for(k=k, epsilon=rule.epsilon, delta=rule.delta, honest=honest, symbols=symbols)
    except ParameterError as error:
        return str(error)
    return (
        f"`rate` must be at least {asked.rate!r}, so that the dummies of {honest:,} honest people keep epsilon "
        f"{rule.epsilon:g}, got {rule.rate!r}."
    )


# A campaign that its owner has not signed yet, checked as devices and servers will check it.


def draft_campaign(body: bytes) -> Campaign:
    """The campaign of a file, signed or not, without a look at its signature; ConfigError says what is wrong."""
    name = _randomizer_name(body)
    if isinstance(name, str):
        require_device_form(name)
    campaign = draft(body)
    if campaign.batch.minimum > MOST_PEOPLE:
        raise ConfigError(f"`batch.minimum` must be at most {MOST_PEOPLE:,}, got {campaign.batch.minimum:.3g}.")
    shuffle_section(campaign)
    added_dummies(campaign)
    people_dummies(campaign)
    require_question(campaign)
    require_room(campaign)
    for one in campaign.questions:
        if question_of(one).drowns and (told := too_few(one, DROWNED)) is not None:
            raise ConfigError(f"`batch.minimum`: {told}.")
    return campaign


def require_device_form(name: str) -> None:
    """Refuse a randomizer that the analyst knows but no device can run; other names are for others to judge."""
    known = protocol_mechanism.names()
    if name in (*RANDOMIZERS.names(), *VECTOR_RANDOMIZERS.names()) and name not in known:
        alike = [one for one in known if randomizer_kind(one).question == randomizer_kind(name).question]
        raise ConfigError(
            f"randomizer {name!r} has no form for devices, so no campaign can use it; take one of {', '.join(alike)}."
        )


def _randomizer_name(body: bytes) -> Any:
    """The name in [randomizer]; None in what is no campaign."""
    try:
        return tomllib.loads(body.decode())["randomizer"]["name"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


# What versions of one campaign must share: both servers refuse the same ones, in the same words.


SHARED = (
    *("mechanism", "categories", "groups", "classes", "schedule", "batch", "shuffle", "promise", "dummies", "sent"),
    "asked",
    "memoized",
    "suite",
    "tokens",
)


def require_same_terms(older: Campaign, newer: Campaign) -> None:
    """A new version changes keys, endpoints and expiry; everything that rounds and promises rest on stays."""
    if older.version == newer.version:
        raise ConfigError(
            f"two files are version {newer.version} of the campaign {newer.id}; serve the one that its owner means."
        )
    if not newer.descends_from(older.owner):
        raise ConfigError(
            f"`owner` differs between the versions {older.version} and {newer.version} of the campaign {newer.id}, "
            "and the older one has signed no hand-over to the newer; `dovetail collect hand-over` makes one."
        )
    for name in SHARED:
        if getattr(older, name) != getattr(newer, name):
            raise ConfigError(
                f"`{name}` differs between the versions {older.version} and {newer.version} of the campaign "
                f"{newer.id}; give the changed campaign another id."
            )
    if (older.ohttp is None) != (newer.ohttp is None):
        raise ConfigError(
            f"one of the versions {older.version} and {newer.version} of the campaign {newer.id} has [ohttp] and the "
            "other has not, so that devices would begin or cease to show their addresses; give it another id."
        )
    if inner_bytes(older) != inner_bytes(newer):
        raise ConfigError(
            f"reports of the versions {older.version} and {newer.version} of the campaign {newer.id} have different "
            "lengths and cannot share a batch; give the changed campaign another id."
        )


# The shuffler of an order-private campaign, fitted to the public table that the campaign names.


def fit(campaign: Campaign, folder: Path) -> Shuffler | None:
    """The shuffler over all roster slots; None where the campaign shuffles uniformly.

    The table stands beside the campaign file, in `folder`; row i is roster slot i. Its SHA-256 must be the one that
    the owner has signed, because the shuffler's promise is about these rows.
    """
    section, rule = shuffle_section(campaign), campaign.shuffle
    if not campaign.order_private:
        return None
    place = folder / str(rule.public)
    try:
        found = sha256(place.read_bytes()).hexdigest()
    except OSError:
        raise ConfigError(f"{place}: no such file; the campaign {campaign.id} names it as `public`.") from None
    if found != rule.public_digest:
        raise ConfigError(f"{place} has another SHA-256 than the campaign {campaign.id} says; get the right file.")
    try:
        return _fit(section, place)
    except DovetailError as error:
        raise ConfigError(f"{place}: {error}") from None


def _fit(section: ShuffleSection, place: Path) -> Shuffler:
    table = read_table(str(place))
    groups = section.groups
    assert isinstance(groups, GroupsSection)  # every shuffler but the uniform one has them
    for name in section.columns:
        if name not in table.columns:
            raise ConfigError(f"there is no column {name!r}, which [shuffle] groups needs.")
    return build_shuffler(section, public_data(section, Survey.of(table), n=table.height))
