"""Write the vectors of hand-overs: fixed keys, Ed25519, the line and a whole file. Everything is deterministic."""

from __future__ import annotations

import json
from hashlib import sha256

from tests.device.campaigns import bytes_of, document, toml

from dovetail_protocol.campaign import sign
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.succession import HandOver


def vector(id: str, old_name: str, new_name: str) -> dict[str, str]:
    """One hand-over and the file that follows it."""
    old, new = SigningKey(bytes_of(old_name, 32)), SigningKey(bytes_of(new_name, 32))
    made = HandOver.make(id, old, new.verifying_key())
    asked = {**document(), "id": id, "version": 2}
    asked["keys"] = {**asked["keys"], "owner": str(new.verifying_key())}
    body = toml(asked) + made.line()
    statement = b"dovetail hand-over v1\0" + made.old.public + made.new.public + id.encode()
    return {
        "campaign": id,
        "old_secret": old.secret.hex(),
        "new": str(made.new),
        "statement": statement.hex(),
        "signature": made.signature.hex(),
        "line": made.line().decode(),
        "digest": sha256(body).hexdigest(),
        "file": sign(body, new).decode(),
    }


if __name__ == "__main__":
    print(
        json.dumps([vector("meters", "owner", "second owner"), vector("a-b_C9", "second owner", "owner")], indent=1)
    )
