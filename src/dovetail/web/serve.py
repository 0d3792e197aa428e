"""`dovetail web`: a server for one browser, on loopback, with a folder that goes when it ends."""

from __future__ import annotations

import ipaddress
import logging
import os
import tempfile
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path

from dovetail.collect.http.server import run_until_stopped
from dovetail.core.errors import ParameterError
from dovetail.web.access.session import Session
from dovetail.web.app import web_app

LOOPBACK = "127.0.0.1"


def serve(*, host: str, port: int, browse: bool, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `tell` gets the lines for the terminal.

    Raises
    ------
    ParameterError
        For an address that browsers cannot ask for by name.
    OutputError
        When the port is taken.
    """
    numeric = _address(host)
    logging.getLogger("uvicorn.error").addFilter(_one_line)
    with tempfile.TemporaryDirectory(prefix="dovetail-web-") as name:
        folder = Path(name)
        shown = f"[{host}]" if numeric.version == 6 else host
        session = Session(f"{shown}:{port}", folder)

        def ready(url: str) -> None:
            session.authority = url.removeprefix("http://")
            if numeric.is_loopback:
                session.also = (f"localhost:{session.authority.rpartition(':')[2]}",)
            tell(f"Open once, in one browser: {session.link}")
            if not numeric.is_loopback:
                tell("Others can reach this address and read what is sent: use it in a network you trust.")
            tell("Ctrl-C ends it and deletes what was opened.")
            if browse:
                open_browser(session)

        run_until_stopped(web_app(session), f"{shown}:{port}", ready=ready)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        found = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        found = None
    if found is None or found.is_unspecified:
        raise ParameterError(f"`host` must be one address of this machine, such as {LOOPBACK}, got {host}.")
    return found


def _one_line(record: logging.LogRecord) -> bool:
    """A fault in one line of the terminal, unless somebody looks for it."""
    if record.exc_info and not os.environ.get("DOVETAIL_DEBUG"):
        kind = record.exc_info[0]
        record.msg, record.args = (
            "internal fault, %s; run again with DOVETAIL_DEBUG=1.",
            (getattr(kind, "__name__", ""),),
        )
        record.exc_info = None
    return record.levelno >= logging.ERROR


def open_browser(session: Session) -> None:
    """Open the link by a file of our own: other users can read the arguments of a browser, not this file."""
    page = session.folder / "open.html"
    page.touch(mode=0o600)
    link = escape(session.link, quote=True)
    page.write_text(f'<!doctype html><title>Dovetail</title><meta http-equiv="refresh" content="0; url={link}">\n')
    webbrowser.open(page.as_uri())
