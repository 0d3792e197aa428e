"""Running an app on uvicorn: no access log, no belief in proxy headers, no name of the software, a clean stop."""

from __future__ import annotations

import gc
import signal
import ssl
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from dovetail.collect.http import limits
from dovetail.collect.http.request_deadline import RequestDeadline
from dovetail.collect.http.sockets import bind, url_of
from dovetail.core.errors import ConfigError, OutputError


def uvicorn_server(app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Server:
    """A server of `app`, with TLS if there are both files; `run` runs it, tests may serve it in their own loop."""
    if (certificate is None) != (key is None):
        raise ConfigError("`tls.certificate` and `tls.key` must be given together, or neither.")
    if certificate is not None and key is not None:
        _check_pair(certificate, key)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=RequestDeadline,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.MOST_CONNECTIONS,
            timeout_keep_alive=int(limits.SECONDS),
            timeout_graceful_shutdown=limits.STOP_SECONDS,
            h11_max_incomplete_event_size=limits.MOST_HEAD,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )


def run_until_stopped(
    app: ASGIApp,
    listen: str,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are finished first, then the app's lifespan ends.

    `ready` gets the URL once the address is bound.
    """
    made, bound = uvicorn_server(app, certificate=certificate, key=key), bind(listen)
    ready(url_of(bound, tls=certificate is not None))
    gc.freeze()  # what is loaded stays: a full collection that walks it, and the roster, stops everything for 0.3 s
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        made.run(sockets=[bound])
    except KeyboardInterrupt:  # uvicorn raises the signal again, after everything has ended in order
        return
    if not made.started:
        raise OutputError("the server could not start; its log says why.")


def _check_pair(certificate: Path, key: Path) -> None:
    for name, path in (("certificate", certificate), ("key", key)):
        if not path.is_file():
            raise ConfigError(f"`tls.{name}`: {path} is no file.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError:  # OpenSSL's words for this tell nobody anything
        raise ConfigError(
            f"`tls`: {certificate} and {key} must be a certificate chain and its key in PEM, without a pass phrase."
        ) from None
