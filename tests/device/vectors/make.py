"""Write the message vectors: fixed keys, a campaign per suite and per rule of mixing, three messages each."""

from __future__ import annotations

import json
from typing import Any

from tests.device.campaigns import bytes_of, campaign

from dovetail_protocol.messages import inner_info, open_envelope, outer_info, plain, seal

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("x25519", "krr", {}),
    ("x25519", "hadamard", {"batch.small": "merge", "groups.names": ["north", "south"]}),
    ("mlkem768-x25519", "laplace", {}),
]


def vectors() -> list[dict[str, Any]]:
    """One entry per campaign."""
    return [_entry(suite, name, changes) for suite, name, changes in CASES]


def _entry(suite: str, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    made, held = campaign(changes, name=name, suite=suite)
    messages = []
    for round in (1, 2, 24):
        report = made.mechanism.encode(
            made.mechanism.decode(bytes(made.mechanism.report_bytes - 1) + bytes([round % 4]))
        )
        plaintext = plain(made, report, made.groups[round % 2] if made.groups else None)
        wire = seal(made, round, plaintext, held.device, bytes_of(f"report {round}", 16))
        envelope = open_envelope(made, wire, held.shuffler.opener())
        messages.append(
            {
                "round": round,
                "wire": wire.hex(),
                "outer_info": outer_info(made, round).hex(),
                "report_id": envelope.report_id.hex(),
                "device": envelope.device.public.hex(),
                "inner": envelope.inner.hex(),
                "inner_info": inner_info(made, round).hex(),
                "inner_plaintext": plaintext.hex(),
                "report": report.hex(),
            }
        )
    return {
        "campaign": made.signed.decode(),
        "digest": made.digest.hex(),
        "secrets": {
            "suite": suite,
            "owner": held.owner.secret.hex(),
            "device": held.device.secret.hex(),
            "shuffler": held.shuffler.secret.hex(),
            "analyzer": held.analyzer.secret.hex(),
        },
        "messages": messages,
    }


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
