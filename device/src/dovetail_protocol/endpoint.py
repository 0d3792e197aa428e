"""Where a service is reached: scheme://host[:port][/path], and never a user, a password or a query in it."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from dovetail_protocol.errors import ConfigError

MQTT_PORTS = {"mqtt": 1883, "mqtts": 8883}


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


def topic(digest: bytes) -> str:
    """The MQTT topic of all reports for the campaign file of this digest; one for all devices."""
    return f"dovetail/v1/{digest.hex()}/reports"
