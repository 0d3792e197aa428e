"""A configuration says one thing, and every mistake in it gets one clear line."""

import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tomllib import TOMLDecodeError

import pytest
from tests.job.surveys import rehearsal, release
from tests.tiers import tiered

from dovetail.audit.claim import read_claims
from dovetail.collect.analyzer.analyzer import AnalyzerConfig
from dovetail.collect.campaign.terms import draft_campaign
from dovetail.collect.issuer.issuer_config import IssuerConfig
from dovetail.collect.shuffler.shuffler_config import ShufflerConfig
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.job.config import load_config, parse_config
from dovetail.job.questions import questions_of
from dovetail.table.data_section import parse_section

SAMPLES = Path(__file__).parent.parent.parent / "docs" / "samples"


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_documented_sample_is_valid(path: Path) -> None:
    several = questions_of(path)
    assert (several.head if several else load_config(path)).schema_version == 1


MISTAKES = {
    "unknown key": (rehearsal(data={"privat": "x"}), r"unknown key `data\.privat`; did you mean 'private'\?"),
    "unknown section": (
        rehearsal(randomise={"epsilon": 1.0}),
        r"unknown key `randomise`; did you mean 'randomize'\?",
    ),
    "unknown group key": (
        rehearsal(shuffle={"shuffler": "within_groups", "groups": {"label": "age"}}),
        r"unknown key `shuffle\.groups\.label`; did you mean 'labels'\?",
    ),
    "wrong type": (
        rehearsal(randomize={"epsilon": "two"}),
        r"`randomize\.epsilon` must be a number, got 'two'",
    ),
    "epsilon zero": (rehearsal(randomize={"epsilon": 0.0}), r"`randomize\.epsilon` must be greater than 0, got 0\.0"),
    "epsilon negative": (rehearsal(randomize={"epsilon": -1.0}), r"`randomize\.epsilon` must be greater than 0"),
    "epsilon infinite": (rehearsal(randomize={"epsilon": float("inf")}), r"`randomize\.epsilon` must be"),
    "epsilon not a number": (rehearsal(randomize={"epsilon": float("nan")}), r"`randomize\.epsilon` must be"),
    "delta": (rehearsal(promise={"delta": 1.5}), r"`promise\.delta` must be less than 1"),
    "unknown randomizer": (
        rehearsal(randomize={"randomizer": "rr"}),
        r"\[randomize\] `randomizer` must be one of .*krr.*, got 'rr'; did you mean 'krr'\?$",
    ),
    "missing key": ({"schema_version": 1, "mode": "release"}, r"`data` is missing"),
    "schema": (rehearsal(schema_version=2), r"`schema_version` must be 1, got 2"),
    "by not public": (
        rehearsal(estimate={"by": ["agee"]}),
        r"column 'agee' is not listed in \[data\] public; did you",
    ),
    "reserved name": (rehearsal(data={"public": ["report_5"]}), r"'report_5' has a name that the reports need"),
    "two roles": (rehearsal(data={"public": ["secret"]}), r"column 'secret' has more than one role"),
    "groups missing": (rehearsal(shuffle={"shuffler": "mallows", "alpha": 1.0}), r"'mallows' needs `groups`"),
    "alpha missing": (
        rehearsal(shuffle={"shuffler": "mallows", "groups": {"labels": "age"}}),
        r"'mallows' needs `alpha`",
    ),
    "release with a seed": (release(seed=1), r"refuses `seed`"),
    "release without categories": (release(data={"categories": None}), r"must declare `categories`"),
    "release that compares": (release(shuffle={"compare": ["uniform"]}), r"`compare` is for rehearsals"),
    "release with an attack": (release(attack={"votes": 3}), r"\[attack\] needs the truth"),
    "release unshuffled": (release(shuffle={"shuffler": "identity"}), r"a release must shuffle"),
    "numbers through krr": (
        rehearsal(data={"categories": None, "lower": 0.0, "upper": 1.0}),
        r"randomizer 'krr' does not fit",
    ),
    "bounds upside down": (
        rehearsal(data={"categories": None, "lower": 2.0, "upper": 1.0}),
        r"`lower` must be below",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_line(mistake: str) -> None:
    raw, message = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config(raw, name="survey.toml")
    for line in str(caught.value).splitlines():
        assert line.startswith("survey.toml: ")


STRANGE = ["[]", "{}", '""', "-1", "nan", "1e400", f'"{"x" * 10_000}"', "true", "0.5", "[[1]]", "2020-01-01"]


def with_each_key_changed(text: str, value: str) -> Iterator[str]:
    """The same file with one of its keys after the other, also those in comments, set to a value."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (key := re.match(r"(?:#{1,2} )?([a-z_0-9]+) *= *", line)) and not line.startswith("# signed"):
            yield "\n".join([*lines[:number], f"{key[1]} = {value}", *lines[number + 1 :]])


def read_claims_of(text: str, place: Path) -> None:
    place.write_text(text)
    for claim in read_claims(place):
        with suppress(UnsupportedError):
            claim.audit()


def read_questions_of(text: str, place: Path) -> None:
    place.write_text(text)
    questions_of(place)


READERS: dict[str, Callable[[str, Path], object]] = {
    "claims": read_claims_of,
    "questions": read_questions_of,
    "campaign": lambda text, _: draft_campaign(text.partition("# signed")[0].encode()),
    **{
        name: lambda text, place, kind=kind: parse_section(kind, tomllib.loads(text), name=str(place))
        for name, kind in {"shuffler": ShufflerConfig, "analyzer": AnalyzerConfig, "issuer": IssuerConfig}.items()
    },
}


@pytest.mark.parametrize(
    "sample",
    tiered(sorted(SAMPLES.glob("**/*.toml")), first=lambda path: path.stem != "claims"),
    ids=lambda path: path.stem,
)
@pytest.mark.parametrize("value", STRANGE, ids=lambda value: value[:12])
def test_a_strange_value_of_any_key_is_taken_or_refused_in_words(sample: Path, value: str, tmp_path: Path) -> None:
    read = READERS.get(sample.stem, lambda text, place: parse_config(tomllib.loads(text), name=str(place)))
    for text in with_each_key_changed(sample.read_text(), value):
        try:
            read(text, tmp_path / sample.name)
        except (ConfigError, TOMLDecodeError) as refusal:
            assert not re.search("a valid (string|list|number|integer|boolean|dictionary)|NoneType", str(refusal))


def test_files_that_are_no_configuration_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="is a directory"):
        load_config(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_text("mode = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_config(broken)
    broken.write_bytes(b"title = '\xff'")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_config(broken)


def test_a_data_path_is_relative_to_its_configuration(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "survey.toml"
    place.parent.mkdir()
    place.write_text(
        'schema_version = 1\nmode = "rehearsal"\n[data]\npath = "t.csv"\nprivate = "x"\n[randomize]\nepsilon = 1.0\n'
    )
    assert load_config(place).data.path == str(tmp_path / "deep" / "t.csv")
