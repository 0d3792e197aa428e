"""A configuration says one thing, and every mistake in it gets one clear line."""

from pathlib import Path

import pytest
from tests.job.surveys import rehearsal, release

from dovetail.core.errors import ConfigError
from dovetail.job.config import load_config, parse_config
from dovetail.job.questions import questions_of

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
        r"`randomize\.epsilon` must be a valid number, got 'two'",
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
