"""Campaigns for tests, with fixed keys: the text of a good file, and changes to it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import shake_256
from typing import Any

from dovetail.core.stages import RANDOMIZERS
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import OpeningKey, SigningKey
from dovetail_protocol.mechanism import names

SECRETS = {"x25519": 32, "mlkem768-x25519": 96}

MECHANISMS: dict[str, dict[str, Any]] = {
    **{
        kind.name: {field.name: getattr(kind.examples()[1], field.name) for field in fields(kind)}  # type: ignore[arg-type]
        for kind in RANDOMIZERS
        if kind.name in names()
    },
    "krr": {"k": 4, "epsilon": 1.0},
    "hadamard": {"k": 20, "epsilon": 2.0},
    "unary": {"k": 5, "epsilon": 1.5},
    "local_hashing": {"k": 300, "epsilon": 1.0},
    "laplace": {"lower": 0.0, "upper": 50.0, "epsilon": 1.0, "grid": 1.5625},
    "window": {"lower": 0.0, "upper": 50.0, "epsilon": 2.0, "grid": 0.5, "window": 60},
    "budget_laplace": {"lower": 10.0, "upper": 50.0, "epsilon": 2.0, "beta": 0.2, "rho": 0.9, "grid": 0.0390625},
}


def bytes_of(name: str, count: int) -> bytes:
    """Fixed bytes under a name, for keys that protect nobody."""
    return shake_256(b"dovetail test key: " + name.encode()).digest(count)


@dataclass(frozen=True)
class Keys:
    """Every secret of a campaign."""

    owner: SigningKey
    device: SigningKey
    shuffler: OpeningKey
    shuffler_signing: SigningKey
    analyzer: OpeningKey


def keys(suite: str = "x25519") -> Keys:
    """The same keys in every run."""
    return Keys(
        SigningKey(bytes_of("owner", 32)),
        SigningKey(bytes_of("device", 32)),
        OpeningKey(suite, bytes_of("shuffler", SECRETS[suite])),
        SigningKey(bytes_of("shuffler signing", 32)),
        OpeningKey(suite, bytes_of("analyzer", SECRETS[suite])),
    )


Document = dict[str, Any]


def document(*, name: str = "krr", suite: str = "x25519") -> Document:
    """A good campaign as a table of tables."""
    held = keys(suite)
    return {
        "schema_version": 1,
        "id": "meters",
        "version": 1,
        "question": "How many kilowatts do you draw?",
        "randomizer": {"name": name, **MECHANISMS[name]},
        "rounds": {"schedule": "period", "start": "2030-01-01T00:00:00Z", "period_seconds": 3600.0, "count": 24},
        "batch": {"minimum": 100},
        "shuffle": {"shuffler": "uniform"},
        "promise": {"delta": 1e-6, "device_budget": 1000.0},
        "keys": {
            "suite": suite,
            "owner": str(held.owner.verifying_key()),
            "analyzer": str(held.analyzer.sealing_key()),
            "shuffler": str(held.shuffler.sealing_key()),
            "shuffler_signing": str(held.shuffler_signing.verifying_key()),
        },
    }


def toml(document: Document) -> bytes:
    """The table of tables as TOML; texts that look like dates are written as dates."""
    top = [f"{name} = {_value(value)}" for name, value in document.items() if not isinstance(value, dict)]
    lines = ["# A campaign for tests.", *top]
    for name, table in document.items():
        if isinstance(table, dict):
            lines += [f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join([*lines, ""]).encode()


def changed(base: Document, path: str, value: Any) -> Document:
    """A copy of `base` with `table.key` set to `value`, or taken out for `...`."""
    copy: Document = {name: dict(table) if isinstance(table, dict) else table for name, table in base.items()}
    table, _, key = path.rpartition(".")
    place = copy.setdefault(table, {}) if table else copy
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return copy


def campaign(
    changes: dict[str, Any] | None = None, *, name: str = "krr", suite: str = "x25519"
) -> tuple[Campaign, Keys]:
    """A signed and verified campaign, with `table.key` = value changes, and every secret of it."""
    asked = document(name=name, suite=suite)
    for path, value in (changes or {}).items():
        asked = changed(asked, path, value)
    held = keys(suite)
    return Campaign.parse(sign(toml(asked), held.owner)), held


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        dated = len(value) > 18 and value[4] == "-" and value[10] == "T"
        return value if dated else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
