"""What a server refuses, and how it says so: problem documents (RFC 9457) of a few kinds, the same for both servers.

A detail names the rule that was broken; never a payload, a value, a token or an address.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from starlette.responses import Response

from dovetail.core.errors import DovetailError

TYPE = "urn:dovetail:problem:"
MEDIA_TYPE = "application/problem+json"
STATUS: dict[str, int] = {
    "malformed": 400,
    "version": 400,
    "seal": 400,
    "content": 400,
    "unauthorized": 401,
    "signature": 403,
    "unknown_device": 403,
    "revoked_device": 403,
    "not_found": 404,
    "method": 405,
    "timeout": 408,
    "campaign": 409,  # another version of the campaign: the device fetches it again and tries once more
    "round": 409,
    "late": 409,
    "second_report": 409,
    "lost": 410,
    "too_large": 413,
    "too_early": 425,
    "rate_limited": 429,
    "fault": 500,
    "unavailable": 503,
}


class Refusal(DovetailError):
    """Raised while a request is handled: it is answered with the problem document of `kind`."""

    def __init__(self, kind: str, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after = kind, detail, retry_after


@dataclass(frozen=True)
class Problem:
    """A problem document as a client reads it."""

    kind: str
    status: int
    detail: str


def problem(kind: str, detail: str, *, retry_after: float | None = None) -> Response:
    """The response that refuses a request; `retry_after` seconds, rounded up, where waiting helps."""
    status = STATUS[kind]
    document = {"type": TYPE + kind, "title": kind.replace("_", " "), "status": status, "detail": detail}
    headers = {} if retry_after is None else {"Retry-After": str(max(1, -int(-retry_after // 1)))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 408:
        headers["Connection"] = "close"  # whoever is too slow begins anew
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)


def read_problem(body: bytes) -> Problem | None:
    """The problem document in the body of a response; None for anything else, whatever a stranger answered."""
    try:
        found = json.loads(body)
        kind, status, detail = str(found["type"]), int(found["status"]), str(found["detail"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return Problem(kind.removeprefix(TYPE), status, detail) if kind.startswith(TYPE) else None
