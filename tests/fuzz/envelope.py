"""Coverage-guided fuzzing of everything that strangers can send: `python tests/fuzz/envelope.py [libFuzzer options]`.

Each input is tried as a message, as the sealed part of one, as an outer plaintext, as a batch header, as a campaign
file and as a problem document. Anything but the documented refusal ends the run.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["dovetail_device", "dovetail.collect"]):
    from dovetail.collect.batch import Header, head_bytes
    from dovetail.collect.http import read_problem
    from dovetail_protocol.campaign import Campaign
    from dovetail_protocol.errors import ConfigError
    from dovetail_protocol.messages import Rejected, open_envelope, outer_info

from contextlib import suppress

from tests.device.campaigns import campaign

CAMPAIGN, KEYS = campaign()
OPENER = KEYS.shuffler.opener()
SHUFFLER = KEYS.shuffler_signing.verifying_key()
HEAD = b"DVTL\1" + CAMPAIGN.digest + (3).to_bytes(4, "big")


def one_input(data: bytes) -> None:
    """Must return, whatever the data are."""
    sealed = CAMPAIGN.shuffler.seal(data, outer_info(CAMPAIGN, 3))
    for message in (data, HEAD + data, HEAD + sealed):
        with suppress(Rejected):
            open_envelope(CAMPAIGN, message, OPENER)
            raise SystemExit("a forged message was opened")
    with suppress(Rejected):
        head_bytes(data)
    with suppress(Rejected):
        Header.peek(b"DVTB\1" + len(data).to_bytes(4, "big") + data + bytes(64))
    with suppress(Rejected):
        Header.read(data, SHUFFLER)
        raise SystemExit("a forged batch was read")
    with suppress(ConfigError):
        Campaign.parse(data + CAMPAIGN.signed[-97:])
    read_problem(data)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
