"""Write the vectors of a campaign whose people send dummies: a pair with a dummy, and one with a blank."""

from __future__ import annotations

import json
from typing import Any

from tests.device.campaigns import bytes_of, campaign

from dovetail_protocol.messages import inner_info, open_envelope, plain, seal

CHANGES: dict[str, Any] = {
    "randomizer": {"name": "none", "k": 4},
    "promise.trust": "users",
    "promise.assumed_honest": 100,
    "dummies": {"epsilon": 1.0, "delta": 1e-6, "rate": 0.75},
}
PAIRS = ([2, 1], [4, 3])  # an answer and a dummy in some order; a blank and an answer


def vectors() -> dict[str, Any]:
    """The campaign, its secrets, and a message for each pair."""
    made, held = campaign(CHANGES)
    messages = []
    for round, symbols in enumerate(PAIRS, 1):
        plaintext = b"".join(plain(made, made.mechanism.encode(symbol)) for symbol in symbols)
        wire = seal(made, round, plaintext, held.device, bytes_of(f"report {round}", 16))
        envelope = open_envelope(made, wire, held.shuffler.opener())
        messages.append(
            {
                "round": round,
                "symbols": symbols,
                "wire": wire.hex(),
                "inner": envelope.inner.hex(),
                "inner_info": inner_info(made, round).hex(),
                "inner_plaintext": plaintext.hex(),
            }
        )
    secrets = {"shuffler": held.shuffler.secret.hex(), "analyzer": held.analyzer.secret.hex()}
    return {"campaign": made.signed.decode(), "secrets": secrets, "messages": messages}


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
