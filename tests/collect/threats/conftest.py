"""One collection with real processes for all tests of this folder: started once, seized before and after release."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from tests.collect.threats import stage as staged
from tests.collect.threats.stage import ADDRESS, ASKING, CLIENT, HEADERS, TOPIC, Sent, Stage, installed
from tests.waiting import PATIENCE, until

from dovetail_protocol.endpoint import topic

DEVICES = 120
SINGLE, CURLED, BROKERED = 70, 1, 5  # reports by their way
SEIZED = 8  # of which the memory is searched


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Shuffler, analyzer and broker, running; nothing sent yet."""
    with staged.stage(tmp_path_factory.mktemp("stage"), devices=DEVICES) as made:
        yield made


@dataclass(frozen=True)
class Seizure:
    """Everything that somebody finds who takes a machine."""

    files: dict[str, bytes] = field(repr=False)
    memory: bytes = field(repr=False)
    told: dict[str, bytes] = field(repr=False)  # what it says over the network


@dataclass(frozen=True)
class Collection:
    """Round 1: what was sent in which order and by which way, and what was seized before and after its release."""

    stage: Stage
    sent: list[Sent] = field(repr=False)  # in order of arrival
    by_curl: str | None  # the status that curl was told
    by_mqtt: int  # messages that another client published
    before: Seizure
    after: Seizure
    analyzer: Seizure


@pytest.fixture(scope="session")
def collection(stage: Stage) -> Collection:
    sent: list[Sent] = []
    _over_http(stage, sent)
    told = _by_curl(stage, sent)
    brokered = _over_mqtt(stage, sent)
    until(lambda: stage.waiting(1) == len(sent), alive=stage.runs)
    until(lambda: len(stage.refused()) > 0, alive=stage.runs)  # a message was refused, and counted
    before = seize_shuffler(stage)
    stage.close(1)
    return Collection(stage, sent, told, brokered, before, seize_shuffler(stage), seize_analyzer(stage))


def _over_http(stage: Stage, sent: list[Sent]) -> None:
    with httpx.Client(
        transport=httpx.HTTPTransport(local_address=ADDRESS), headers=HEADERS, timeout=PATIENCE
    ) as client:
        for place in range(SINGLE):
            sent.append(stage.message(place))
            answer = client.post(f"{stage.shuffler.url}/v1/reports?canary=query", content=sent[-1].wire)
            assert (answer.status_code, answer.content) == (202, b"")
        for bad in (b"canary in a body", sent[0].wire[:-1]):
            assert client.post(f"{stage.shuffler.url}/v1/reports", content=bad).status_code == 400
        assert client.get(f"{stage.shuffler.url}/canary-path").status_code == 404
    with httpx.Client(
        transport=httpx.HTTPTransport(local_address=ADDRESS), headers=ASKING, timeout=PATIENCE
    ) as asker:
        asker.get(f"{stage.analyzer.url}/v1/campaigns", headers={"Authorization": "Bearer canary-token"})


def _by_curl(stage: Stage, sent: list[Sent]) -> str | None:
    curl = installed("curl")
    if curl is None:
        return None
    sent.append(stage.message(len(sent)))
    captured = stage.folder / "captured"
    captured.write_bytes(sent[-1].wire)
    command = [curl, "-sS", "--interface", ADDRESS, "-A", HEADERS["User-Agent"], "-w", "%{http_code}"]
    command += ["--data-binary", f"@{captured}", "-H", "Content-Type: application/octet-stream"]
    done = subprocess.run([*command, f"{stage.shuffler.url}/v1/reports"], capture_output=True, text=True, check=True)
    return done.stdout


def _over_mqtt(stage: Stage, sent: list[Sent]) -> int:
    publish = installed("mosquitto_pub")
    if publish is None or stage.broker is None:
        return 0
    where = topic(stage.campaign.digest)
    for _ in range(BROKERED):
        sent.append(stage.message(len(sent)))
        captured = stage.folder / "captured"
        captured.write_bytes(sent[-1].wire)
        command = [publish, "-h", "127.0.0.1", "-p", str(stage.broker.process.port), "-V", "mqttv5", "-q", "1"]
        command += ["-i", CLIENT, "-t", where, "-f", str(captured), "-D", "publish", "response-topic", TOPIC]
        subprocess.run([*command, "-D", "publish", "user-property", "canary", "canary"], check=True)
        # one after the other, so that arrival has an order
        until(lambda: stage.waiting(1) == len(sent), alive=stage.runs)
    return BROKERED


def seize_shuffler(stage: Stage) -> Seizure:
    names = ("/metrics", "/v1/status", f"/v1/campaigns/{stage.campaign.id}/round", "/healthz", "/readyz")
    told = {name: httpx.get(stage.shuffler.url + name, timeout=PATIENCE).content for name in names}
    return Seizure(stage.shuffler.files(), _memory(stage.shuffler), told)


def seize_analyzer(stage: Stage) -> Seizure:
    campaign = f"/v1/campaigns/{stage.campaign.id}"
    asked = ("status", "estimates", "estimates/latest", "estimates/1", "window?t=1&w=1", "frequencies?t=1")
    names = ["/", "/live", "/metrics", "/v1/campaigns", *(f"{campaign}/{name}" for name in asked)]
    names += [f"{campaign}/{name}" for name in ("guarantee", "export.csv", "export.parquet")]
    return Seizure(stage.analyzer.files(), _memory(stage.analyzer), {name: stage.ask(name) for name in names})


def _memory(server: staged.Server) -> bytes:
    try:
        return server.memory()
    except PermissionError:
        return b""  # tests that need it skip, and say so
