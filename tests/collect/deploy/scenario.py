"""A collection through all of deploy/, as deploy/README.md says, from secrets to estimates; prints what it found.

`unshare ... python -m tests.collect.deploy.scenario FOLDER`: as root, in namespaces of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.collect.deploy.certificates import make_certificates
from tests.collect.deploy.containers import Composition
from tests.waiting import until

DEPLOY = Path(__file__).parents[3] / "deploy"
BIN = Path(sys.executable).parent
SHUFFLER, ANALYZER, BROKER, ISSUER = (f"{name}.example.org" for name in ("shuffler", "analyzer", "broker", "issuer"))
DOVETAIL, READERS = 10001, 10002


def prepare(folder: Path) -> None:
    """Steps 2 to 4 of the README."""
    shutil.copytree(DEPLOY, folder, ignore=shutil.ignore_patterns("*.key", "tls"))
    make_certificates(folder / "tls", [SHUFFLER, ANALYZER, BROKER, ISSUER])
    os.chown(folder / "tls" / "key.pem", -1, READERS)
    (folder / "tls" / "key.pem").chmod(0o640)
    subprocess.run([sys.executable, folder / "make_secrets.py"], check=True)
    for role in ("owner", "shuffler", "analyzer", "issuer"):
        call(folder, "dovetail", "collect", "keys", role, "--out", f"{role}.key")
    devices = [call(folder, "dovetail-device", "keys", f"device-{number}.key").strip() for number in range(2)]
    call(folder, "dovetail", "collect", "roster", "add", "roster.csv", *devices)
    question = ["--id", "commute", "--question", "How?", "--categories", "walk,bike", "--epsilon", "2"]
    rule = ["--count", "3", "--manual", "--minimum", "2", "--owner", "owner.key.pub"]
    keys = ["--shuffler", "shuffler.key.pub", "--analyzer", "analyzer.key.pub"]
    places = ["--http", f"https://{SHUFFLER}:8401", "--mqtt", f"mqtts://{BROKER}:8883"]
    call(folder, "dovetail", "collect", "new", *question, *rule, *keys, *places)
    call(folder, "dovetail", "collect", "sign", "campaign.toml", "--keys", "owner.key")
    call(folder, "dovetail", "collect", "token-keys", "--rounds", "3", "--out", "issuer-keys")
    bought = ["--issuer", f"https://{ISSUER}:8404", "--token-keys", "issuer-keys.pub", "--out", "with-tokens.toml"]
    call(folder, "dovetail", "collect", "new", *question, *rule, *keys, *places[:2], *bought)
    call(folder, "dovetail", "collect", "sign", "with-tokens.toml", "--keys", "owner.key")
    (folder / "token").write_text("secret-of-the-subscriber\n")
    (folder / "token").chmod(0o600)
    (folder / "analyzer" / "tokens.txt").write_text(f"{sha256(b'secret-of-the-subscriber').hexdigest()} me\n")
    shutil.copy(folder / "roster.csv", folder / "issuer")
    shutil.copy(folder / "with-tokens.toml", folder / "issuer" / "campaign.toml")
    shutil.move(folder / "issuer-keys", folder / "issuer")
    shutil.move(folder / "issuer.key", folder / "issuer")
    for path in (folder / "issuer").rglob("*"):
        os.chown(path, DOVETAIL, DOVETAIL)
    shutil.move(folder / "roster.csv", folder / "shuffler")
    for role in ("shuffler", "analyzer"):
        shutil.copy(folder / "campaign.toml", folder / role)
        shutil.copy(folder / "tls" / "authority.pem", folder / role)
        shutil.move(folder / f"{role}.key", folder / role)
        for path in (folder / role).iterdir():
            os.chown(path, DOVETAIL, DOVETAIL)


def call(folder: Path, program: str, *arguments: str) -> str:
    """What one of our programs prints, run from outside of all containers."""
    known = {**os.environ, "SSL_CERT_FILE": str(folder / "tls" / "authority.pem")}
    done = subprocess.run(
        [BIN / program, *arguments], cwd=folder, env=known, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def collect(folder: Path) -> dict[str, Any]:
    """One report over HTTPS, one over MQTT; the round is closed, and the analyzer asked until it has counted."""
    sent = []
    for number, via in enumerate((["--via", "http"], ["--via", "mqtt", *_LOGIN])):
        words = ["--campaign", "campaign.toml", "--keys", f"device-{number}.key", "--round", "1", "--wait", "600"]
        told = call(folder, "dovetail-device", "submit", "--json", "--value", "walk", *words, *via)
        sent.append(json.loads(told)["receipts"][0]["state"])
        if sent[-1] != "accepted":
            raise RuntimeError(told)
    call(folder, "dovetail", "collect", "close", "campaign.toml", "1", "--keys", "owner.key")
    asked = ["query", f"https://{ANALYZER}:8402", "--token-file", "token", "--json"]
    told = until(lambda: call(folder, "dovetail", "collect", *asked), RuntimeError, pause=1.0)
    words = ["--campaign", "with-tokens.toml", "--keys", "device-0.key", "--outbox", "tokens.outbox", "--ahead", "0"]
    bought = json.loads(call(folder, "dovetail-device", "tokens", "--json", *words))
    return {"sent": sent, "estimates": json.loads(told), "tokens": bought}


_LOGIN = ["--user", "devices", "--password-file", "devices.password"]


def main(place: Path) -> None:
    folder, state = place / "deploy", place / "state"
    state.mkdir()
    prepare(folder)
    site = Composition(folder, state, BIN.parent, {"SSL_CERT_FILE": "/config/authority.pem"})
    site.wire()
    for name in site.services:
        if name not in site.running:
            site.start(name)
    found = collect(folder)
    found["users"] = {name: site.inside(name, ["id", "-u"]).stdout.strip() for name in site.services}
    found["writes"] = {
        name: [
            target
            for target in ("/", "/opt/dovetail", "/config", "/mosquitto/config", "/etc/nginx", "/tls")
            if site.inside(name, ["touch", f"{target}/x"]).returncode == 0
        ]
        for name in site.services
    }
    reach = "import socket, sys; socket.create_connection((sys.argv[1], 5432), 5)"
    found["reaches"] = [
        f"{name}: {store}"
        for name in ("shuffler", "analyzer", "issuer")
        for store in ("shuffler-store", "analyzer-store", "issuer-store")
        for address in (site.address(store, store),)
        if site.inside(name, ["/opt/dovetail/bin/python", "-c", reach, address]).returncode == 0
    ]
    found["stopped"] = {name: site.stop(name) for name in reversed(list(site.running))}
    found["logs"] = {path.stem: path.read_text(errors="replace") for path in state.glob("*.log")}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
