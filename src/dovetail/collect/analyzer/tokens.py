"""Bearer tokens, which say who may ask what until when; the server holds their SHA-256 digests only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Protocol, Self

from dovetail.collect.logs import Log
from dovetail.core.errors import ConfigError, DataError
from dovetail.ledger.files import replace_durably

_LOG = Log("analyzer.tokens")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CAMPAIGNS = re.compile(r"[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+)*")
_FORM = (
    "the SHA-256 of a token in hex, then expires=2030-01-31T12:00:00+00:00 and campaigns=a,b if wanted, then a label"
)


@dataclass(frozen=True)
class Token:
    """One token: whose it is, until when it is valid, and which campaigns it reads; None: for ever, all."""

    digest: str = field(repr=False)
    label: str = ""
    expires: datetime | None = None
    campaigns: frozenset[str] | None = None

    @classmethod
    def read(cls, line: str) -> Self:
        """From a line of the file; ValueError for anything else."""
        digest, *words = line.split()
        given: dict[str, str] = {}
        while words and "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            if name in given or name not in ("expires", "campaigns"):
                raise ValueError(name)
            given[name] = value
        expires = None if "expires" not in given else datetime.fromisoformat(given["expires"])
        if not _DIGEST.fullmatch(digest) or (expires is not None and expires.tzinfo is None):
            raise ValueError("digest or time")
        if "campaigns" in given and not _CAMPAIGNS.fullmatch(given["campaigns"]):
            raise ValueError("campaigns")
        campaigns = frozenset(given["campaigns"].split(",")) if "campaigns" in given else None
        return cls(digest, " ".join(words), expires, campaigns)

    def write(self) -> str:
        """The line that `read` reads."""
        expires = [] if self.expires is None else [f"expires={self.expires.isoformat()}"]
        campaigns = [] if self.campaigns is None else [f"campaigns={','.join(sorted(self.campaigns))}"]
        return " ".join([self.digest, *expires, *campaigns, self.label]).rstrip()

    def valid(self, now: float) -> bool:
        return self.expires is None or now < self.expires.timestamp()

    def reads(self, campaign: str) -> bool:
        """True if this campaign is in its scope."""
        return self.campaigns is None or campaign in self.campaigns


class TokenSource(Protocol):
    def current(self) -> Tokens:
        """The tokens as of now."""


@dataclass(frozen=True)
class Tokens:
    """The tokens that are let in; of none, nobody is.

    Examples
    --------
    >>> tokens = Tokens((Token(sha256(b"secret").hexdigest(), "me"),))
    >>> tokens.find("Bearer secret", now=0.0).label, tokens.find("Bearer other", now=0.0), tokens.find(None, now=0.0)
    ('me', None, None)
    """

    tokens: tuple[Token, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file with one token a line; empty lines and # comments are skipped."""
        try:
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"{path}: no such file of tokens, or not text.") from None
        found = list[Token]()
        for number, line in enumerate(lines, 1):
            try:
                found += [Token.read(line)] if line and not line.startswith("#") else []
            except ValueError:
                raise ConfigError(f"{path}, line {number}: must be {_FORM}.") from None
        return cls(tuple(found))

    def save(self, path: Path) -> None:
        """Replace the file at once or not at all."""
        replace_durably(path, "".join(token.write() + "\n" for token in self.tokens).encode())

    def current(self) -> Tokens:
        return self

    def with_token(self, token: Token) -> Tokens:
        """With one more; a label that the file could not tell from a setting is refused, like one that is taken."""
        try:
            kept = Token.read(token.write()) == token
        except ValueError:
            kept = False
        if not token.label or not kept:
            raise DataError(f"`label` must be words without =, and `campaign` an id, got {token.label}.")
        if any(each.label == token.label for each in self.tokens):
            raise DataError(f"there is a token for {token.label} already; withdraw it, or choose another label.")
        return Tokens((*self.tokens, token))

    def without(self, label: str) -> Tokens:
        """Without the tokens of a label."""
        kept = tuple(token for token in self.tokens if token.label != label)
        if len(kept) == len(self.tokens):
            raise DataError(f"there is no token for {label}.")
        return Tokens(kept)

    @property
    def fingerprint(self) -> str:
        """A short name of this set of tokens: another one where a token was added or taken away."""
        return sha256("".join(sorted(token.digest for token in self.tokens)).encode()).hexdigest()[:16]

    def find(self, authorization: str | None, *, now: float) -> Token | None:
        """The valid token that an Authorization header holds; takes the same time for every token."""
        scheme, _, token = (authorization or "").partition(" ")
        shown = sha256(token.strip().encode()).hexdigest()
        matches = [each for each in self.tokens if compare_digest(shown, each.digest) & each.valid(now)]
        return matches[0] if scheme.lower() == "bearer" and matches else None


class LiveTokens:
    """The tokens of a file, read for every question: one that is withdrawn stops working at once.

    While the file cannot be read, or says something that is not understood, nobody is let in; the log says so.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._fault = path, False
        Tokens.load(path)  # at the start a wrong file is an error

    def current(self) -> Tokens:
        try:
            found = Tokens.load(self._path)
        except ConfigError as error:
            if not self._fault:
                _LOG.fault("no tokens can be read, nobody may ask", error)
            self._fault = True
            return Tokens(())
        self._fault = False
        return found
