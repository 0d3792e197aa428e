"""Papers for the reviewer of a release: the public register's entry, questions and answers, a label of one page."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from dovetail.core.display import upward
from dovetail.report.number_format import Document, missing_reason

OPEN = "FILL IN"
FILES = ("register_entry.yaml", "questions.md", "label.html")
TOTAL = "Over several campaigns or releases about the same people only the total of a person is a guarantee."
REGISTER = "github.com/opendp/deployments-registry-data, schema of commit 3e9c812a"


def dossier(document: Document) -> dict[str, str]:
    """The three files of a dossier, by name; what only a person knows stands there as FILL IN.

    Parameters
    ----------
    document : dict
        report.json of a release.
    """
    return dict(zip(FILES, (_entry(document), _questions(document), _label(document)), strict=True))


# What several of them say.


def odds(epsilon: float, delta: float = 0.0) -> tuple[int, int]:
    r"""Of 100 releases: how often a rule may be wrong about a no, and how often it is then right about a yes at most.

    .. math:: 100 \frac{1 - \delta}{1 + e^\epsilon} \text{ rounded down}, \quad
              100 \frac{e^\epsilon + \delta}{1 + e^\epsilon} \text{ rounded up}

    >>> odds(1.0), odds(0.1), odds(4.0)
    ((26, 74), (47, 53), (1, 99))
    """
    wrong = 100.0 * (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))
    return math.floor(wrong), math.ceil(100.0 - wrong)


def odds_sentence(epsilon: float, delta: float = 0.0) -> str:
    """The odds in words; the condition on the rule is part of it."""
    wrong, right = odds(epsilon, delta)
    return (
        f"A rule that wrongly thinks you answered yes in no more than {wrong} of 100 such releases if you answered "
        f"no, thinks so in at most {right} of 100 if you answered yes."
    )


def _rows(document: Document) -> list[tuple[str, float, float]]:
    """Whom one trusts, and the guarantee then, the weakest first."""
    rows = document["verdict"]["rows"]
    return [(row["who"], float(row["epsilon"]), float(row["delta"])) for row in rows]


def _promises(document: Document) -> list[str]:
    found = []
    for who, epsilon, delta in _rows(document):
        number = f"epsilon {upward(epsilon)}, delta {upward(delta)}" if math.isfinite(epsilon) else "no guarantee"
        found.append(f"Trusting {who}: {number}.")
    return found


def _shuffled(document: Document) -> bool:
    return missing_reason(document["central"]) is None and document["shuffler"] != "identity"


def _where(document: Document) -> str:
    """Who makes the noise."""
    local = document["local"]
    if missing_reason(local) is None and math.isfinite(float(local["epsilon"])):
        return "Each answer is randomized on its device before anything is sent."
    return "Answers are sent as they are; noise is added before anything is released."


def _unit(document: Document) -> str:
    rounds = missing_reason(document.get("rounds", {"value": None, "reason": ""})) is None
    return "one value of a person in one round" if rounds else "all that one person reports in this release"


def _mechanism(document: Document) -> str:
    randomizer = document["randomizer"]
    label = randomizer.get("label") or randomizer.get("reason") or "several randomizers"
    settings = ", ".join(f"{name} {value}" for name, value in (randomizer.get("parameters") or {}).items())
    return (
        f"{label}{f' ({settings})' if settings else ''}, dovetail {document['version']}; whole numbers are drawn "
        "from the operating system's entropy, no floating-point probability decides"
    )


def _sources(document: Document) -> str:
    central, local = document["central"], document["local"]
    stated = [block["source"] for block in (local, central) if missing_reason(block) is None and "source" in block]
    return "; ".join(dict.fromkeys(stated)) or "none stated"


def _composition(document: Document) -> str:
    stated = document["release"]
    total = float(stated.get("total_epsilon", math.inf))
    if not math.isfinite(total):
        return f"No local epsilon bounds what a person spends over all releases. {TOTAL}"
    account = f"Releases about these people: {stated['releases']}, in total of local epsilon {upward(total)}."
    return f"Local epsilons of one person add up. {account} {TOTAL}"


def _domain(document: Document) -> str:
    collection = document["collection"]
    names = collection.get("categories")
    values = (
        f"one of {len(names)} declared categories" if isinstance(names, list) else "a value of the declared range"
    )
    column = collection.get("private", "the column")
    return f"All tables in which each of {collection['n']:,} people has {values} of {column}."


def _unprotected(document: Document) -> str:
    collection = document["collection"]
    columns = ", ".join(map(str, collection.get("published", collection.get("public", [])))) or "none"
    n = collection["n"]
    return f"Who took part and when, the number of reports ({n:,}); columns published unchanged: {columns}."


# The register's entry: YAML in which every text is in double quotes, as its checker wants.


def _entry(document: Document) -> str:
    shuffled, made = _shuffled(document), str(document["made"])
    block = document["central"] if shuffled else document["local"]
    epsilon, delta = float(block.get("epsilon") or math.inf), float(block.get("delta") or 0.0)
    name = str(document["title"] or "Survey")
    slug = "_".join(re.sub(r"\W+", "_", part.lower()) for part in (name, OPEN, made[:4])).replace("_", "-")
    parameters: dict[str, Any] = {"epsilon": epsilon, **({"delta": delta} if delta > 0.0 else {})}
    known = math.isfinite(epsilon)
    entry: dict[str, Any] = {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [OPEN],
                "intended_use": OPEN,
                "data_product_type": "Summary statistics",
                "data_product_region": OPEN,
                "description": f"Estimates from the reports of {document['collection']['n']:,} people. {OPEN}",
                "publication_date": made,
            },
            "dp_variant": {
                **({"variant_name": "Approximate DP" if delta > 0.0 else "Pure DP"} if known else {}),
                "data_domain": _domain(document),
                "unprotected_quantities": _unprotected(document),
            },
            "privacy_loss": {
                "privacy_unit": _unit(document),
                "privacy_unit_details": (
                    f"Tables are adjacent if {_unit(document)} is replaced by anything else. "
                    "The number of people is public."
                ),
                **({"privacy_parameters": parameters} if known else {}),
                "privacy_parameters_details": " ".join([*_promises(document), f"By: {_sources(document)}.", TOTAL]),
            },
            "deployment_model": {
                "model_name": "Shuffle" if shuffled else "Local",
                "model_name_details": _where(document),
                "actors": (
                    f"Devices; a shuffler, run by {OPEN}; a collector, run by {OPEN}; readers of the report. "
                    f"Shuffler and collector do not collude, because {OPEN}. " + " ".join(document["assumptions"])
                ),
                "release_type": "One release" if document["release"].get("releases", 1) == 1 else "Many releases",
                "release_type_details": f"{_composition(document)} Plans for further releases: {OPEN}",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Estimates and intervals are computed from the released reports alone.",
                "composition": _composition(document),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"What was looked at before, if counted: {OPEN}",
                "mechanisms": f"{_mechanism(document)}. Access controls, timing, retention: {OPEN}",
                "justification": f"Why this epsilon, and who approved it: {OPEN}",
            },
            "administrative": {
                "notes": (
                    f"Written from report.json, SHA-256 of its configuration {document['digests']['configuration']}."
                ),
                "registry_authors": [OPEN],
            },
        },
    }
    head = f"# For {REGISTER}. Fill in every {OPEN}; then run its scripts/update_slug.py and scripts/check.py.\n"
    return head + "\n".join(_yaml(entry, 0)) + "\n"


def _yaml(node: dict[str, Any], depth: int) -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield f"{'  ' * depth}{key}:"
            yield from _yaml(value, depth + 1)
        elif isinstance(value, list):
            yield f"{'  ' * depth}{key}:"
            yield from (f"{'  ' * (depth + 1)}- {_quoted(one)}" for one in value)
        else:
            yield f"{'  ' * depth}{key}: {_quoted(value) if isinstance(value, str) else _plain(value)}"


def _plain(number: float) -> str:
    """A number as YAML 1.1 reads one: with a point before its exponent."""
    text = repr(number)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _quoted(text: str) -> str:
    """A text in double quotes; JSON's escapes are YAML's."""
    return json.dumps(" ".join(text.replace("\\", "/").split()), ensure_ascii=False)


# Questions, in the order of the pyramid of NIST SP 800-226; the wording is ours.


def _questions(document: Document) -> str:
    estimates, attack = document["estimates"], document["attack"]
    tried = missing_reason(attack)
    bias = estimates.get("overall", {}).get("bias_bound", 0.0)
    sections = {
        "Which guarantee, for which unit?": (
            "proved",
            [
                f"The unit is {_unit(document)}; its value is replaced.",
                *_promises(document),
                f"By: {_sources(document)}.",
                TOTAL,
            ],
        ),
        "Which algorithm, and how accurate?": (
            "proved",
            [f"{_mechanism(document)}.", "Intervals of level 95 percent stand beside every estimate in the report."],
        ),
        "Are some people's numbers worse than others'?": (
            "proved, where the report says so",
            [
                f"The bias of the estimates is at most {bias:g}; small groups have wide intervals or none.",
                f"Who is missing from the data, and what follows from that: {OPEN}",
            ],
        ),
        "Which side channels are closed?": (
            "promised by a person",
            [
                "Draws are exact whole-number arithmetic; floating-point noise is never released.",
                f"Timing, access, logs, retention: {OPEN}",
            ],
        ),
        "Whom must people trust?": (
            "promised by a person",
            [*document["assumptions"], f"Who runs shuffler and collector, and why they do not collude: {OPEN}"],
        ),
        "What does the collection itself expose?": (
            "promised by a person",
            [_unprotected(document), f"Addresses and times before the shuffler, copies, consent: {OPEN}"],
        ),
        "What was tested?": (
            "measured",
            [
                f"Attacks on this release: {tried or 'see the report'}.",
                "`dovetail audit release` checks this folder from outside; `dovetail audit mechanism` the code of "
                "devices. A passed audit is no proof.",
            ],
        ),
    }
    lines = [
        f"# Questions of a reviewer: {document['title']}",
        "",
        "In the order of the pyramid of NIST SP 800-226 (2025). The wording is ours: check it against the document.",
    ]
    for question, (kind, answers) in sections.items():
        lines += ["", f"## {question}", "", f"*{kind}*", "", *(f"- {answer}" for answer in answers)]
    return "\n".join(lines) + "\n"


# The label: one page for the people whose answers these are.


def _label(document: Document) -> str:
    rows = "".join(
        f"<tr><td>{escape(who)}</td><td>{escape(_number(epsilon))}</td><td>{escape(_odds(epsilon, delta))}</td></tr>"
        for who, epsilon, delta in _rows(document)
    )
    title, n = escape(str(document["title"])), document["collection"]["n"]
    facts = "".join(
        f"<li>{escape(line)}</li>" for line in (_unprotected(document), _composition(document), *_open_label())
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Privacy label: {title}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}}
table{{border-collapse:collapse}}
td,th{{border:1px solid #888;padding:.4em;text-align:left;vertical-align:top}}</style>
<h1>{title}</h1>
<p>{n:,} people answered. {_where(document)} What somebody can still learn about your answer depends on whom you
trust; every line compares with another answer in your place.</p>
<table><tr><th>if you trust</th><th>epsilon, at most</th><th>what a release tells</th></tr>{rows}</table>
<p>That you took part is no secret.</p>
<ul>{facts}</ul>
</html>
"""


def _number(epsilon: float) -> str:
    return upward(epsilon) if math.isfinite(epsilon) else "none"


def _odds(epsilon: float, delta: float) -> str:
    return odds_sentence(epsilon, delta) if math.isfinite(epsilon) else "Nothing is promised."


def _open_label() -> list[str]:
    return [f"Who asks, what for, and whom to write to: {OPEN}"]
