"""Plain HTTP and MQTT leave a machine only where somebody has said so: servers, links, devices, every command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.collect.analyzer import world as analyzer_world
from tests.collect.shuffler import world as shuffler_world

from dovetail.cli.collect.query import ServerClient
from dovetail.cli.main import invoke
from dovetail.collect.analyzer import analyzer as analyzer_config
from dovetail.collect.files import save_keys
from dovetail.collect.shuffler import shuffler_config
from dovetail.core.errors import ConfigError
from dovetail_device.__main__ import main as device
from dovetail_device.http import HttpTransport
from dovetail_device.mqtt import MqttTransport
from dovetail_device.session import transport_of
from dovetail_protocol.endpoint import is_loopback
from dovetail_protocol.keys import RoleKeys

FAR = ["http://shuffler.example.org:8401", "http://192.0.2.7", "http://10.0.0.1:80", "http://[2001:db8::1]:80"]
NEAR = ["http://127.0.0.1:8401", "http://127.8.9.1", "http://localhost:1", "http://[::1]:80"]
FAR_BROKERS = ["mqtt://broker.example.org", "mqtt://192.0.2.7:1883", "mqtt://[2001:db8::1]"]
OPEN = ["0.0.0.0:0", "192.0.2.7:0", "[::]:0", "shuffler:0"]


def _save(keys: RoleKeys, path: Path) -> None:
    path.unlink(missing_ok=True)
    save_keys(keys, path)


def shuffler_place(folder: Path, **changes: Any) -> shuffler_config.ShufflerConfig:
    """A configuration with its files."""
    (folder / "c.toml").write_bytes(shuffler_world.campaign().signed)
    shuffler_world.roster().save(folder / "roster.csv")
    _save(shuffler_world.SHUFFLER, folder / "s.key")
    files = {"campaigns": ["c.toml"], "keys": "s.key", "roster": "roster.csv", "analyzer": "http://127.0.0.1:1"}
    return shuffler_config.ShufflerConfig.model_validate({"schema_version": 1, **files, **changes})


def analyzer_place(folder: Path, **changes: Any) -> analyzer_config.AnalyzerConfig:
    (folder / "c.toml").write_bytes(analyzer_world.campaign().signed)
    _save(analyzer_world.ANALYZER, folder / "a.key")
    files = {"campaigns": ["c.toml"], "keys": "a.key"}
    return analyzer_config.AnalyzerConfig.model_validate({"schema_version": 1, **files, **changes})


@pytest.mark.parametrize("listen", OPEN)
def test_no_server_listens_beyond_the_machine_without_tls_unless_told(listen: str, tmp_path: Path) -> None:
    servers: list[tuple[Any, Any]] = [
        (shuffler_place, shuffler_config.assemble),
        (analyzer_place, analyzer_config.assemble),
    ]
    for number, (place, assemble) in enumerate(servers):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(ConfigError, match=r"plain HTTP for other machines.*insecure_http") as refused:
            assemble(place(folder, listen=listen), folder)
        assert listen in str(refused.value) and "\n" not in str(refused.value)
        for fine in ({"insecure_http": ["listen"]}, {"tls": {"certificate": "c.pem", "key": "k.pem"}}):
            assemble(place(folder, listen=listen, **fine), folder)


@pytest.mark.parametrize("url", FAR)
def test_the_shuffler_hands_batches_over_plain_http_only_where_it_is_told(url: str, tmp_path: Path) -> None:
    for said in ([], ["listen"]):
        with pytest.raises(ConfigError, match="`analyzer` must be https://"):
            shuffler_config.assemble(shuffler_place(tmp_path, analyzer=url, insecure_http=said), tmp_path)
    shuffler_config.assemble(shuffler_place(tmp_path, analyzer=url, insecure_http=["analyzer"]), tmp_path)


@pytest.mark.parametrize("url", FAR)
def test_clients_refuse_plain_http_to_other_machines_unless_told(url: str) -> None:
    for make in (HttpTransport, ServerClient):
        with pytest.raises(ConfigError, match=r"must be https:// beyond this machine.*--insecure-http"):
            make(url)
        make(url, insecure_http=True)
        make(url.replace("http", "https"))


@pytest.mark.exhaust
@pytest.mark.parametrize("url", FAR_BROKERS)
def test_no_password_and_no_report_goes_to_a_far_broker_in_the_clear_unless_told(url: str, tmp_path: Path) -> None:
    asked = shuffler_world.campaign()
    with pytest.raises(ConfigError, match=r"must be mqtts:// beyond this machine.*--insecure-mqtt") as refused:
        MqttTransport(url, asked)
    assert "\n" not in str(refused.value)
    with pytest.raises(ConfigError, match="must be mqtts://"):  # plain HTTP was allowed, and nothing else
        transport_of(asked, "mqtt", url, insecure_http=True)
    MqttTransport(url, asked, insecure_mqtt=True)
    MqttTransport(url.replace("mqtt", "mqtts", 1), asked)
    with pytest.raises(ConfigError, match=r"`mqtt.url` must be mqtts://.*insecure_mqtt"):
        shuffler_config.assemble(shuffler_place(tmp_path, mqtt={"url": url}), tmp_path)
    for section in ({"url": url, "insecure_mqtt": True}, {"url": url.replace("mqtt", "mqtts", 1)}):
        shuffler_config.assemble(shuffler_place(tmp_path, mqtt=section), tmp_path)


def test_on_one_machine_plain_mqtt_needs_no_flag(tmp_path: Path) -> None:
    for url in ("mqtt://127.0.0.1:1883", "mqtt://localhost", "mqtt://[::1]:1883"):
        MqttTransport(url, shuffler_world.campaign())
        shuffler_config.assemble(shuffler_place(tmp_path, mqtt={"url": url}), tmp_path)


@pytest.mark.parametrize("url", NEAR)
def test_on_one_machine_plain_http_needs_no_flag(url: str) -> None:
    assert HttpTransport(url).url == url
    ServerClient(url)


def test_hosts_that_only_look_like_this_machine_are_others() -> None:
    for host in ("", "0.0.0.0", "::", "127.0.0.1.example.org", "localhost.example.org", "128.0.0.1", "::2"):
        assert not is_loopback(host), host


def test_a_device_that_sends_by_broker_asks_its_questions_over_https_too() -> None:
    asked = shuffler_world.campaign()
    asked.endpoints.update({"mqtt": "mqtt://broker", "http": FAR[0]})
    for via in ("mqtt", "http"):
        with pytest.raises(ConfigError, match="must be https://"):
            transport_of(asked, via, insecure_mqtt=True)  # type: ignore[arg-type]


def test_devices_say_which_flag_a_far_broker_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign, key = tmp_path / "c.toml", str(tmp_path / "device.key")
    campaign.write_bytes(shuffler_world.campaign().signed)
    device(["keys", key])
    words = ["submit", "--campaign", str(campaign), "--keys", key, "--via", "mqtt", "--url", "mqtt://b.invalid"]
    words += ["--value", "1", "--round", "1"]
    runs: list[Any] = [device, lambda words: invoke(["collect", *words])]
    for run in runs:
        capsys.readouterr()
        assert run(words) == 2
        assert "--insecure-mqtt" in capsys.readouterr().err
        assert run([*words, "--insecure-mqtt"]) == 0  # it waits: nobody answers there
        assert "--insecure-mqtt" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["query", "status", "close", "submit"])
def test_every_command_refuses_and_has_the_flag(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_TOKEN", "sesame")
    campaign, owner, key = (str(tmp_path / name) for name in ("c.toml", "owner.key", "device.key"))
    Path(campaign).write_bytes(shuffler_world.campaign(rounds=shuffler_world.BY_HAND).signed)
    save_keys(shuffler_world.OWNER, Path(owner))
    device(["keys", key])
    words = {
        "query": ["http://a.invalid"],
        "status": ["http://a.invalid"],
        "close": [campaign, "1", "--keys", owner, "--shuffler", "http://a.invalid"],
        "submit": [
            "--campaign",
            campaign,
            "--keys",
            key,
            "--url",
            "http://a.invalid",
            "--value",
            "1",
            "--round",
            "1",
        ],
    }[verb]
    runs: list[Any] = [lambda more: invoke(["collect", verb, *words, *more])]
    if verb == "submit":
        runs.append(lambda more: device(["submit", *words, *more]))
    for run in runs:
        capsys.readouterr()
        assert run([]) == 2
        assert "--insecure-http" in capsys.readouterr().err
        run(["--insecure-http"])
        assert "--insecure-http" not in capsys.readouterr().err
