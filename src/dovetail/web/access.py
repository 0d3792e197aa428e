"""Every request passes here: right host, same origin, the cookie of the one browser, and a token for what changes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# One run of the server: its secrets, its addresses and its temporary folder.


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class Session:
    """Session of one run of the server; secrets have no repr.

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
        """True if this is the token of the link, which is then used up."""
        known, right = self._entry, bool(self._entry) and same(token, self._entry)
        self._entry = "" if right else known
        return right

    def hosts(self) -> tuple[str, ...]:
        """Names under which the server may be asked."""
        return (self.authority, *self.also)


def same(given: str, secret: str) -> bool:
    """Equality in a time that tells nothing."""
    return compare_digest(given.encode("utf-8", "replace"), secret.encode())


ENTRY = "/enter"
CSRF = "x-csrf-token"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = ("GET", "HEAD")


class Guard:
    """Refuses whatever does not come from the one browser and its own pages."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app, self._session = app, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = refusal(self._session, scope["method"], scope["path"], Headers(scope=scope))
        answer = self._app if refused is None else PlainTextResponse(refused[1] + "\n", refused[0])
        await answer(scope, receive, send_with_headers)


def refusal(session: Session, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
    """Status and sentence for a request that is not let through; None for one that is."""
    if headers.get("host") not in session.hosts():
        return 421, "This server answers under the address that it printed, and no other."
    origins = {f"http://{host}" for host in session.hosts()}
    if headers.get("origin", next(iter(origins))) not in origins or not _same_site(method, headers):
        return 403, "Requests of other sites are refused."
    if path == ENTRY and method in _SAFE:
        return None
    if not let_in(session, headers):
        return 403, "Open the link that `dovetail web` printed; it lets one browser in."
    if method not in _SAFE and not ("origin" in headers and same(headers.get(CSRF, ""), session.csrf)):
        return 403, "The page is out of date: load it again."
    return None


def let_in(session: Session, headers: Headers) -> bool:
    """True if this is the one browser that opened the link."""
    return same(cookie_parser(headers.get("cookie", "")).get(session.cookie_name, ""), session.cookie)


def _same_site(method: str, headers: Headers) -> bool:
    """True if a browser sends this for a page of ours, or because a person opens an address."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return True
    return (
        method in _SAFE
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
