"""The dummies of a campaign whose people make the noise: both servers read them off the file, and check them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from dovetail.account.closed_form.user_dummies import UserDummiesLaw, user_dummies_for
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.shuffle.dummies.user_dummies import UserDummies
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.dummies_rules import SentRule
from dovetail_protocol.wire.sent_dummies import Unrandomized

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
