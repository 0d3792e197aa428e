"""The rehearsal of a trace plan as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dovetail.core.display.losses import upward
from dovetail.report.charts.trace_map import common_frame, trace_map


def render_traces(document: dict[str, Any], picture: dict[str, Any]) -> str:
    """The page of a rehearsal.

    Parameters
    ----------
    document : dict
        As `dovetail trace attack --json` prints it.
    picture : dict
        One trace with its releases, for the maps; nothing is drawn for traces of one coordinate.
    """
    environment = Environment(
        loader=PackageLoader("dovetail.report.render"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["up"] = upward
    return environment.get_template("trace.html.j2").render(document=document, maps=_maps(picture))


def _maps(picture: dict[str, Any]) -> list[tuple[str, Markup]]:
    if len(picture["true"][0]) != 2:
        return []
    panels = picture["panels"]
    frame = common_frame([picture["true"], *(each["released"] for each in panels.values())])
    return [
        (
            f"{name} noise",
            trace_map(
                picture["true"],
                panel["released"],
                secrets=picture["secrets"],
                centres=panel["centres"],
                deviations=panel["deviations"],
                axes=panel["axes"],
                frame=frame,
                title=f"True and released trace, {name} noise",
            ),
        )
        for name, panel in panels.items()
    ]
