"""The folder of a run: report.json, report.html and, for a release, the sanitized table; all of them or none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl

from dovetail.core.errors import StorageError
from dovetail.pipeline.files.publish import publish
from dovetail.pipeline.progress import Progress
from dovetail.report.document import Missing, PrivacyReport
from dovetail.report.render.html import render_html


def write_report(report: PrivacyReport, target: Path, *, force: bool, progress: Progress) -> PrivacyReport:
    """Write the report into the folder `target`; it then names its files."""
    sanitized = report.sanitized
    files = {
        "report_json": "report.json",
        "report_html": "report.html",
        "sanitized": sanitized if isinstance(sanitized, Missing) else "sanitized.parquet",
    }
    report = replace(report, files=files)
    progress("write the report", 0, 1)
    with publish(target, force=force) as folder:
        document = report.document()
        try:
            if isinstance(sanitized, pl.DataFrame):
                description = {"dovetail": json.dumps(report.sanitized_description)}
                sanitized.write_parquet(folder / "sanitized.parquet", metadata=description)
        except pl.exceptions.PolarsError as error:
            raise StorageError(f"{target}: could not be written ({error}); nothing was left.") from None
        (folder / "report.json").write_text(
            json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (folder / "report.html").write_text(render_html(document), encoding="utf-8")
    progress("write the report", 1, 1)
    return report
