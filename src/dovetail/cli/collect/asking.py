"""A client of the analyzer: documents by HTTP, and one line for whatever goes wrong."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from dovetail.core.errors import ConfigError, DataError, OutputError
from dovetail.core.extras import require

SECONDS = 60.0


class Ask:
    """Questions to one analyzer; no redirect is followed, so that the token goes nowhere else."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self._httpx: Any = require("httpx", extra="serve")
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"the analyzer's URL must begin with http:// or https://, got {url!r}.")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = self._httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=SECONDS, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def file(self, path: str) -> bytes:
        """The body of an answer."""
        try:
            answer = self._client.get(path)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise OutputError(f"no analyzer answers there ({type(error).__name__}).") from None
        if answer.status_code != 200:
            raise DataError(_refusal(answer))
        return bytes(answer.content)

    def document(self, path: str) -> Any:
        """The JSON of an answer."""
        body = self.file(path)
        try:
            return json.loads(body)
        except ValueError:
            raise DataError("what answers there is no analyzer.") from None

    def campaign(self, wanted: str | None) -> str:
        """The campaign to ask about: the one named, or the only one."""
        if wanted is not None:
            return quote(wanted, safe="")
        known = [each["campaign"] for each in self.document("/v1/campaigns")["campaigns"]]
        if len(known) != 1:
            raise ConfigError(f"there are several campaigns: name one of {', '.join(known)} with --campaign.")
        return str(known[0])


def _refusal(answer: Any) -> str:
    from dovetail.collect.problems import read_problem

    problem = read_problem(answer.content)
    if problem is None:
        return f"what answers there is no analyzer (status {answer.status_code})."
    return f"refused as {problem.kind.replace('_', ' ')}: {problem.detail}"
