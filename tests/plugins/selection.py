"""Which tests run, and in which order: one shard of them, or all of them in an order drawn from a seed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable
from zlib import crc32

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection")
    group.addoption("--shard", type=shard, metavar="i/n", help="only the i-th of n parts, 1 <= i <= n")
    group.addoption("--order", metavar="SEED", help="modules, and the tests inside each, in an order of its own")


def shard(text: str) -> tuple[int, int]:
    """The part and the number of parts, from "i/n"."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ArgumentTypeError(f"`--shard` must be i/n with 1 <= i <= n, got {text!r}.")
    return int(part), int(parts)


def in_shard(name: str, part: int, parts: int) -> bool:
    """Whether a test belongs to this part; its name alone decides, on every machine and in every process alike."""
    return crc32(name.encode()) % parts == part - 1


def ordered(names: Iterable[str], seed: str) -> list[str]:
    """Names of tests in the order of this seed; a module's tests stay together, for they share its fixtures."""

    def key(name: str) -> tuple[int, int]:
        module = name.partition("::")[0]
        return crc32(f"{seed} {module}".encode()), crc32(f"{seed} {name}".encode())

    return sorted(names, key=key)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"{option}: {value}" for option in ("shard", "order") if (value := config.getoption(option)) is not None]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (chosen := config.getoption("shard")) is not None:
        left = [item for item in items if not in_shard(item.nodeid, *chosen)]
        items[:] = [item for item in items if in_shard(item.nodeid, *chosen)]
        config.hook.pytest_deselected(items=left)
    if (seed := config.getoption("order")) is not None:
        place = {name: number for number, name in enumerate(ordered((item.nodeid for item in items), seed))}
        items.sort(key=lambda item: place[item.nodeid])
