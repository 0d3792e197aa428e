"""The page of a survey: one file that any web server can serve, and that works from a disk.

The promise on the page is in odds, and it is the local one: what holds whoever runs the servers. Its script and style
stand in it, named by their hashes in the page's own content security policy, which lets it speak to the shuffler
or its relay, and to the desk of invitations, or the issuer of tokens, alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from dovetail.collect.survey.folder import LANGUAGES, Survey, answers_of, sent_to
from dovetail.core.errors import ConfigError
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.exact_thresholds import WORD, exp_bracket, krr_masses

_HERE = files("dovetail.collect.survey") / "page"
# what the page says, in every language; keys of errors are the kinds of the script's own errors
WORDS = {
    "intro", "odds", "odds_all", "operators_one", "operators_two", "host", "open", "tokens", "how", "table",
    "table_answer", "table_sent", "consent", "send", "sending", "answer_all", "consent_first", "accepted",
    "waiting", "refused", "thanks", "keep", "show", "shown", "not_drawn", "deniable", "results", "ledger",
    "ledger_sum", "state_drawn", "state_sealed", "state_accepted", "state_refused", "answered", "no_invitation",
    "unknown_invitation", "used_invitation", "error_fault", "error_budget", "error_round", "error_storage",
    "error_unsupported", "noscript",
}  # fmt: skip


def words(language: str) -> dict[str, str]:
    """Read the words of the page; ConfigError where a language lacks one, so that no page is half translated."""
    if language not in LANGUAGES:
        raise ConfigError(f"`language` must be one of {', '.join(LANGUAGES)}, got {language!r}.")
    found: dict[str, str] = json.loads((_HERE / f"{language}.json").read_text(encoding="utf-8"))
    if found.keys() != WORDS or not all(found.values()):
        raise ConfigError(f"the words of {language} lack {', '.join(sorted(WORDS ^ found.keys()))}.")
    return found


def odds_factor(epsilon: Fraction) -> str:
    """By how much what is sent can raise the odds of a guess: e^epsilon, rounded up to a tenth, or to two digits.

    >>> odds_factor(Fraction(2)), odds_factor(Fraction(10))
    ('7.4', '23000')
    """
    high = exp_bracket(epsilon)[1]
    tenths = -int(-high * 10 // 1)
    if tenths < 1000:
        return f"{tenths // 10}.{tenths % 10}"
    unit = 10 ** (len(str(int(high))) - 2)
    return str(-int(-high / unit // 1) * unit)


def sent_of_hundred(k: int, epsilon: float) -> list[list[int]]:
    """For each answer: of 100 people who give it, how many send which; by largest remainders, so that they add up.

    >>> sent_of_hundred(4, 2.0)[1]
    [10, 71, 10, 9]
    """
    keep, lie = krr_masses(k, epsilon)
    return [
        _apportion([Fraction(100 * (keep if sent == own else lie), WORD) for sent in range(k)]) for own in range(k)
    ]


def _apportion(shares: Sequence[Fraction]) -> list[int]:
    whole = [int(share) for share in shares]
    left = 100 - sum(whole)
    for place in sorted(range(len(shares)), key=lambda place: whole[place] - shares[place])[:left]:
        whole[place] += 1
    return whole


def build_page(survey: Survey) -> str:
    """The whole page."""
    said = words(survey.language)
    data = _data(survey, said)
    script = (_HERE / "survey.js").read_text(encoding="utf-8")
    style = (_HERE / "survey.css").read_text(encoding="utf-8")
    places = sorted({_origin(sent_to(each)) for each in survey.campaigns} | {_origin(survey.page)})
    places += sorted({_origin(each.tokens.url) for each in survey.campaigns if each.tokens is not None})
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"connect-src {' '.join(places)}; base-uri 'none'; form-action 'none'"
    )
    title = escape(survey.title)
    return f"""<!doctype html>
<html lang="{survey.language}" dir="ltr">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="survey">
<h1>{title}</h1>
<noscript><p>{escape(said["noscript"])}</p></noscript>
</main>
<script type="application/json" id="data">{_inert(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _data(survey: Survey, said: Mapping[str, str]) -> dict[str, Any]:
    together = sum((cost(1, each.mechanism.epsilon) for each in survey.campaigns), Fraction(0))
    return {
        "campaigns": [each.signed.decode() for each in survey.campaigns],
        "questions": [
            _question(one, place, part)
            for place, each in enumerate(survey.campaigns)
            for part, one in enumerate(each.questions)
        ],
        "factor": odds_factor(together),
        "operators": survey.operators,
        "access": survey.access,
        "desk": survey.page.rstrip("/"),
        "results": survey.analyzer.rstrip("/") + "/",
        "words": dict(said),
    }


def _question(campaign: Campaign, place: int, part: int) -> dict[str, Any]:
    """One question: of which campaign, and which of its report's answers; its words are signed in either case."""
    epsilon, answers = campaign.mechanism.epsilon, answers_of(campaign)
    return {
        "campaign": place,
        "part": part,
        "question": campaign.question if campaign.asked is None else campaign.asked.values[0].name,
        "answers": list(answers),
        "sent": sent_of_hundred(len(answers), epsilon),
        "factor": odds_factor(cost(1, epsilon)),
    }


def _inert(data: Any) -> str:
    """JSON that no browser takes for the end of its element."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
