"""What a container daemon makes of deploy/compose.yaml, with a kernel alone: the same mounts, networks and users.

Every service gets a root of its own (an overlay of this machine's), read-only where compose.yaml says so, with the
mounts of compose.yaml in the order of their targets; a network namespace with one leg in each of its networks, where
the names of its neighbours resolve; the user, the groups and none of the capabilities of anybody. What is not the
images': programs are those of this machine, and PostgreSQL's image's entry point is imitated.

It has to run as root, in mount, network and process namespaces of its own (see `NAMESPACES`), with which everything
goes when it ends.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.waiting import PATIENCE, until

NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_USERS = {"postgres": 999, "nginx": 101, "mosquitto": 1883, "dovetail": 10001}  # of the images
_SOURCE = Path(__file__).parents[3]
_LIBRARY = "/opt/source/src:/opt/source/device/src"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass
class Composition:
    """The services of a compose file in `folder`, whose state goes to `state`."""

    folder: Path
    state: Path
    virtual_environment: Path
    extra: dict[str, str] = field(default_factory=dict)  # environment of every service
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        document = yaml.safe_load((self.folder / "compose.yaml").read_text())
        self.services: dict[str, dict[str, Any]] = document["services"]
        self._subnets = {name: f"10.77.{number}" for number, name in enumerate(document["networks"])}
        self._hosts = {name: number for number, name in enumerate(self.services, 10)}

    # networks

    def wire(self) -> None:
        """A bridge for each network, a namespace for each service that has networks, a leg in each of them."""
        _run("mount -t tmpfs tmpfs /run && ip link set lo up")
        for network, subnet in self._subnets.items():
            _run(f"ip link add name br-{network[:11]} type bridge && ip link set br-{network[:11]} up")
            if network == "outside":
                _run(f"ip addr add {subnet}.1/24 dev br-outside")
        for name, service in self.services.items():
            if "networks" not in service:
                continue
            _run(f"ip netns add {name} && ip -n {name} link set lo up")
            for network in service["networks"]:
                leg = f"v{self._hosts[name]}-{list(self._subnets).index(network)}"
                _run(
                    f"ip link add {leg} type veth peer name eth{leg} && ip link set {leg} master br-{network[:11]} up"
                    f" && ip link set eth{leg} netns {name}"
                    f" && ip -n {name} addr add {self.address(name, network)}/24 dev eth{leg}"
                    f" && ip -n {name} link set eth{leg} up"
                )
        with Path("/etc/hosts").open() as known:
            mine = known.read() + self.neighbours(["outside"]) + self._public()
        (self.state / "hosts").write_text(mine)
        _run(f"mount --bind {self.state / 'hosts'} /etc/hosts")

    def address(self, name: str, network: str) -> str:
        return f"{self._subnets[network]}.{self._hosts[name]}"

    def neighbours(self, networks: list[str]) -> str:
        """Lines of /etc/hosts: whoever shares a network, under its name and its aliases there."""
        lines = "127.0.0.1 localhost\n"
        for network in networks:
            for name, service in self.services.items():
                member = service.get("networks", {})
                if network in member:
                    aliases = (member[network] or {}).get("aliases", []) if isinstance(member, dict) else []
                    lines += f"{self.address(name, network)} {' '.join([name, *aliases])}\n"
        return lines

    def _public(self) -> str:
        """What the public name service says: every name of a service that is reached from outside."""
        lines = ""
        for name, service in self.services.items():
            members = service.get("networks", [])
            if "outside" in members:
                aliases = [alias for each in members.values() if each for alias in each.get("aliases", [])]
                lines += f"{self.address(name, 'outside')} {' '.join([name, *aliases])}\n"
        return lines

    # services

    def start(self, name: str) -> None:
        """Start a service, whose dependencies are healthy, and wait until it is healthy too."""
        for other in self.services[name].get("depends_on", {}):
            if other not in self.running:
                self.start(other)
        with (self.state / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(["bash", "-euc", self._script(name)], stdout=log, stderr=log)
        try:
            until(lambda: self.check(name) == 0, alive=lambda: self.running[name].poll() is None, pause=0.5)
        except AssertionError:
            raise RuntimeError(f"{name}: {(self.state / f'{name}.log').read_text()[-3000:]}") from None

    def check(self, name: str) -> int:
        """The exit status of the service's health check, run inside it as it stands."""
        words = self.services[name]["healthcheck"]["test"]
        assert words[0] == "CMD"
        return self.inside(name, words[1:]).returncode

    def inside(self, name: str, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in a running service, as its user."""
        enter = ["nsenter", "-t", str(self.running[name].pid), "-m", "-n", "chroot", str(self._root(name))]
        command = [*enter, *self._drop(name), "env", "-i", *self._environment(name), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def stop(self, name: str) -> int:
        """Stop a service as compose would, and its exit status."""
        process = self.running.pop(name)
        process.send_signal(2 if self.services[name].get("stop_signal") == "SIGINT" else 15)
        return process.wait(PATIENCE)

    def _root(self, name: str) -> Path:
        return self.state / "roots" / name / "root"

    def _script(self, name: str) -> str:
        """From a network namespace to the service's program; the process stays the same throughout."""
        inner = "\n".join([*self._mounts(name), "exec " + shlex.join(self._program(name))])
        return f"exec ip netns exec {self._network(name)} unshare --mount bash -euc {shlex.quote(inner)}"

    def _network(self, name: str) -> str:
        mode = str(self.services[name].get("network_mode", f"service:{name}"))
        return mode.removeprefix("service:")

    def _mounts(self, name: str) -> list[str]:
        service, root, base = self.services[name], self._root(name), self._root(name).parent
        lines = [
            f"mkdir -p {base} && mount -t tmpfs tmpfs {base} && mkdir {base}/upper {base}/work {root}",
            f"mount -t overlay overlay -o lowerdir=/,upperdir={base}/upper,workdir={base}/work {root}",
            f"mkdir -p {root}/opt/dovetail {root}/opt/source {root}/proc {root}/dev",
            f"mount --bind {self.virtual_environment} {root}/opt/dovetail",
            f"mount --bind {_SOURCE} {root}/opt/source",  # which the environment may only link to
            *(f"chmod o+x {root}{each}" for each in _interpreter(self.virtual_environment).parents),
            f"mount --rbind /proc {root}/proc && mount --rbind /dev {root}/dev",
            *(f"echo {user}-image:x:{uid}:{uid}::/:/bin/sh >> {root}/etc/passwd" for user, uid in _USERS.items()),
            f"rm {root}/etc/hosts && echo {shlex.quote(self._names(name))} > {root}/etc/hosts",
        ]
        for source, target, readonly in sorted(self._sources(name), key=lambda each: each[1]):
            folder = target if source.is_dir() else str(Path(target).parent)
            lines += [f"mkdir -p {root}{folder}", "" if source.is_dir() else f"touch {root}{target}"]
            lines += [f"mount --bind {source} {root}{target}"]
            lines += [f"mount -o remount,ro,bind {root}{target}"] if readonly else []
        for each in service.get("tmpfs", []):
            target, _, options = each.partition(":")
            place = f"{root}{target.replace('/var/run', '/run')}"  # a link, which would lead out of the root
            lines.append(f"mkdir -p {place} && mount -t tmpfs -o {options or 'mode=1777'} tmpfs {place}")
        if service.get("read_only"):
            lines.append(f"mount -o remount,ro {root}")
        return lines

    def _names(self, name: str) -> str:
        return self.neighbours(list(self.services[self._network(name)]["networks"]))

    def _sources(self, name: str) -> list[tuple[Path, str, bool]]:
        """(source, target, read-only) of every mount; a volume is a folder that is its user's, as in the images."""
        service, found = self.services[name], []
        for each in service.get("volumes", []):
            source, target, *mode = each.split(":")
            if source.startswith("."):
                found.append((self.folder / source, target, mode == ["ro"]))
                continue
            place = self.state / "volumes" / source
            if not place.exists():
                place.mkdir(parents=True, mode=0o700)
                os.chown(place, *map(int, service["user"].split(":")))
            found.append((place, target, False))
        for secret in service.get("secrets", []):
            found.append((self.folder / f"{secret}.password", f"/run/secrets/{secret}", True))
        return found

    def _drop(self, name: str) -> list[str]:
        """No more than the service's user: no capabilities, no new privileges."""
        user, group = self.services[name]["user"].split(":")
        groups = ",".join([group, *self.services[name].get("group_add", [])])
        assert self.services[name]["cap_drop"] == ["ALL"]
        return [
            *("setpriv", "--reuid", user, "--regid", group, "--groups", groups, "--no-new-privs"),
            *("--inh-caps=-all", "--bounding-set=-all"),
        ]

    def _environment(self, name: str) -> list[str]:
        postgres = max(map(str, Path("/usr/lib/postgresql").glob("*/bin")), default="")
        known = {"PATH": f"{postgres}:{_PATH}", "HOME": "/", "PYTHONPATH": _LIBRARY}
        known |= {"PYTHONUNBUFFERED": "1", "NUMBA_CACHE_DIR": "/tmp"}  # as the Dockerfile has them
        known |= self.extra | self.services[name].get("environment", {})
        return [f"{key}={value}" for key, value in known.items()]

    def _program(self, name: str) -> list[str]:
        service = self.services[name]
        command = service["command"]
        if service["image"].startswith("dovetail"):
            words = ["/opt/dovetail/bin/python", "-m", "dovetail", "collect", *command]  # as the image's entry point
        elif service["image"].startswith("postgres"):
            words = ["bash", "-euc", _POSTGRES, *command]
        else:
            words = [*service["entrypoint"], *command]
        return ["chroot", str(self._root(name)), *self._drop(name), "env", "-i", *self._environment(name), *words]


_POSTGRES = """
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
  pwfile="$POSTGRES_PASSWORD_FILE"
  initdb -D $data -U "$POSTGRES_USER" --pwfile "$pwfile" -A scram-sha-256 -E UTF8 --locale=C -N > /tmp/initdb
  echo "host all all all scram-sha-256" >> $data/pg_hba.conf
  echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D $data postgres > /dev/null
fi
exec "$0" -D $data -c listen_addresses='*' "$@"
"""


def _interpreter(virtual_environment: Path) -> Path:
    """The program behind the environment's links; it may lie where only root looks."""
    return (virtual_environment / "bin" / "python").resolve()


def _run(script: str) -> None:
    subprocess.run(["bash", "-euc", script], check=True)
