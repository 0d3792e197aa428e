"""Elements of inline SVG: lines, dots, words, a legend, and the picture that holds them.

Colours are classes of the page's style sheet; every distinction is also one of shape or dash. Each picture is drawn
360 units wide, so that its letters stay readable on a phone.
"""

from collections.abc import Sequence

from markupsafe import Markup

WIDTH = 360.0
LEFT = 10.0
RIGHT = WIDTH - 10.0
ROW = 38.0
LETTERS = 46  # of a row's label and its numbers together


def svg_picture(height: float, title: str, description: str, parts: Sequence[Markup]) -> Markup:
    """A picture as wide as all others."""
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:g} {:g}" aria-label="{}">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(WIDTH, height, printable(title), printable(title), printable(description), Markup("").join(parts))


def svg_line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A straight line; `kind` is its class."""
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def svg_text(kind: str, x: float, y: float, words: str) -> Markup:
    """Words at a place; `kind` is their class."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, printable(words))


def svg_row_text(label: str, numbers: str, y: float) -> Markup:
    """A row's label at the left and its numbers at the right; a label that is too long is cut."""
    room = max(8, LETTERS - len(numbers))
    cut = label if len(label) <= room else label[: room - 1] + "…"
    return svg_text("label start", LEFT, y, cut) + svg_text("value end", RIGHT, y, numbers)


def svg_dot(kind: str, x: float, y: float) -> Markup:
    """A dot; `kind` is its class."""
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(kind, x, y)


def svg_diamond(x: float, y: float) -> Markup:
    """The mark of the truth."""
    return Markup('<path class="truth" d="M{:.1f} {:.1f}l5 5l-5 5l-5 -5z"/>').format(x, y - 5)


def svg_path(kind: str, style: str, points: Sequence[tuple[float, float]]) -> Markup:
    """A polyline or a polygon; `style` is its class."""
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<{0} class="{1}" points="{2}"/>').format(Markup(kind), style, where)


def legend_height(items: Sequence[tuple[str, str]]) -> float:
    """Room that a legend needs."""
    return 8.0 + 17.0 * len(items)


def svg_legend(items: Sequence[tuple[str, str]]) -> Markup:
    """One line for each mark: its class and what it stands for."""
    parts = []
    for place, (kind, words) in enumerate(items):
        y = 10.0 + 17.0 * place
        if kind == "truth":
            parts.append(svg_diamond(LEFT + 10, y))
        elif kind in ("estimate", "before"):
            parts.append(svg_dot(kind, LEFT + 10, y))
        else:
            parts.append(svg_line(kind, LEFT, y, LEFT + 20, y))
        parts.append(svg_text("legend start", LEFT + 28, y + 4, words))
    return Markup("").join(parts)


def printable(text: str) -> str:
    """The text with control characters made visible: they are not XML and may steer a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
