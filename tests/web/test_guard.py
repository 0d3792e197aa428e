"""Nobody but the one browser that opened the link gets in, and no other site can use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from tests.web.pages import HOST, ORIGIN, Browser, opened, ours, served

from dovetail.web.access import POLICY, Session, refusal
from dovetail.web.uploads import Shelf


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Session]]:
    with opened(tmp_path_factory.mktemp("web")) as made:
        yield made


def asked(session: Session, method: str = "GET", path: str = "/", **headers: str) -> int:
    """The status of the refusal, or 200."""
    sent = {"host": HOST, "cookie": f"{session.cookie_name}={session.cookie}"}
    sent |= {name.replace("_", "-"): text for name, text in headers.items()}
    found = refusal(session, method, path, Headers(sent))
    return 200 if found is None else found[0]


def test_the_link_lets_one_browser_in_once(tmp_path: Path) -> None:
    session = Session(HOST, tmp_path)
    with served(session) as client:
        link = session.link
        assert client.get("/read").status_code == 403
        assert client.get("/enter?token=").status_code == client.get("/enter?token=wrong").status_code == 403
        preview = client.stranger().request("HEAD", link)
        assert preview.status_code == 405 and "set-cookie" not in preview.headers
        first = client.get(link)
        assert first.status_code == 303 and first.headers["location"] == "/"
        for wanted in ("HttpOnly", "SameSite=lax", "Path=/"):
            assert wanted.lower() in first.headers["set-cookie"].lower()
        assert client.get("/read").status_code == 200
        client.client.cookies.clear()
        assert client.get(link).status_code == 403 and client.get("/read").status_code == 403


def test_the_browser_that_was_let_in_may_open_the_link_again(tmp_path: Path) -> None:
    with opened(tmp_path) as (browser, _):
        for token in ("used", "", "x" * 50):
            again = browser.get(f"/enter?token={token}")
            assert again.status_code == 303 and again.headers["location"] == "/" and "set-cookie" not in again.headers
        assert browser.stranger().get("/enter?token=used").status_code == 403


def test_a_used_link_is_no_empty_token(tmp_path: Path) -> None:
    session = Session(HOST, tmp_path)
    assert session.enter(session.link.partition("token=")[2])
    assert not session.enter("")


def test_secrets_have_a_mute_repr(tmp_path: Path) -> None:
    session = Session(HOST, tmp_path)
    assert not any(secret in repr(session) for secret in (session.cookie, session.csrf, session.link[-20:]))


@pytest.mark.parametrize("host", ["evil.example:8470", "127.0.0.1", "127.0.0.1:80", "evil.example", ""])
def test_a_name_that_was_bound_to_this_address_is_refused(browser: tuple[Browser, Session], host: str) -> None:
    client, session = browser
    assert asked(session, host=host) == 421
    assert client.get("/read", headers={"Host": host or "x"}).status_code == 421


def test_the_other_name_of_loopback_is_answered(browser: tuple[Browser, Session]) -> None:
    assert asked(browser[1], host="localhost:8470", origin="http://localhost:8470") == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8470"])
def test_another_origin_is_refused_with_the_right_cookie_and_token(
    browser: tuple[Browser, Session], origin: str
) -> None:
    client, session = browser
    right = ours(session)
    assert client.post("/read/open?name=a.csv", content=b"x", headers=right | {"Origin": origin}).status_code == 403
    assert client.get("/read", headers={"Origin": origin}).status_code == 403


def test_what_changes_something_needs_origin_and_token(browser: tuple[Browser, Session]) -> None:
    _, session = browser
    assert asked(session, "POST", "/read/open", origin=ORIGIN, x_csrf_token=session.csrf) == 200
    assert asked(session, "POST", "/read/open", x_csrf_token=session.csrf) == 403
    assert asked(session, "POST", "/read/open", origin=ORIGIN) == 403
    assert asked(session, "POST", "/read/open", origin=ORIGIN, x_csrf_token=session.cookie) == 403


def test_pages_of_other_sites_cannot_embed_or_fetch_ours(browser: tuple[Browser, Session]) -> None:
    _, session = browser
    for site in ("cross-site", "same-site"):
        assert asked(session, sec_fetch_site=site, sec_fetch_mode="no-cors", sec_fetch_dest="image") == 403
        assert asked(session, sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe") == 403
        assert asked(session, sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="document") == 200
    assert asked(session, sec_fetch_site="same-origin", sec_fetch_mode="cors", sec_fetch_dest="empty") == 200


@pytest.mark.parametrize("cookie", ["", "x", "dovetail_8470=", "dovetail_8470=ü", "other=1; dovetail_8470=x"])
def test_a_wrong_cookie_is_refused(browser: tuple[Browser, Session], cookie: str) -> None:
    assert asked(browser[1], cookie=cookie) == 403


def test_every_route_asks_for_the_cookie_and_has_a_strict_policy(browser: tuple[Browser, Session]) -> None:
    client, _ = browser
    stranger = client.stranger()
    paths = {route.path.replace("{id}", "0") for route in client.app.routes}
    assert len(paths) > 15
    for path in paths - {"/enter"}:
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            refused = stranger.request(method, path)
            assert refused.status_code == 403, (method, path)
            assert refused.headers["content-security-policy"] == POLICY
            assert refused.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY and "*" not in POLICY and "http" not in POLICY


def test_a_fault_is_a_sentence_with_the_same_policy(
    browser: tuple[Browser, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(Shelf, "all", fail)
    answer = browser[0].get("/read")
    assert answer.status_code == 500 and answer.headers["content-security-policy"] == POLICY
    assert answer.text == "A fault inside the program; its terminal says where.\n"


def test_a_closed_thing_is_a_sentence_for_people_and_json_for_scripts(browser: tuple[Browser, Session]) -> None:
    client, _ = browser
    assert (
        client.get("/reports/0", headers={"Accept": "text/html"}).text == "this was closed, or never opened here.\n"
    )
    assert client.get("/jobs/0").json() == {"detail": "there is no such rehearsal."}
