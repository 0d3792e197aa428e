"""Where a server listens."""

from __future__ import annotations

import socket

from dovetail.core.errors import ConfigError, OutputError


def bind(listen: str) -> socket.socket:
    """A listening socket for `host:port`; port 0 takes a free one."""
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        said = str(error.strerror).partition(" (")[0]  # Python appends the address again
        raise OutputError(f"{listen}: cannot listen there ({said}).") from None


def host_of(listen: str) -> str:
    """The host of `host:port`, or of `[host]:port`."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ConfigError(f"`listen` must be host:port, such as 127.0.0.1:8401, got {listen!r}.")
    return host.strip("[]")


def url_of(bound: socket.socket, *, tls: bool = False) -> str:
    """Where a bound socket is reached."""
    host, port = bound.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
