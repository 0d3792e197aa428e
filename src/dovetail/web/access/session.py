"""One run of the server: its secrets, its addresses and its temporary folder."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class Session:
    """What one run of the server knows; secrets have no repr.

    Parameters
    ----------
    authority : str
        host:port as browsers write it; what is asked of another host is refused.
    folder : Path
        The only place that is written to.
    """

    authority: str
    folder: Path
    also: tuple[str, ...] = ()  # other names of the same address
    cookie: str = field(default_factory=_secret, repr=False)
    csrf: str = field(default_factory=_secret, repr=False)
    _entry: str = field(default_factory=_secret, repr=False)

    @property
    def cookie_name(self) -> str:
        """Cookies are shared by the ports of a host, so their name has the port."""
        return f"dovetail_{self.authority.rpartition(':')[2]}"

    @property
    def link(self) -> str:
        """The address that lets one browser in, once."""
        return f"http://{self.authority}/enter?token={self._entry}"

    def enter(self, token: str) -> bool:
        """Whether this is the token of the link, which is then used up."""
        known, right = self._entry, bool(self._entry) and same(token, self._entry)
        self._entry = "" if right else known
        return right

    def hosts(self) -> tuple[str, ...]:
        """Names under which the server may be asked."""
        return (self.authority, *self.also)


def same(given: str, secret: str) -> bool:
    """Equality in a time that tells nothing."""
    return compare_digest(given.encode("utf-8", "replace"), secret.encode())
