"""Directives that run what they show: `{command}` the command line, `{run}` Python; a page is one session."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from session import Session, joined
from sphinx.util.docutils import SphinxDirective


class _Executed(SphinxDirective):
    has_content = True
    option_spec = {"status": directives.nonnegative_int, "hide-output": directives.flag}  # noqa: RUF012

    @property
    def session(self) -> Session:
        sessions: dict[str, Session] = self.env.temp_data.setdefault("dovetail_sessions", {})
        return sessions.setdefault(self.env.docname, Session())

    def show(self, text: str, language: str) -> nodes.literal_block:
        block = nodes.literal_block(text, text, language=language)
        self.set_source_info(block)
        return block

    def answer(self, output: str) -> list[nodes.Node]:
        if "hide-output" in self.options or not output.strip():
            return []
        shown = self.show(output.rstrip(), "text")
        return [nodes.container("", shown, classes=["cell_output"])]


class Command(_Executed):
    """Command lines and what they print."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        try:
            output = "".join(self.session.command(line, self.options.get("status", 0)) for line in joined(text))
        except Exception as failure:
            raise self.error(f"{type(failure).__name__}: {failure}") from failure
        return [self.show(text, "sh"), *self.answer(output)]


class Run(_Executed):
    """Python and what it prints."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        try:
            output = self.session.python(text)
        except Exception as failure:
            raise self.error(f"{type(failure).__name__}: {failure}") from failure
        return [self.show(text, "python"), *self.answer(output)]


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("command", Command)
    app.add_directive("run", Run)
    return {"parallel_read_safe": True}
