"""deploy/ as it stands: what compose.yaml names exists, nothing runs as root, and every image is pinned."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dovetail.cli.collect import app

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
README, DOCKERFILE = (DEPLOY / "README.md").read_text(), (DEPLOY / "Dockerfile").read_text()
MADE = {
    "tls",
    "shuffler-store.password",
    "analyzer-store.password",
    "issuer-store.password",
}  # by whoever deploys, see the README
PINNED = r"[\w./-]+:\d+(\.\d+)+[\w.-]*@sha256:[0-9a-f]{64}"
ROLES = ("shuffler", "analyzer", "issuer")
each_service = pytest.mark.parametrize("name", SERVICES)


def mounts(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """(source, target, read-only)."""
    split = [each.split(":") for each in service.get("volumes", [])]
    return [(source, target, mode == ["ro"]) for source, target, *mode in split]


@each_service
def test_every_image_has_a_version_and_a_digest_or_is_built_here(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(PINNED, image) or f"-t {image} ." in DOCKERFILE


def test_the_built_image_stands_on_one_pinned_base() -> None:
    base = re.search(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.M)
    assert base and re.fullmatch(PINNED, base[1])
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"${PYTHON}"}


@each_service
def test_no_service_runs_as_root_or_may_become_it(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"] and "privileged" not in service


@each_service
def test_every_service_has_a_health_check_and_waits_for_healthy_ones_only(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    waits = SERVICES[name].get("depends_on", {})
    assert all(how == {"condition": "service_healthy"} and other in SERVICES for other, how in waits.items())


@each_service
def test_every_mount_exists_and_none_lies_within_a_read_only_one(name: str) -> None:
    found = mounts(SERVICES[name])
    for source, target, readonly in found:
        if source.startswith("./"):
            place = source.removeprefix("./")
            assert readonly and ((DEPLOY / place).exists() or (place in MADE and f"{place}/" in README)), source
        else:
            assert not readonly and source in COMPOSE["volumes"]
        around = [PurePosixPath(other) for _, other, _ in found if other != target]
        assert not any(PurePosixPath(target).is_relative_to(other) for other in around), target
    for secret in SERVICES[name].get("secrets", []):
        assert COMPOSE["secrets"][secret]["file"].removeprefix("./") in MADE


def test_volumes_of_the_built_image_belong_to_its_user_there() -> None:
    made = re.search(r"install -d -o dovetail -g dovetail -m 700 (.*?) *\\?$", DOCKERFILE, re.M)
    assert made and "--uid 10001" in DOCKERFILE
    for service in SERVICES.values():
        if service["image"].startswith("dovetail:"):
            volumes = {target for source, target, _ in mounts(service) if not source.startswith("./")}
            assert volumes <= set(made[1].split()) and service["user"] == "10001:10001"


@pytest.mark.parametrize("name", ROLES)
def test_commands_exist_and_their_configurations_are_mounted(name: str) -> None:
    verb, config = SERVICES[name]["command"]
    assert 'ENTRYPOINT ["/opt/dovetail/bin/dovetail", "collect"]' in DOCKERFILE
    assert CliRunner().invoke(app, [verb, "--help"]).exit_code == 0
    assert config == f"/config/{name}.toml" and (DEPLOY / name / f"{name}.toml").exists()
    assert mounts(SERVICES[name])[0] == (f"./{name}", "/config", True)


def test_plain_http_is_spoken_on_the_loopback_only_and_published_ports_speak_tls() -> None:
    published = {port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])}
    assert published == {"8401", "8402", "8404", "8883"}
    assert "listener 8883\ncertfile" in (DEPLOY / "broker" / "mosquitto.conf").read_text()
    for name in ROLES:
        assert SERVICES[f"{name}-proxy"]["network_mode"] == f"service:{name}"
        listen = re.search(r'^listen = "(.*)"', (DEPLOY / name / f"{name}.toml").read_text(), re.M)
        rules = (DEPLOY / "proxy" / f"{name}.conf").read_text()
        assert listen and listen[1].startswith("127.0.0.1:")
        assert {*re.findall(r"proxy_pass http://(.*?);", rules)} <= {name, listen[1]}
        assert f"proxy_pass http://{listen[1]};" in rules or f"upstream {name} {{\n  server {listen[1]};" in rules
        for place, kind in re.findall(r"listen (\S+?)( ssl)?;", rules):
            assert kind or place.startswith("127.0.0.1:")


def test_databases_and_vault_are_reached_by_their_own_server_only() -> None:
    for store in (f"{role}-store" for role in ROLES):
        inside = [name for name, service in SERVICES.items() if store in service.get("networks", [])]
        assert inside == [store.removesuffix("-store"), store] and COMPOSE["networks"][store] == {"internal": True}
    holders = [
        name for name, service in SERVICES.items() if any(source == "vault" for source, _, _ in mounts(service))
    ]
    assert holders == ["shuffler"] and not any("analyzer" in each for each in SERVICES["shuffler"]["volumes"])
    assert not {*SERVICES["issuer"]["networks"]} & {"between", "shuffler-store", "analyzer-store", "broker"}
    assert all(set(service.get("networks", [])) <= set(COMPOSE["networks"]) for service in SERVICES.values())


def test_what_the_readme_makes_is_ignored_by_git() -> None:
    ignored = (DEPLOY.parent / ".gitignore").read_text()
    for kind in (
        "/deploy/tls/",
        "/deploy/**/*.key",
        "/deploy/**/issuer-keys*",
        "/deploy/**/*.password",
        "/deploy/**/pgpass",
        "/deploy/broker/logins",
    ):
        assert f"\n{kind}\n" in ignored


def test_the_readme_makes_the_folder_that_docker_would_make_as_root() -> None:
    assert "`mkdir deploy/tls`" in README


def test_the_commands_of_the_readme_name_files_that_are_there() -> None:
    for line in re.findall(r"`([^`\n]*(?:docker|python3) [^`]*)`", README):
        for word in shlex.split(line.replace("...", "")):
            if word.startswith("deploy/"):
                assert (DEPLOY.parent / word).exists(), word
