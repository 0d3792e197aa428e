"""The campaign: what is asked, how it is randomized, when, and who may open what. One signed file for all roles.

The file is TOML whose last line is the owner's signature over every byte above it:

    # signed: <base64url of 64 bytes>

Its digest (SHA-256 of the signed bytes) is bound into every report, so that a report made under one version of the
file can never be read as one of another.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from dovetail_protocol import dummies as dummies_rules
from dovetail_protocol.asked import Asked, AskedTogether, read_asked
from dovetail_protocol.budget import affordable
from dovetail_protocol.dummies import CAP, DigitsRule, DummiesRule, SentRule, Unrandomized, require_people
from dovetail_protocol.endpoint import signed_place
from dovetail_protocol.epsilon_classes import EpsilonClass, read_classes
from dovetail_protocol.errors import ConfigError, DovetailError
from dovetail_protocol.joint import SEVERAL, Several, expected
from dovetail_protocol.keys import SealingKey, SigningKey, VerifyingKey, raw, text
from dovetail_protocol.mechanism import Mechanism, stated_in_full
from dovetail_protocol.ohttp import ObliviousRoute, read_route
from dovetail_protocol.succession import HandOver, heir, read_hand_overs
from dovetail_protocol.tokens import TokenRule, read_tokens
from dovetail_protocol.toml_section import Section

SCHEMA = 1
MOST_ROUNDS = 1 << 31
MOST_BYTES = 1 << 20
MOST_WHOLE = (1 << 53) - 1
SIGNED = b"# signed: "
UNIFORM = "uniform"  # the only shuffler that is fitted to nothing
_DOMAIN = b"dovetail campaign v1\0"


@dataclass(frozen=True)
class Schedule:
    """When rounds begin and end: `period` seconds each from `start`, or by hand when `period` is None.

    Rounds are numbered 1..count; `grace` seconds after its end a round still takes its reports.
    """

    start: datetime | None
    period: float | None
    count: int
    grace: float = 0.0

    def round_at(self, now: float) -> int:
        """The round that runs at `now` (seconds since 1970); 0 before the first, count + 1 after the last."""
        assert self.start is not None and self.period is not None
        elapsed = now - self.start.timestamp()
        return min(max(0, int(elapsed // self.period) + 1), self.count + 1)

    def ends(self, round: int) -> float:
        """When `round` ends, without grace (seconds since 1970)."""
        assert self.start is not None and self.period is not None
        return self.start.timestamp() + round * self.period


@dataclass(frozen=True)
class BatchRule:
    """When a batch may leave: `minimum` signed reports of distinct devices, and what happens to fewer.

    What they say only the analyzer can read: it shows no estimate of fewer than `minimum` valid ones.

    small : "wait" (the round stays open until it has enough), "merge" (its reports join the next round's batch) or
    "drop"; late : "refuse" or "next" (a report after the end counts for the next round). `close_at` closes a round
    early, on so many reports.
    """

    minimum: int
    small: str
    late: str
    close_at: int | None


@dataclass(frozen=True)
class ShuffleRule:
    """The shuffler by its name, alpha, and for order privacy the public table of roster slots and its groups.

    `settings` are what the shuffler itself is told. Which shufflers there are, and what they take, is the business of
    those who shuffle and analyze: here only what devices rely on is checked.
    """

    shuffler: str
    alpha: float | None
    public: str | None  # file of public columns, one row per roster slot, beside the campaign file
    public_digest: str | None  # SHA-256 of that file, hex
    groups: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)  # plain TOML values


@dataclass(frozen=True)
class Promise:
    """Assumptions of the guarantee: delta, honest and dishonest people, who may send, one device's budget.

    trust : "local", "shuffler" or "users", no matter who makes the noise that the promise of a batch rests on.
    """

    delta: float
    assumed_honest: int | None
    assumed_dishonest: int
    authentication: str  # "roster" | "token" | "none"
    device_budget: float  # nats a device spends on this campaign at most
    trust: str = "local"


@dataclass(frozen=True)
class Campaign:
    """A verified campaign. `parse` is the only way to get one; it checks the owner's signature."""

    id: str
    version: int
    question: str
    mechanism: Mechanism
    categories: tuple[str, ...]  # empty for numbers
    groups: tuple[str, ...]  # public groups that reports name; empty for none
    precision: tuple[float, float] | None  # (beta, rho) that the analyzer asks for
    schedule: Schedule
    batch: BatchRule
    shuffle: ShuffleRule
    promise: Promise
    expires: datetime | None
    owner: VerifyingKey
    analyzer: SealingKey
    shuffler: SealingKey
    shuffler_signing: VerifyingKey
    endpoints: dict[str, str]  # "http", "mqtt": where devices send
    handed_over: tuple[HandOver, ...]  # from the first owner to this one; empty if there was one only
    digest: bytes  # 32 bytes
    signed: bytes  # the file
    dummies: DummiesRule | None = None  # that the shuffler adds
    sent: SentRule | None = None  # that people send: then nothing is randomized
    classes: tuple[EpsilonClass, ...] = ()  # from the smallest epsilon on; `mechanism` has the largest
    ohttp: ObliviousRoute | None = None  # then devices send by a relay alone
    tokens: TokenRule | None = None  # exactly where the authentication is by token
    asked: Asked | AskedTogether | None = None  # of which values; None where the mechanism takes one value
    memoized: bool = False  # whether a device draws one report, and sends it again in every later round
    combinations: int = 0  # of a question whose answers stand in combinations, among dummies of so many; else 0
    among: Campaign | None = None  # of a question that is drawn among dummies: the campaign of all of them

    @property
    def rounds_mix(self) -> bool:
        """True if reports of several rounds may share a batch; the analyzer must then not tell them apart."""
        return self.batch.small == "merge" or self.batch.late == "next"

    @property
    def suite(self) -> str:
        """Cipher suite of reports, to the analyzer and to the shuffler."""
        return self.analyzer.suite

    @property
    def order_private(self) -> bool:
        """True if the batch is released in the order of public roster slots."""
        return self.shuffle.shuffler != UNIFORM

    @property
    def affordable(self) -> int:
        """Number of reports that one device's budget pays for; of one that is sent again it pays for all."""
        return self.schedule.count if self.memoized else affordable(self.promise.device_budget, self.charged)

    def drawn(self, reports: int) -> int:
        """How many of so many reports of one device are drawn, and paid for."""
        return min(reports, 1) if self.memoized else reports

    @property
    def charged(self) -> float:
        """Nats that one report costs: of the local promise; without one, of one batch's."""
        if self.sent is not None:
            return self.sent.epsilon
        if self.dummies is not None and self.open:
            return self.dummies.charged(self.symbols)[0]
        return self.mechanism.epsilon

    @property
    def charged_delta(self) -> float:
        """The delta with which a report costs no more than `charged`; 0 for a local promise."""
        if self.sent is not None:
            return self.sent.delta
        return self.dummies.charged(self.symbols)[1] if self.dummies is not None and self.open else 0.0

    @property
    def open(self) -> bool:
        """True if answers are sent as they are, and others are trusted to hide them."""
        return self.mechanism.name == Unrandomized.name

    @property
    def symbols(self) -> int:
        """Answers of one person, each of which is randomized and sealed by itself."""
        return max(1, self.asked.sent) if self.asked else 1

    @property
    def draws(self) -> tuple[int, ...]:
        """How often each question is drawn where dummies hide the answer; none where no question is so drawn."""
        return self.asked.weights if isinstance(self.asked, AskedTogether) else ()

    @property
    def kinds(self) -> int:
        """How many kinds of people a shuffler tells apart: classes, or questions that they drew; 0 for none."""
        return len(self.classes or self.draws)

    @property
    def entries(self) -> int:
        """Sealed entries in every message of a device; those that people do not fill are blank."""
        return self.symbols + (0 if self.sent is None else CAP - 1)

    def of_class(self, place: int) -> Campaign:
        """The campaign as a device of this class answers and pays for it; itself where there are no classes."""
        own: Any = self.mechanism
        return replace(self, mechanism=replace(own, epsilon=self.classes[place].epsilon)) if self.classes else self

    @property
    def questions(self) -> tuple[Campaign, ...]:
        """The campaign as if it asked each question alone, of those who answer it on average; or itself."""
        asked, together, rule = self.asked, self.mechanism, self.batch
        if isinstance(asked, AskedTogether) and self.draws:
            fewer = (replace(rule, minimum=n) for n in expected(self.draws, rule.minimum))
            return tuple(
                replace(self, among=self, asked=one, mechanism=Unrandomized(one.size), batch=own)
                for one, own in zip(asked.each, fewer, strict=True)
            )
        if isinstance(asked, AskedTogether) and isinstance(together, Unrandomized):
            one_of = replace(self, combinations=together.k)
            return tuple(replace(one_of, asked=one, mechanism=Unrandomized(one.size)) for one in asked.each)
        if not isinstance(asked, AskedTogether) or not isinstance(together, Several):
            return (self,)
        each = zip(asked.each, together.parts, together.expected(rule.minimum), strict=True)
        return tuple(replace(self, asked=one, mechanism=own, batch=replace(rule, minimum=n)) for one, own, n in each)

    def descends_from(self, owner: VerifyingKey) -> bool:
        """True if this is the owner, or one to whom that one's trust was handed over, step by step."""
        return heir(owner, self.handed_over) == self.owner

    @classmethod
    def parse(cls, signed: bytes, owner: VerifyingKey | None = None) -> Campaign:
        """The campaign of these bytes; signed by `owner` or its heir, or else by the owner it names itself."""
        body, proof = _split(signed)
        if proof is None:
            raise ConfigError("the campaign is not signed; the owner signs it with `dovetail collect sign`.")
        if owner is not None and not heir(owner, read_hand_overs(body)).verifies(proof, _DOMAIN + body):
            # before anything of it is believed
            raise ConfigError(f"the campaign is not signed by {owner}, or has been changed since.")
        campaign = _read(body, signed)
        if not campaign.owner.verifies(proof, _DOMAIN + body):
            raise ConfigError(f"the campaign {campaign.id} has been changed since its owner signed it.")
        return campaign


def sign(body: bytes, owner: SigningKey) -> bytes:
    """The signed file: `body` (TOML, an older signature is dropped) and the owner's signature line."""
    body, _ = _split(body)
    if not body.endswith(b"\n"):
        body += b"\n"
    named = _read(body, body).owner
    if named != owner.verifying_key():
        raise ConfigError(f"`keys.owner` is {named}, but the signing key is {owner.verifying_key()}.")
    return body + SIGNED + text(owner.sign(_DOMAIN + body)).encode() + b"\n"


def draft(body: bytes) -> Campaign:
    """The campaign of a file that is not signed yet, for explaining it; no role works with one."""
    body, _ = _split(body)
    return _read(body, body)


def _split(signed: bytes) -> tuple[bytes, bytes | None]:
    """Body and signature; without a last line that is a signature everything is body."""
    if len(signed) > MOST_BYTES:
        raise ConfigError(f"a campaign file has at most {MOST_BYTES:,} bytes.")
    body, line, signature = signed.rpartition(b"\n" + SIGNED)
    if not line or not signature.endswith(b"\n"):
        return signed, None
    try:
        proof = raw(signature[:-1].decode())
    except ValueError:
        return signed, None
    return (body + b"\n", proof) if len(proof) == 64 else (signed, None)


def _read(body: bytes, signed: bytes) -> Campaign:
    try:
        found = tomllib.loads(body.decode())
    except UnicodeDecodeError:
        raise ConfigError("not a campaign in TOML: it is not text.") from None
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and nesting without end
        raise ConfigError(f"not a campaign in TOML: {str(error).splitlines()[0]}.") from None
    top = Section("", _portable(found))
    top.whole("schema_version", least=SCHEMA, most=SCHEMA)
    randomizer = top.section("randomizer")
    promise = _promise(top.section("promise"))
    schedule = _schedule(top.section("rounds"))
    categories, kind = randomizer.texts("categories"), _mechanism(randomizer, promise.trust)
    dummies, sent = dummies_rules.read_dummies(top.section("dummies", optional=True), promise.trust)
    keys, asked = top.section("keys"), top.section("precision", optional=True)
    suite = keys.choice("suite", ("x25519", "mlkem768-x25519"), default="x25519")
    campaign = Campaign(
        id=_name(top.text("id")),
        version=top.whole("version", least=1, default=1),
        question=top.text("question"),
        mechanism=kind,
        categories=categories,
        groups=_groups(top.section("groups", optional=True)),
        precision=(asked.probability("beta"), asked.probability("rho")) if asked else None,
        schedule=schedule,
        batch=_batch(top.section("batch")),
        shuffle=_shuffle(top.section("shuffle")),
        promise=promise,
        expires=top.moment("expires", None),
        owner=VerifyingKey.parse("keys.owner", keys.text("owner")),
        analyzer=SealingKey.parse("keys.analyzer", keys.text("analyzer")),
        shuffler=SealingKey.parse("keys.shuffler", keys.text("shuffler")),
        shuffler_signing=VerifyingKey.parse("keys.shuffler_signing", keys.text("shuffler_signing")),
        endpoints=_endpoints(top.section("endpoints", optional=True)),
        handed_over=read_hand_overs(body),
        digest=sha256(body).digest(),
        signed=signed,
        dummies=dummies,
        sent=sent,
        classes=read_classes(top.section("classes", optional=True), kind),
        ohttp=read_route(top.section("ohttp", optional=True)),
        tokens=read_tokens(top.section("tokens", optional=True), schedule.count),
        asked=read_asked(top.section("asks", optional=True), open=kind.name == dummies_rules.Unrandomized.name),
        memoized="memoize" in found and _memoized(top.section("memoize")),
    )
    keys.finish()
    asked.finish()
    top.finish()
    _agree(campaign, suite)
    return campaign


def _portable(found: Any) -> Any:
    """Refuse whole numbers that languages read otherwise: many hold numbers as doubles, which round larger ones."""
    if isinstance(found, int) and abs(found) > MOST_WHOLE:
        raise ConfigError(f"a whole number in a campaign must be from -{MOST_WHOLE:,} to {MOST_WHOLE:,}.")
    for item in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        _portable(item)
    return found


def _name(id: str) -> str:
    if not (0 < len(id) <= 64 and all(c.isascii() and (c.isalnum() or c in "-_") for c in id)):
        raise ConfigError(f"`id` must be 1 to 64 letters, digits, - or _, got {id!r}.")
    return id


def _groups(section: Section) -> tuple[str, ...]:
    names = section.texts("names")
    section.finish()
    if len(names) > 1 << 16:
        raise ConfigError("`groups.names` must be at most 65,536 names.")
    return names


def _mechanism(section: Section, trust: str) -> Mechanism:
    try:
        if dummies_rules.unrandomized(name := section.text("name"), trust):
            return dummies_rules.read_unrandomized(section)
        if name in SEVERAL:
            return SEVERAL[name].read(section)
        return stated_in_full(name, **section.rest())
    except DovetailError as error:
        raise ConfigError(f"in [randomizer]: {error}") from None


def _schedule(section: Section) -> Schedule:
    manual = section.choice("schedule", ("period", "manual")) == "manual"
    schedule = Schedule(
        start=None if manual else section.moment("start"),
        period=None if manual else section.seconds("period_seconds", least=0.01),
        count=section.whole("count", least=1, most=MOST_ROUNDS),
        grace=section.seconds("grace_seconds", least=0.0, default=0.0),
    )
    section.finish()
    return schedule


def _batch(section: Section) -> BatchRule:
    rule = BatchRule(
        minimum=section.whole("minimum", least=1),
        small=section.choice("small", ("wait", "merge", "drop"), default="wait"),
        late=section.choice("late", ("refuse", "next"), default="refuse"),
        close_at=section.whole("close_at", least=1, default=None),
    )
    section.finish()
    if rule.close_at is not None and rule.close_at < rule.minimum:
        raise ConfigError(f"`batch.close_at` = {rule.close_at} is below `batch.minimum` = {rule.minimum}.")
    return rule


def _shuffle(section: Section) -> ShuffleRule:
    shuffler = section.text("shuffler", UNIFORM)
    fitted = shuffler != UNIFORM
    rule = ShuffleRule(
        shuffler=shuffler,
        alpha=section.not_negative("alpha", None),
        public=section.text("public", None),
        public_digest=_hex(section.text("public_sha256", None)),
        groups=section.mapping("groups"),
        settings=section.rest() if fitted else {},
    )
    section.finish()
    if fitted and (rule.public is None or rule.public_digest is None or not rule.groups):
        raise ConfigError(
            f"`shuffle.shuffler` = {rule.shuffler!r} needs `public`, `public_sha256` and `groups`: what to fit it to."
        )
    if not fitted and (rule.public or rule.groups or rule.alpha is not None):
        raise ConfigError("a uniform shuffle takes no `alpha`, `public` or `groups` in [shuffle].")
    return rule


def _hex(found: str | None) -> str | None:
    if found is not None and not (len(found) == 64 and set(found) <= set("0123456789abcdef")):
        raise ConfigError("`shuffle.public_sha256` must be 64 hexadecimal digits, as sha256sum prints them.")
    return found


def _promise(section: Section) -> Promise:
    promise = Promise(
        delta=section.probability("delta"),
        assumed_honest=section.whole("assumed_honest", least=1, default=None),
        assumed_dishonest=section.whole("assumed_dishonest", least=0, default=0),
        authentication=section.choice("authentication", ("roster", "token", "none"), default="roster"),
        device_budget=section.positive("device_budget"),
        trust=section.choice("trust", dummies_rules.TRUSTS, default="local"),
    )
    section.finish()
    return promise


def _memoized(section: Section) -> bool:
    """True; the table has one key, as in a run: the owner's word that values do not change."""
    stated = section.rest()
    if set(stated) != {"constant_values"} or stated["constant_values"] is not True:
        raise ConfigError("[memoize] takes `constant_values` = true, and nothing else.")
    return True


def _endpoints(section: Section) -> dict[str, str]:
    found = {name: section.text(name, None) for name in ("http", "mqtt")}
    section.finish()
    return {
        name: signed_place(f"endpoints.{name}", place, (name, f"{name}s")) for name, place in found.items() if place
    }


def _agree(campaign: Campaign, suite: str) -> None:
    """Refuse sections that do not agree with each other."""
    for each in campaign.handed_over:
        if each.campaign != campaign.id:
            raise ConfigError(f"a line `handed over` is of the campaign {each.campaign}, not of {campaign.id}.")
    if campaign.handed_over and campaign.handed_over[-1].new != campaign.owner:
        raise ConfigError("`keys.owner` is not the key to which the campaign was handed over last.")
    for name, key in (("analyzer", campaign.analyzer), ("shuffler", campaign.shuffler)):
        if key.suite != suite:
            raise ConfigError(f"`keys.{name}` is a key of {key.suite}, but `keys.suite` is {suite}.")
    if campaign.analyzer == campaign.shuffler:
        raise ConfigError("`keys.analyzer` and `keys.shuffler` are one key: anybody who has it sees everything.")
    k = getattr(campaign.mechanism, "k", None)
    if campaign.categories and k is None:
        raise ConfigError(f"`randomizer.categories` name symbols, but {campaign.mechanism.name} takes a number.")
    if campaign.categories and k != len(campaign.categories):
        raise ConfigError(f"`randomizer.categories` names {len(campaign.categories)} categories, k is {k}.")
    _agree_on_questions(campaign)
    if campaign.groups and campaign.order_private:
        raise ConfigError("[groups] are for the uniform shuffle; order privacy groups by public roster slots.")
    if campaign.order_private and campaign.rounds_mix:
        raise ConfigError('order privacy releases roster slots: use small = "wait" or "drop" and late = "refuse".')
    if campaign.order_private and campaign.promise.authentication != "roster":
        raise ConfigError('order privacy needs a roster, whose slots name people: use authentication = "roster".')
    if (campaign.promise.authentication == "token") != (campaign.tokens is not None):
        raise ConfigError('authentication = "token" and [tokens] go together: who issues tokens, and by which keys.')
    if campaign.tokens is not None and campaign.rounds_mix:
        raise ConfigError(
            "tokens of two rounds are two strangers, so that one person could stand twice in a batch: use "
            'small = "wait" or "drop" and late = "refuse".'
        )
    promise, price = campaign.promise, campaign.charged
    if campaign.charged_delta > promise.delta:
        raise ConfigError(
            f"`dummies.delta` must be at most `promise.delta` = {promise.delta!r} for all symbols of a person "
            f"together, which are {campaign.symbols}: a device pays epsilon alone for its batches."
        )
    if promise.device_budget < price:
        raise ConfigError(f"`promise.device_budget` = {promise.device_budget} does not pay for one report ({price}).")
    if campaign.sent is not None:
        if campaign.groups or campaign.order_private or promise.authentication == "none":
            raise ConfigError("dummies of people go with a roster or tokens and a uniform shuffle, without [groups].")
        require_people(campaign.batch.minimum, promise.assumed_honest, promise.assumed_dishonest)
    alone = campaign.groups or campaign.order_private or campaign.precision or promise.authentication == "none"
    if campaign.classes and (alone or promise.trust != "local"):
        raise ConfigError(
            "[classes] go with a roster or tokens and a uniform shuffle, without groups, dummies and precision."
        )
    hides = campaign.mechanism.name == "krr" or campaign.open
    if campaign.dummies and (not hides or campaign.groups or campaign.order_private):
        raise ConfigError("[dummies] go with the randomizer krr and a uniform shuffle, without public [groups].")
    if campaign.dummies and campaign.dummies.by_chance and not campaign.open:
        raise ConfigError(
            'sparse dummies, with `kept`, go with `randomizer.name` = "none": nothing is promised of both.'
        )
    if campaign.memoized and (campaign.groups or campaign.classes or campaign.rounds_mix or promise.trust != "local"):
        raise ConfigError(
            "[memoize] goes with noise of people's own, without [classes], [groups], and rounds that mix: use "
            'small = "wait" or "drop" and late = "refuse".'
        )
    if campaign.ohttp and campaign.endpoints:
        raise ConfigError("[ohttp] replaces [endpoints]: a device that may also send directly shows its address.")
    start, expires = campaign.schedule.start, campaign.expires
    if start is not None and expires is not None and expires <= start:
        raise ConfigError(f"`expires` = {expires.isoformat()} is before the first round.")


def _agree_on_questions(campaign: Campaign) -> None:
    """Refuse several questions that have not one randomizer each, and answers that a randomizer does not take."""
    asked, together = campaign.asked, campaign.mechanism
    number = (asked.question, len(asked.each)) if isinstance(asked, AskedTogether) and not asked.symbols else None
    if number != ((together.name, len(together.parts)) if isinstance(together, Several) else None):
        name = together.name if isinstance(together, Several) else asked.question if asked else ""
        raise ConfigError(
            f'`randomizer.name` = "{name}" goes with `asks.question` = "{name}": one of `randomizer.parts` for each '
            "of `asks.each`, in one order."
        )
    for each in (*([campaign] if campaign.open else []), *campaign.questions):
        _agree_on_symbols(each)


def _agree_on_symbols(campaign: Campaign) -> None:
    """Refuse symbols that the mechanism does not take, or that would each cost a share of the local budget."""
    if isinstance(campaign.dummies, DigitsRule) and isinstance(campaign.asked, AskedTogether) and not campaign.draws:
        raise ConfigError("`dummies.reaches` are of the digits of a number, and answers of several stay together.")
    k = getattr(campaign.mechanism, "k", None)
    asked, length = campaign.asked, getattr(campaign.mechanism, "d", 0)
    digits = 0 if asked is None else asked.digits
    laws = len(campaign.dummies.reaches) if isinstance(campaign.dummies, DigitsRule) else 0
    if digits != laws:
        raise ConfigError(
            f"`dummies.reaches` are of the digits of a number, one for each: [asks] sends {digits} digits, and they "
            f"are {laws}."
        )
    if asked is None:
        if length:
            raise ConfigError(f"{campaign.mechanism.name} takes an array: [asks] must say of what.")
        return
    if campaign.categories:
        raise ConfigError("`randomizer.categories` go without [asks], which names the values itself.")
    if asked.symbols and k != asked.size:
        wanted = "takes a number" if k is None else f"is of {k:,}"
        raise ConfigError(f"[asks] makes {asked.size:,} different symbols, and `randomizer` {wanted}.")
    if not asked.symbols and k is not None:
        raise ConfigError(f"[asks] makes no symbols, and {campaign.mechanism.name} takes one.")
    if not asked.symbols:
        value, own = asked.values[0], campaign.mechanism
        if value.length != length:
            raise ConfigError(
                f"[asks] makes no symbols: `length` of the value {value.name!r} must then be `d` of [randomizer], "
                "and left out where that takes a number."
            )
        known = (getattr(own, "lower", None), getattr(own, "upper", None))
        if not length and (value.missing or (value.lower, value.upper) != known):
            raise ConfigError(
                f"[asks] makes no symbols: `lower` and `upper` of the value {value.name!r} must then be those of "
                "[randomizer], and everybody must have a number."
            )
    if (campaign.symbols > 1 or digits) and not campaign.open:
        raise ConfigError(
            '[asks] with several symbols of a person goes with dummies and `randomizer.name` = "none": under local '
            "noise each symbol would cost a share of the budget."
        )
