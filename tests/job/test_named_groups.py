"""Groups of lists, of a network and of several kinds, one line of everybody, and scores, from a configuration."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomlkit

import dovetail as dt
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.missing import Missing
from dovetail.engine.supported import refuse_unsupported
from dovetail.job.attacks import ColumnKnowledge, attacks
from dovetail.job.build import build_collection, terms
from dovetail.job.collection import Collection
from dovetail.job.config import load_config, parse_config
from dovetail.job.rehearse import _request
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort

PEOPLE = 12
TABLE = pl.DataFrame(
    {
        "name": [f"p{i}" for i in range(PEOPLE)],
        "age": [20 + i // 2 for i in range(PEOPLE)],
        "score": [7 * i % PEOPLE for i in range(PEOPLE)],
        "answer": ["no", "yes"] * (PEOPLE // 2),
    }
)
FRIENDS = [("p0", "p1"), ("p1", "p2"), ("p4", "p5"), ("p5", "absent"), ("absent", "p6")]
TEAMS = [("red", "p0"), ("red", "p3"), ("red", "p3"), ("blue", "p7"), ("blue", "absent"), ("blue", "p8")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("friends", FRIENDS), ("teams", TEAMS)):
        pl.DataFrame(rows, schema=["one", "other"], orient="row").write_csv(tmp_path / f"{name}.csv")
    TABLE.write_csv(tmp_path / "table.csv")
    return tmp_path


def asked(shuffle: dict[str, Any]) -> dict[str, Any]:
    data = {"path": "table.csv", "private": "answer", "categories": ["no", "yes"], "person": "name"}
    head = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "randomize": {"epsilon": 2.0}}
    return {**head, "data": {**data, "public": ["age", "score"]}, "shuffle": shuffle}


def built(folder: Path, **shuffle: Any) -> Collection:
    place = folder / "run.toml"
    place.write_text(tomlkit.dumps(asked(shuffle)))
    return build_collection(load_config(place), simulation(1))


def named(collection: Collection) -> set[frozenset[str]]:
    names = collection.survey.people["name"].to_list()
    groups = collection.shuffler.guarantee.groups
    assert isinstance(groups, Groups)
    return {frozenset(names[i] for i in groups.members(g)) for g in range(len(groups))}


NEIGHBOURHOODS = {
    frozenset(one) for one in ({"p0", "p1"}, {"p0", "p1", "p2"}, {"p1", "p2"}, {"p4", "p5"}, {"p5", "p6"})
}  # the last one shares a friend whom the table does not have
LISTED = {frozenset({"p0", "p3"}), frozenset({"p7", "p8"})}


def test_a_network_groups_everybody_with_friends_whatever_the_order_of_the_table(folder: Path) -> None:
    found = built(folder, shuffler="mallows", alpha=2.0, groups={"edges": "friends.csv", "ids": "name"})
    assert named(found) == NEIGHBOURHOODS
    two = built(folder, shuffler="mallows", alpha=2.0, groups={"edges": "friends.csv", "ids": "name", "hops": 2})
    # a friend of a friend counts, also by way of somebody whom the table does not have
    assert named(two) == {frozenset({"p0", "p1", "p2"}), frozenset({"p4", "p5"}), frozenset({"p4", "p5", "p6"}),
                          frozenset({"p5", "p6"})}  # fmt: skip


def test_lists_group_those_whom_the_table_has(folder: Path) -> None:
    found = built(folder, shuffler="within_groups", groups={"lists": "teams.csv", "ids": "name"})
    assert named(found) == LISTED and found.shuffler.guarantee.alpha == 0.0
    assert found.asked["shuffle"]["groups"]["lists"] == "teams.csv"  # and not the folder that it lies in


@pytest.mark.exhaust
def test_groups_of_several_kinds_are_all_kept(folder: Path) -> None:
    also = [{"lists": "teams.csv", "ids": "name"}, {"edges": "friends.csv", "ids": "name"}]
    found = built(folder, shuffler="best", alpha=2.0, groups={"labels": "age", "also": also})
    ages = {frozenset({f"p{i}", f"p{i + 1}"}) for i in range(0, PEOPLE, 2)}
    assert named(found) == ages | LISTED | NEIGHBOURHOODS
    assert ColumnKnowledge(found.survey, found.groups, []).columns == ["age"]


def test_one_line_of_everybody_and_scores_are_settings(folder: Path) -> None:
    groups = {"labels": "age", "radius": 1.0}
    one = built(folder, shuffler="mallows", line="single", alpha=2.0, groups=groups).shuffler
    other = built(folder, shuffler="noisy_sort", scores="score", alpha=2.0, groups=groups)
    assert isinstance(one, Mallows) and isinstance(other.shuffler, NoisySort)
    assert one.thetas.tolist() == Mallows.single(one.groups, alpha=2.0).thetas.tolist() and one.line.components == 1
    assert np.array_equal(other.shuffler.scores, other.survey.public["score"].cast(pl.Int64).to_numpy())


@pytest.mark.parametrize(("shuffle", "told"), [
    ({"groups": {"edges": "friends.csv"}}, "`ids`, the column that names people, goes with"),
    ({"groups": {"labels": "age", "ids": "name"}}, "`ids`, the column that names people, goes with"),
    ({"groups": {"labels": "age", "edges": "friends.csv", "ids": "name"}}, "takes either `labels`"),
    ({"groups": {"labels": "age", "hops": 2}}, "`hops` goes with `edges`"),
    ({"groups": {"lists": "teams.csv", "ids": "name", "radius": 1.0}}, "`radius` goes with"),
    ({"groups": {"lists": "teams.csv", "ids": "nome"}}, "'nome' is not listed in [data] public"),
    ({"shuffler": "noisy_sort", "scores": "nope", "groups": {"labels": "age"}}, "[shuffle] scores: column 'nope'"),
    ({"line": "single", "shuffler": "within_groups", "groups": {"labels": "age"}}, "`line` goes with"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_in_one_line(folder: Path, shuffle: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(folder, **{"shuffler": "mallows", "alpha": 1.0, **shuffle})
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_name_nobody_and_scores_that_are_no_whole_numbers_are_refused(folder: Path) -> None:
    pl.DataFrame({"one": ["q1"], "other": ["q2"]}).write_csv(folder / "friends.csv")
    with pytest.raises(DataError, match="names nobody of the column 'name', such as 'q1'"):
        assert built(folder, shuffler="mallows", alpha=1.0, groups={"edges": "friends.csv", "ids": "name"}).shuffler
    TABLE.with_columns(pl.lit(0.5).alias("score")).write_csv(folder / "table.csv")
    with pytest.raises(DataError, match=r"column 'score': `scores` must be whole numbers, got 0\.5"):
        assert built(folder, shuffler="noisy_sort", scores="score", alpha=1.0, groups={"labels": "age"}).shuffler
    with pytest.raises(DataError, match="age"):  # two people of one name
        assert built(folder, shuffler="mallows", alpha=1.0, groups={"lists": "teams.csv", "ids": "age"}).shuffler


def test_the_ledger_knows_the_contents_of_a_file_and_no_older_release_anew(folder: Path) -> None:
    groups = {"lists": str(folder / "teams.csv"), "ids": "name"}
    first = terms(parse_config(asked({"shuffler": "within_groups", "groups": groups})))
    (folder / "teams.csv").rename(folder / "moved.csv")
    groups["lists"] = str(folder / "moved.csv")
    assert terms(parse_config(asked({"shuffler": "within_groups", "groups": groups}))) == first
    (folder / "moved.csv").write_text("one,other\nred,p0\nred,p1\n")
    assert terms(parse_config(asked({"shuffler": "within_groups", "groups": groups}))) != first
    older = terms(parse_config(asked({"shuffler": "within_groups", "groups": {"labels": "age"}})))
    assert b'"groups": {"labels": "age", "nearest": null, "points": null, "radius": null}' in older


@pytest.mark.parametrize("shuffle", [
    {"shuffler": "within_groups", "groups": {"lists": "teams.csv", "ids": "name"}},
    {"shuffler": "mallows", "alpha": 1.0, "line": "single", "groups": {"labels": "age"}},
])  # fmt: skip
def test_files_are_drawn_without_what_needs_everybody_in_one_memory(shuffle: dict[str, Any]) -> None:
    config = parse_config(asked(shuffle))
    with pytest.raises(UnsupportedError, match="in one memory"):
        refuse_unsupported(config)


def test_friends_vote_on_one_another_and_no_bound_is_stated_of_people_whom_a_network_tells_apart(
    tmp_path: Path,
) -> None:
    n = 60  # rings of six who hold one value
    ring = [(6 * (i // 6) + i % 6, 6 * (i // 6) + (i + 1) % 6) for i in range(n)]
    table = pl.DataFrame(
        {"name": [str(i) for i in range(n)], "answer": [["no", "yes"][i // 6 % 2] for i in range(n)]}
    )
    edges = str(tmp_path / "edges.csv")
    pl.DataFrame(ring, schema=["one", "other"], orient="row").write_csv(edges)
    groups = {"edges": edges, "ids": "name"}
    data = {"private": "answer", "categories": ["no", "yes"], "person": "name"}
    config = parse_config({"schema_version": 1, "mode": "rehearsal", "seed": 1, "data": data, "randomize":
                           {"epsilon": 3.0}, "shuffle": {"shuffler": "mallows", "alpha": 9.0, "groups": groups},
                           "attack": {"attacks": ["majority"], "votes": 3}})  # fmt: skip
    found = build_collection(config, simulation(1), table=table)
    told = attacks(found, config.attack, np.arange(n), simulation(2), lambda *_: None)
    assert not isinstance(told, Missing)
    one = told["majority vote"]
    assert not isinstance(one, Missing) and isinstance(one.bound, Missing)
    assert one.success > 0.9 > 0.5 == one.chance  # a vote is right with .95, and mostly of the ring


def test_a_release_keeps_groups_that_name_people_and_digests_their_file(folder: Path) -> None:
    config = {
        **asked({"shuffler": "within_groups", "groups": {"lists": "teams.csv", "ids": "name"}}),
        "mode": "release",
    }
    del config["seed"]
    place, prints = folder / "run.toml", list[str]()
    for team in ("blue", "blue", "red"):
        rows = [*TEAMS[:-1], (team, "p8")]
        pl.DataFrame(rows, schema=["one", "other"], orient="row").write_csv(folder / "teams.csv")
        place.write_text(tomlkit.dumps(config))
        collection = build_collection(load_config(place), simulation(1))
        prints.append(_request(collection).groups.hex())
    assert prints[0] == prints[1] != prints[2]
    report = dt.run(place, ledger=folder / "ledger", out=folder / "out")
    assert report.evaluation.order.guarantee.protects
