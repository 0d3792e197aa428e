"""Who may ask: bearer tokens, of which the server holds SHA-256 digests only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Self

from dovetail.core.errors import ConfigError

_LINE = re.compile(r"([0-9a-f]{64})(?:\s+\S.*)?")


@dataclass(frozen=True)
class Tokens:
    """Digests of the tokens that are let in; of none, nobody is.

    Examples
    --------
    >>> tokens = Tokens((sha256(b"secret").hexdigest(),))
    >>> tokens.allow("Bearer secret"), tokens.allow("Bearer other"), tokens.allow(None)
    (True, False, False)
    """

    digests: tuple[str, ...] = field(repr=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file with one token a line: SHA-256 in hex, then a label; empty lines and # comments are skipped."""
        try:
            lines = [line.strip() for line in path.read_text().splitlines()]
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"{path}: no such file of tokens, or not text.") from None
        found = [(number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
        for number, line in found:
            if not _LINE.fullmatch(line):
                raise ConfigError(f"{path}, line {number}: must be the SHA-256 of a token in hex, then a label.")
        return cls(tuple(line[:64] for _, line in found))

    def allow(self, authorization: str | None) -> bool:
        """Whether an Authorization header holds one of the tokens; takes the same time for every token."""
        scheme, _, token = (authorization or "").partition(" ")
        shown = sha256(token.strip().encode()).hexdigest()
        matches = [compare_digest(shown, digest) for digest in self.digests]
        return scheme.lower() == "bearer" and any(matches)
