"""GPX tracks in and out: latitude, longitude and time of every point; elevation, speed and names are left behind."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import polars as pl

from dovetail.core.errors import DataError

_SPACE = "http://www.topografix.com/GPX/1/1"


def read_gpx(path: Path) -> pl.DataFrame:
    """Columns trace, time (text), latitude, longitude; one trace for each track segment."""
    try:
        if not path.is_file():
            raise DataError(f"{path}: no such file.")
        # the parser of Python 3.11 (expat 2.4 and later) refuses documents whose entities explode
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except ElementTree.ParseError as error:
        raise DataError(f"{path}: is not readable as GPX: {error}.") from None
    rows = []
    for number, segment in enumerate(root.iter(f"{{{_space(root)}}}trkseg" if _space(root) else "trkseg"), start=1):
        for point in segment:
            stamp = next((child.text for child in point if child.tag.endswith("time")), None)
            rows.append((str(number), stamp, point.get("lat"), point.get("lon")))
    if any(None in row for row in rows):
        bad = next(i for i, row in enumerate(rows, start=1) if None in row)
        raise DataError(f"{path}: every point wants lat, lon and time; point {bad} lacks one.")
    return pl.DataFrame(rows, schema=["trace", "time", "latitude", "longitude"], orient="row")


def write_gpx(frame: pl.DataFrame, place: Path) -> None:
    """One track segment for each trace."""
    if "latitude" not in frame.columns:
        raise DataError(f"{place}: GPX holds latitude and longitude; write metres as CSV or Parquet.")
    ElementTree.register_namespace("", _SPACE)
    root = ElementTree.Element(f"{{{_SPACE}}}gpx", {"version": "1.1", "creator": "dovetail"})
    for part in frame.partition_by("trace", maintain_order=True):
        segment = ElementTree.SubElement(ElementTree.SubElement(root, f"{{{_SPACE}}}trk"), f"{{{_SPACE}}}trkseg")
        for row in part.iter_rows(named=True):
            at = {"lat": f"{row['latitude']:.7f}", "lon": f"{row['longitude']:.7f}"}
            point = ElementTree.SubElement(segment, f"{{{_SPACE}}}trkpt", at)
            ElementTree.SubElement(point, f"{{{_SPACE}}}time").text = str(row["time"])
    ElementTree.ElementTree(root).write(place, encoding="utf-8", xml_declaration=True)


def _space(root: ElementTree.Element) -> str:
    """The document's own namespace: GPX 1.0, 1.1 or none."""
    return root.tag[1:].partition("}")[0] if root.tag.startswith("{") else ""
