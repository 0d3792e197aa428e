"""What a campaign's terms mean to this package: its draft, its versions, its shuffler and its dummies."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from dovetail.account.dummies import UserDummiesLaw, user_dummies_for
from dovetail.core.errors import ConfigError, DovetailError, ParameterError
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS, Shuffler
from dovetail.job.build import build_shuffler, public_data
from dovetail.job.config import GroupsSection, ShuffleSection, files_of
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from dovetail.table.data_section import parse_section
from dovetail.table.reader import Survey, read_table
from dovetail_protocol import mechanism as protocol_mechanism
from dovetail_protocol.campaign import Campaign, draft
from dovetail_protocol.dummies import SentRule, Unrandomized
from dovetail_protocol.messages import inner_bytes

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
    """What only a campaign objects to: it always shuffles, once, by the public table that its owner has signed."""
    if not SHUFFLERS[section.shuffler].moves_reports:
        return f'a campaign must shuffle: `shuffler` "{section.shuffler}" would tell who sent what'
    if section.compare:
        return "`compare` is for rehearsals; remove it"
    for key, file in files_of(section).items():
        if file is not None:
            return f"`{key}` names a file that the owner does not sign; use `groups` of the `public` table"
    return ""


# The dummies of a campaign whose shuffler is trusted with the noise: both servers read them off the signed file.


MOST = 1_000_000  # dummies of a batch on average; each is sealed by itself
Law = tuple[int, int, int]


def added_dummies(campaign: Campaign) -> Dummies | None:
    """What the shuffler adds to each batch; None where it adds nothing.

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
        dummies = Dummies(mechanism.k, rule.epsilon, rule.delta)
    except ParameterError as error:
        raise ConfigError(f"in [dummies]: {error}") from None
    if dummies.reach != rule.reach:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {rule.reach:,} dummies of each answer on average, and this version "
            f"of dovetail would add {dummies.reach:,}: it was drafted for another version."
        )
    if dummies.k * dummies.reach > MOST:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {dummies.k * dummies.reach:,} dummies in each batch, more than "
            f"{MOST:,}: join answers."
        )
    return dummies


def law_of(dummies: Dummies) -> Law:
    """What a batch states of its dummies: numerator, denominator and reach of their law."""
    noise = dummies.noise
    return noise.numerator, noise.denominator, noise.reach


# The dummies of a campaign whose people make the noise: both servers read them off the file, and check them.


SLIP = 1e-9  # relative: the decimals of a file


def people_dummies(campaign: Campaign) -> UserDummies | None:
    """What every device of the campaign sends; None where devices send no dummies.

    Raises
    ------
    ConfigError
        Where so many honest people are too few to hide anybody with two messages each, or send too few dummies for
        what the file promises.
    """
    rule, mechanism = campaign.sent, campaign.mechanism
    if rule is None or not isinstance(mechanism, Unrandomized):
        return None
    assert campaign.promise.assumed_honest is not None  # a campaign without it is none
    wrong = _what_is_wrong(rule, mechanism.k, campaign.promise.assumed_honest)
    if wrong:
        raise ConfigError(f"in [dummies]: {wrong}")
    return UserDummies(mechanism.k, rule.rate)


def count_messages(sent: UserDummies, counts: Iterable[tuple[int, int]]) -> int:
    """Answers and dummies among symbols with their numbers."""
    return sum(count for symbol, count in counts if symbol < sent.k)  # the others are blank


@lru_cache(maxsize=256)
def _what_is_wrong(rule: SentRule, k: int, honest: int) -> str:
    """Empty where the dummies of so many people keep what the rule promises."""
    try:
        sent = UserDummies(k, rule.rate)
        if UserDummiesLaw(k, honest, sent.rate).epsilon(rule.delta) <= rule.epsilon * (1.0 + SLIP):
            return ""
        least = user_dummies_for(k=k, epsilon=rule.epsilon, delta=rule.delta, honest=honest).rate
    except ParameterError as error:
        return str(error)
    return (
        f"`rate` must be at least {least!r}, so that the dummies of {honest:,} honest people keep epsilon "
        f"{rule.epsilon:g}, got {rule.rate!r}."
    )


# A campaign that its owner has not signed yet, checked as devices and servers will check it.


def draft_campaign(body: bytes) -> Campaign:
    """The campaign of a file, signed or not, without a look at its signature; ConfigError says what is wrong."""
    name = _randomizer_name(body)
    if isinstance(name, str):
        require_device_form(name)
    campaign = draft(body)
    shuffle_section(campaign)
    added_dummies(campaign)
    people_dummies(campaign)
    return campaign


def require_device_form(name: str) -> None:
    """Refuse a randomizer that the analyst knows but no device can run; other names are for others to judge."""
    if name in RANDOMIZERS and name not in protocol_mechanism.names():
        raise ConfigError(
            f"randomizer {name!r} has no form for devices, so no campaign can use it; "
            f"take one of {', '.join(protocol_mechanism.names())}."
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
    "suite",
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
    for name in groups.columns:
        if name not in table.columns:
            raise ConfigError(f"there is no column {name!r}, which [shuffle] groups needs.")
    return build_shuffler(section, public_data(section, Survey.of(table), n=table.height))
