"""Addresses of services: scheme://host[:port][/path], and never a user, a password or a query in it."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from dovetail_protocol.errors import ConfigError

_PLAIN = re.compile(r"[a-z]+://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!-~]*)?", re.ASCII)
MQTT_PORTS = {"mqtt": 1883, "mqtts": 8883}
PLAIN = {"http": "https", "mqtt": "mqtts"}  # what has no TLS, and what has


def place_of(name: str, url: str, schemes: tuple[str, ...]) -> SplitResult:
    """The parts of the endpoint `name`; ConfigError for anything else, which repeats no password.

    >>> place_of("url", "https://example.org:8401", ("http", "https")).port
    8401
    """
    try:
        place = urlsplit(url)
        plain = not (place.username or place.password or place.query or place.fragment)
        good = place.scheme in schemes and bool(place.hostname) and plain and (place.port is None or place.port > 0)
    except ValueError:
        good = False
    if not good:
        wanted = " or ".join(f"{scheme}://host:port" for scheme in schemes)
        raise ConfigError(f"`{name}` must be {wanted}, without user and query; this one is not.")
    return place


def signed_place(name: str, url: str, schemes: tuple[str, ...]) -> str:
    """The endpoint `name` of a signed file, in plain ASCII: parsers of URLs read anything else in different ways.

    >>> signed_place("tokens.url", "https://example.org/a", ("http", "https"))
    'https://example.org/a'
    """
    place_of(name, url, schemes)
    if not _PLAIN.fullmatch(url):
        raise ConfigError(
            f"`{name}` must be {' or '.join(f'{each}://host:port' for each in schemes)} in plain ASCII."
        )
    return url


def leaves_in_the_clear(url: str) -> bool:
    """True if what is sent there leaves the machine without TLS.

    >>> [leaves_in_the_clear(url) for url in ("mqtt://10.0.0.1", "mqtts://10.0.0.1", "http://localhost:8401")]
    [True, False, False]
    """
    place = urlsplit(url)
    return place.scheme in PLAIN and not is_loopback(place.hostname or "")


def require_private(name: str, url: str, *, insecure: bool) -> None:
    """Refuse plain HTTP or MQTT to another machine, unless `insecure` says that somebody answers for it."""
    plain = urlsplit(url).scheme
    if leaves_in_the_clear(url) and not insecure:
        raise ConfigError(
            f"`{name}` must be {PLAIN[plain]}:// beyond this machine: plain {plain.upper()} is read and changed by "
            f"anybody on the way; where something else protects it, allow it with insecure_{plain} "
            f"(--insecure-{plain})."
        )


def is_loopback(host: str) -> bool:
    """True if what is sent to this host stays on the machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("127.0.0.1.example.org")
    (True, True, False, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def topic(digest: bytes) -> str:
    """The MQTT topic of all reports for the campaign file of this digest; one for all devices."""
    return f"dovetail/v1/{digest.hex()}/reports"


def answer_topic(session: str) -> str:
    """The MQTT topic of the answers to one session of a device, whose client id is random and has 32 hex digits.

    >>> answer_topic(32 * "0")
    'dovetail/v1/answers/00000000000000000000000000000000'
    """
    return f"dovetail/v1/answers/{session}"


def is_answer_topic(text: str) -> bool:
    """True if answers may go there: a shuffler publishes nowhere else, whatever a sender asks for."""
    return re.fullmatch("dovetail/v1/answers/[0-9a-f]{32}", text) is not None
