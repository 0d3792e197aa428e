"""Whether the vault has the keys under which the reports of rounds lie: the store keeps their fingerprints."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dovetail.collect.shuffler.link_key_store import ForeignKey, LinkKeyStore, RoundKey, UnusableKey
from dovetail.collect.store.interfaces import CampaignId, RoundRecord, ShufflerStore
from dovetail.core.errors import ConfigError, StorageError

_WITH_REPORTS = ("open", "held", "releasing")


def own_key(link_keys: LinkKeyStore, round: RoundRecord) -> RoundKey | None:
    """The key under which the reports of a round lie; None if there is none here.

    Raises
    ------
    ForeignKey
        When the key here is another one: this vault belongs to another database.
    """
    key = link_keys.key(round.campaign, round.number)
    if key is not None and round.key not in (None, key.fingerprint):
        raise ForeignKey(
            f"the vault has another key for round {round.number} of {round.campaign} than its reports lie under"
        )
    return key


def has_key(link_keys: LinkKeyStore, store: ShufflerStore, round: RoundRecord) -> bool:
    """Whether the reports of a round can be read here; notes which key does where that was never noted."""
    try:
        key = own_key(link_keys, round)
    except (ForeignKey, UnusableKey):
        return False
    if key is not None and round.key is None:
        store.record_key(round.campaign, round.number, key.fingerprint)
    return key is not None


def claim_vault(link_keys: LinkKeyStore, store: ShufflerStore) -> None:
    """Refuse to go on where somebody works on the database with another vault.

    A vault that takes the place of another one knows nothing of the rounds before it, and notes that.
    """
    if not store.claim_vault(link_keys.identity(), lambda: link_keys.forget_before(math.inf)):
        raise ConfigError(
            "another shuffler works on this database with another `vault`; give both the same folder, or stop it."
        )


def require_own_keys(link_keys: LinkKeyStore, rounds: Iterable[RoundRecord]) -> None:
    """Refuse a vault that belongs to another database; keys that are missing are no reason."""
    for round in rounds:
        try:
            if round.state in _WITH_REPORTS:
                own_key(link_keys, round)
        except ForeignKey as error:
            raise ConfigError(
                f"{error}; name the right folder as `vault`, or an empty one if it is gone: the round is lost then."
            ) from None
        except UnusableKey:
            continue  # damaged: that round is lost, and no other


def require_key(link_keys: LinkKeyStore, round: RoundRecord) -> RoundKey:
    """The key under which the reports of a round lie; StorageError without one."""
    key = own_key(link_keys, round)
    if key is None:
        raise missing_key(round.campaign, round.number)
    return key


def missing_key(campaign: CampaignId, number: int) -> StorageError:
    """The vault has no key for a round that still has reports."""
    return StorageError(f"the key of round {number} of {campaign} is gone from the vault.")
