"""Pages in a real browser: what reaches beyond a phone's edge, and what axe-core finds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE

PHONE = 375  # CSS pixels
AXE = "DOVETAIL_AXE"  # an environment variable: where axe.min.js lies (`npm pack axe-core`)
NO_AXE = "needs axe-core: set DOVETAIL_AXE to its axe.min.js"
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium here")


def beyond_the_edge(page: str, folder: Path) -> int:
    """How many pixels the page is wider than a phone."""
    (folder / "page.html").write_text(page)
    frame = f'<iframe src="page.html" width="{PHONE}" height="800" id="f" style="border:0"></iframe>'
    root = "f.contentDocument.documentElement"
    script = f"onload = () => document.title = {root}.scrollWidth - {root}.clientWidth"
    shown = _shown(f"<title></title>{frame}<script>{script}</script>", folder)
    return int(re.findall(r"<title>(.*)</title>", shown)[0])


def violations(page: str, folder: Path, *, dark: bool, width: int | None = None) -> list[Any]:
    """Rules of axe-core that the page breaks, with the elements; skips where axe-core is not at hand.

    As wide as a desk without a `width`; narrower pages stand in a frame, because browsers have a least width.
    """
    if AXE not in os.environ:
        pytest.skip(NO_AXE)
    axe = Path(os.environ[AXE]).read_text().replace("</script", "<\\/script")
    report = "r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 120))])"
    tell = f"p.id = 'found'; p.textContent = JSON.stringify({report}); top.document.body.appendChild(p)"
    run = f"axe.run(document).then(r => {{ const p = top.document.createElement('pre'); {tell} }})"
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # which forbids scripts
    tested = open_page.replace("</body>", f"<script>{axe}</script><script>{run}</script></body>")
    if width is not None:
        (folder / "page.html").write_text(tested)
        tested = f'<body><iframe src="page.html" width="{width}" height="2000" style="border:0"></iframe></body>'
    shown = _shown(tested, folder, *(["--blink-settings=preferredColorScheme=0"] if dark else []))
    found = re.findall(r'<pre id="found">(.*?)</pre>', shown, re.S)
    assert len(found) == 1, "axe-core has not run"
    told: list[Any] = json.loads(unescape(found[0]))
    return told


def printed_pages(page: str, folder: Path) -> int:
    """On how many sheets the page is printed."""
    (folder / "tested.html").write_text(page)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--print-to-pdf={folder / 'printed.pdf'}", (folder / "tested.html").as_uri()]
    subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
    return len(re.findall(rb"/Type\s*/Page\b", (folder / "printed.pdf").read_bytes()))


def _shown(page: str, folder: Path, *options: str) -> str:
    (folder / "tested.html").write_text(page)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1280,2000", "--allow-file-access-from-files", "--virtual-time-budget=20000", *options]
    words = [*command, "--dump-dom", (folder / "tested.html").as_uri()]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
