"""A client of the two servers: documents by HTTP, and one line for whatever goes wrong."""

from __future__ import annotations

import json
import ssl
from types import TracebackType
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import typer

from dovetail.core.errors import ConfigError, DataError, UnreachableError
from dovetail.core.extras import require
from dovetail_protocol.endpoint import place_of, require_private

SECONDS = 60.0
_AWAY = (502, 503, 504)  # says a proxy of a server that it cannot reach

InsecureHttp = Annotated[
    bool, typer.Option("--insecure-http", help="Allow plain HTTP to another machine, where anybody on the way reads.")
]


class NoSuchDocument(DataError):
    """A server of ours answers, and knows no such document."""


class ServerClient:
    """Questions to one server; no redirect is followed, so that the token goes nowhere else.

    Trusted are the system's certificates, or those of the file that SSL_CERT_FILE names.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        role: Literal["analyzer", "shuffler", "shuffler or analyzer"] = "analyzer",
        insecure_http: bool = False,
    ) -> None:
        self._httpx: Any = require("httpx", extra="serve")
        place_of("URL", url, ("http", "https"))
        require_private("URL", url, insecure=insecure_http)
        self._place, self._role = url.rstrip("/"), role
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = self._httpx.Client(
            headers=headers, timeout=SECONDS, trust_env=False, verify=ssl.create_default_context()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def file(self, path: str, *, content: bytes | None = None) -> bytes:
        """The body of an answer to GET, or to POST of `content`."""
        method = "GET" if content is None else "POST"
        try:
            answer = self._client.request(method, self._place + path, content=content)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise self._silent(error) from None
        if answer.status_code != 200:
            raise self._refusal(answer)
        return bytes(answer.content)

    def document(self, path: str, *, content: bytes | None = None) -> Any:
        """The JSON of an answer."""
        body = self.file(path, content=content)
        try:
            return json.loads(body)
        except ValueError:
            raise DataError(f"{self._place}: what answers there is no {self._role}.") from None

    def campaign(self, wanted: str | None) -> str:
        """The campaign to ask about: the one named, or the only one."""
        if wanted is not None:
            return quote(wanted, safe="")
        known = [each["campaign"] for each in self.document("/v1/campaigns")["campaigns"]]
        if len(known) != 1:
            raise ConfigError(f"there are several campaigns: name one of {', '.join(known)} with --campaign.")
        return str(known[0])

    def _silent(self, error: Exception) -> UnreachableError:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            said = "its certificate is not trusted here; SSL_CERT_FILE names a file of those that are."
        elif isinstance(error, self._httpx.ReadTimeout):
            said = f"something listens there, and has not answered in {SECONDS:g} seconds; does it start still?"
        else:
            said = f"no {self._role} answers there ({type(error).__name__}); is the URL right, and does it run?"
        return UnreachableError(f"{self._place}: {said}")

    def _refusal(self, answer: Any) -> DataError:
        from dovetail.collect.http.problems import read_problem

        problem = read_problem(answer.content)
        if problem is not None:
            refused = NoSuchDocument if problem.kind == "not_found" else DataError
            return refused(f"the {self._role} refuses, {problem.kind.replace('_', ' ')}: {problem.detail}")
        if answer.status_code in _AWAY:
            return DataError(
                f"{self._place}: the {self._role} behind the proxy there does not answer (status "
                f"{answer.status_code}); does it start still?"
            )
        return DataError(f"{self._place}: what answers there is no {self._role} (status {answer.status_code}).")
