"""The card of claims says what the command line says, and refuses in a line."""

from collections.abc import Iterator
from html import unescape

import pytest
from tests.web.pages import Browser, opened

from dovetail.audit.claim import audit_claim


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("web")) as (made, _):
        yield made


ASKED = {
    "shuffled": ({"epsilon": ".86", "delta": "1e-5", "epsilon0": "8", "n": "1000"}, "impossible"),
    "named": (
        {"epsilon": "0.03", "delta": "1e-6", "epsilon0": "1", "n": "10000", "randomizer": "krr:k=10"},
        "proved",
    ),
    "noise": ({"epsilon": "1", "noise": "laplace", "scale": "2"}, "proved"),
    "a sample": ({"epsilon": "0.1", "epsilon0": "1", "rate": "0.1", "n": ""}, "impossible"),
}


@pytest.mark.parametrize(("asked", "verdict"), ASKED.values(), ids=list(ASKED))
def test_the_verdict_is_that_of_the_command_line(asked: dict[str, str], verdict: str, client: Browser) -> None:
    answer = client.get("/claim", params=asked)
    numbers = {name: text if name in ("noise", "randomizer") else float(text) for name, text in asked.items() if text}
    found = audit_claim(**{name: int(one) if name == "n" else one for name, one in numbers.items()})  # type: ignore
    page = unescape(answer.text)
    assert answer.status_code == 200 and found.verdict == verdict
    assert found.sentence in page and f">{verdict.capitalize()}<" in page and "no proof" in page


def test_an_empty_page_shows_a_claim_that_is_made_in_public(client: Browser) -> None:
    assert "impossible: this attack needs at least 7.99" in unescape(client.get("/claim").text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": "<script>alert(1)</script>"}, "`epsilon` must be"),
        ({"epsilon": "1"}, "a claim needs `epsilon0`"),
        ({"epsilon": "1", "noise": "<script>alert(1)", "scale": "1"}, "`noise` must be one of"),
    ],
)
def test_a_bad_claim_is_refused_in_a_line_and_escaped(wrong: dict[str, str], said: str, client: Browser) -> None:
    answer = client.get("/claim", params=wrong)
    assert answer.status_code == 400 and said in unescape(answer.text)
    assert "<script>alert" not in answer.text and "Traceback" not in answer.text
