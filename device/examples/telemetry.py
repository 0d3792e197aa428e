"""Opt-in counts for a command-line tool: off until somebody says yes, and what was given is a private answer."""

import os
import shutil
import sys
from pathlib import Path

from dovetail_device.entropy import system_entropy
from dovetail_device.files import load_campaign, save_keys
from dovetail_device.session import open_device
from dovetail_protocol.errors import DovetailError
from dovetail_protocol.keys import RoleKeys

CAMPAIGN = Path(os.environ.get("TELEMETRY_CAMPAIGN", Path(__file__).parent / "campaign.toml"))
FOLDER = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "my-tool" / "dovetail-python"
KEY = FOLDER / "device.key"


def preview(answer: str) -> str:
    """Say what would be sent for this answer; nothing is stored, and nothing is sent."""
    asked = load_campaign(CAMPAIGN)
    sent = asked.categories[asked.mechanism.randomize(asked.categories.index(answer), system_entropy())]
    return f"{asked.question} Your answer: {answer}. Sent, for example: {sent} (epsilon {asked.mechanism.epsilon:g})."


def on() -> None:
    """Consent: the folder and its key are made."""
    FOLDER.mkdir(parents=True, mode=0o700, exist_ok=True)
    if not KEY.exists():
        save_keys(RoleKeys.generate("device"), KEY)


def off() -> None:
    """Delete everything."""
    shutil.rmtree(FOLDER, ignore_errors=True)


def count(answer: str) -> str:
    """Count this answer, once a round, if its user has said yes; a fault never stops the tool."""
    if not KEY.exists():
        return "off"
    try:
        with open_device(CAMPAIGN, KEY) as device:
            return device.submit(answer).state
    except DovetailError as error:
        return str(error)


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    print({"preview": preview, "on": on, "off": off, "count": count}[verb](*rest) or verb)
