"""`dovetail collect shuffler`, `relay`, `issuer` and `analyzer`: the servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.query import InsecureHttp
from dovetail.core.errors import ConfigError
from dovetail.core.extras import require
from dovetail_protocol.endpoint import is_loopback

# `dovetail collect shuffler`: take sealed reports, break the link to people, hand batches to the analyzer.


def _shuffler(
    config: Annotated[Path, typer.Argument(help="shuffler.toml; paths in it are relative to it.")],
    listen: Annotated[
        str | None, typer.Option(help="host:port instead of that of the file: for one of several processes.")
    ] = None,
) -> None:
    """Run the shuffler until SIGTERM or Ctrl-C; what it has acknowledged is durable, whatever stops it.

    It needs its own keys and never the analyzer's: it cannot read a report, and refuses a key file of another role.
    Prints its URL once it listens; logs are JSON lines on standard error.

    Several processes may run with one file where `store` is PostgreSQL, each with a --listen of its own: all take
    reports, one at a time turns rounds and delivers, and any of them may be killed or restarted.

    Example: dovetail collect shuffler shuffler.toml

    Example: dovetail collect shuffler shuffler.toml --listen 127.0.0.1:8411
    """
    for module in ("uvicorn", "starlette", "sqlalchemy", "prometheus_client", "httpx", "paho.mqtt"):
        require(module, extra="serve")
    from dovetail.collect import logs as server_log
    from dovetail.collect.files import tls_files
    from dovetail.collect.http import run_until_stopped
    from dovetail.collect.shuffler.app import shuffler_app
    from dovetail.collect.shuffler.shuffler_config import assemble, load

    found = load(config)
    if listen is not None:
        found = found.model_copy(update={"listen": listen})
    server_log.setup(sys.stderr)
    service, subscribers = assemble(found, config.parent)
    tls = tls_files(found.tls, config.parent)
    run_until_stopped(
        shuffler_app(service, *subscribers), found.listen, ready=lambda url: typer.echo(f"shuffler at {url}"), **tls
    )


# `dovetail collect relay`: passes sealed requests on, and keeps nothing of them.


def _relay(
    gateway: Annotated[str, typer.Option(help="Where requests go: the shuffler's address with /ohttp.")],
    listen: Annotated[str, typer.Option(help="host:port where devices come.")] = "127.0.0.1:8403",
    certificate: Annotated[Path | None, typer.Option(help="Certificate chain for TLS, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    insecure_http: InsecureHttp = False,
) -> None:
    """Run a relay of oblivious HTTP until SIGTERM or Ctrl-C: it sees who sends, and cannot open what is sent.

    It has no key, writes no log of requests and passes on no header. Let somebody else than the shuffler's operator
    run it: relay and shuffler together know which address sent which report. Any relay that forwards
    message/ohttp-req to one gateway does as well.

    Example: dovetail collect relay --gateway https://shuffler.example.org/ohttp --listen 127.0.0.1:8403
    """
    for module in ("uvicorn", "starlette", "httpx"):
        require(module, extra="serve")
    from dovetail.collect import logs as server_log
    from dovetail.collect.http import host_of, run_until_stopped
    from dovetail.collect.relay import relay_app

    if certificate is None and not insecure_http and not is_loopback(host_of(listen)):
        raise ConfigError(
            f"`--listen` = {listen} is plain HTTP for other machines: give --certificate and --key, or listen on "
            "127.0.0.1 behind a proxy with TLS."
        )
    app = relay_app(gateway, insecure_http=insecure_http)
    server_log.setup(sys.stderr)
    run_until_stopped(app, listen, ready=lambda url: typer.echo(f"relay at {url}"), certificate=certificate, key=key)


# `dovetail collect issuer`: gives each entitled person one token a round, without seeing it.


def _issuer(
    config: Annotated[Path, typer.Argument(help="issuer.toml; paths in it are relative to it.")],
) -> None:
    """Run the issuer of tokens until SIGTERM or Ctrl-C. Experimental: nobody outside has reviewed it yet.

    It alone knows who may take part: by a roster, by invitations, or by accounts of a site. It signs one token for
    each person and round without seeing it, and the shuffler takes one report for each token. Let somebody else than
    the shuffler's operator run it. It signs with the program `openssl`.

    Example: dovetail collect issuer issuer.toml
    """
    for module in ("uvicorn", "starlette", "sqlalchemy", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect import logs as server_log
    from dovetail.collect.clock import SystemClock
    from dovetail.collect.files import tls_files
    from dovetail.collect.http import run_until_stopped
    from dovetail.collect.issuer.app import issuer_app
    from dovetail.collect.issuer.issuer_config import assemble, load

    found = load(config)
    server_log.setup(sys.stderr)
    app = issuer_app(assemble(found, config.parent), SystemClock())
    tls = tls_files(found.tls, config.parent)
    run_until_stopped(app, found.listen, ready=lambda url: typer.echo(f"issuer at {url}"), **tls)


# `dovetail collect analyzer`: the process that opens batches and answers queries.


def _analyzer(
    config: Annotated[Path, typer.Argument(help="analyzer.toml; paths in it are relative to it.", metavar="CONFIG")],
) -> None:
    """Run the analyzer: it takes batches from the shuffler, counts them, answers queries and shows the live page.

    Prints its URL once it listens. SIGTERM or Ctrl-C stops it after the requests under way. Queries need bearer
    tokens, whose SHA-256 digests stand in the file `tokens`; `dovetail collect token` makes and withdraws them.

    Examples:
    dovetail collect analyzer analyzer.toml
    """
    for module in ("starlette", "uvicorn", "sqlalchemy", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect import logs as server_log
    from dovetail.collect.analyzer.analyzer import load
    from dovetail.collect.analyzer.app import run_analyzer

    settings = load(config)
    server_log.setup(sys.stderr)
    run_analyzer(settings, config.parent, lambda url: typer.echo(f"analyzer at {url}"))


VERBS = {"shuffler": _shuffler, "relay": _relay, "issuer": _issuer, "analyzer": _analyzer}
