"""GeoJSON in and out: lines with a time for each of their points, or points with a time each (RFC 7946)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.errors import DataError

GEOJSON = (".geojson", ".json")
_TIMES = "coordTimes"  # as converters from GPX write it

Row = dict[str, Any]


def read_geojson(path: Path) -> pl.DataFrame:
    """One point a row: latitude, longitude, time, and for points all of their properties."""
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError:
        raise DataError(f"{path}: is no JSON document.") from None
    try:
        features = form["features"] if form["type"] == "FeatureCollection" else [form]
        rows = [row for number, feature in enumerate(features, 1) for row in _rows(feature, str(number))]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise DataError(
            f"{path}: must be GeoJSON features: points with a property such as time, or lines with one time for each "
            f"point in the property {_TIMES}."
        ) from None
    names = dict.fromkeys(name for row in rows for name in row)
    texts = {name: [None if row.get(name) is None else str(row[name]) for row in rows] for name in names}
    return pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String))


def _rows(feature: Row, number: str) -> Iterator[Row]:
    shape, properties = feature["geometry"], dict(feature.get("properties") or {})
    if shape["type"] == "Point":
        yield {**properties, **_place(shape["coordinates"])}
        return
    times = properties.pop(_TIMES)
    lines = {"LineString": [shape["coordinates"]], "MultiLineString": shape["coordinates"]}[shape["type"]]
    stamps = [times] if shape["type"] == "LineString" else times
    name = properties.get("trace", number)
    for part, (line, when) in enumerate(zip(lines, stamps, strict=True), 1):
        own = {"trace": name if len(lines) == 1 else f"{name}.{part}"}
        person = {"person": properties["person"]} if "person" in properties else {}
        for place, stamp in zip(line, when, strict=True):
            yield {**own, **person, "time": stamp, **_place(place)}


def _place(coordinates: list[float]) -> Row:
    longitude, latitude = coordinates[:2]
    return {"latitude": float(latitude), "longitude": float(longitude)}


def write_geojson(frame: pl.DataFrame, place: Path) -> None:
    """One line for each trace, with a time for each point."""
    if "latitude" not in frame.columns:
        raise DataError(f"{place}: GeoJSON holds latitude and longitude; write metres as CSV or Parquet.")
    features = [
        {
            "type": "Feature",
            "properties": {"trace": part["trace"][0], _TIMES: part["time"].cast(pl.String).to_list()},
            "geometry": {"type": "LineString", "coordinates": part.select("longitude", "latitude").rows()},
        }
        for part in frame.partition_by("trace", maintain_order=True)
    ]
    place.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
