"""Pages from templates: one style sheet, one script, everything that is shown escaped."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dovetail.report.number_format import upward
from dovetail.web.access import Session

_TYPES = {"css": "text/css", "js": "text/javascript"}


class Pages:
    """Renders templates of this room with what every page needs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._environment = Environment(
            loader=PackageLoader("dovetail.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(upward=upward)

    def __call__(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one."""
        text = self._environment.get_template(f"{template}.html.j2").render(csrf=self._session.csrf, **values)
        return HTMLResponse(text, status)


def static_routes() -> list[Route]:
    """Style and scripts, from the package itself."""
    return [Route(f"/static/{name}", _static(name)) for name in ("web.css", "web.js", "htmx.min.js")]


@lru_cache(maxsize=8)
def static_text(name: str) -> str:
    """A file of ours; the style sheet begins with that of the reports."""
    text = files("dovetail.web").joinpath(f"static/{name}").read_text(encoding="utf-8")
    return report_style() + text if name == "web.css" else text


def report_style() -> str:
    """The style sheet of every report."""
    return files("dovetail.report").joinpath("templates/report.css").read_text(encoding="utf-8")


def _static(name: str) -> Any:
    async def answer(_: Request) -> Response:
        return Response(static_text(name), media_type=_TYPES[name.rpartition(".")[2]])

    return answer
