"""The picture of a report in the gallery, by chromium: `python docs/_ext/report_picture.py report.html out.png`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SIZE, COLOURS = "1200,760", 32


def draw(page: Path, picture: Path) -> None:
    """The top of a page as a browser shows it, in few colours: a small file."""
    from PIL import Image

    with tempfile.TemporaryDirectory(prefix="dovetail-picture-") as folder:
        full = Path(folder) / "full.png"
        words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--user-data-dir={folder}/profile", f"--window-size={SIZE}", f"--screenshot={full}"]
        subprocess.run([*words, page.resolve().as_uri()], check=True, capture_output=True)
        with Image.open(full) as shown:
            shown.convert("RGB").quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
