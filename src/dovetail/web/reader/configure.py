"""The configuration of a rehearsal: as `dovetail check` writes it, and as it comes back from the page."""

from __future__ import annotations

import tomllib
from urllib.parse import parse_qs

from dovetail.core.errors import ConfigError
from dovetail.pipeline.config.run_config import files_of, parse_config
from dovetail.pipeline.files.check.check_table import TableCheck
from dovetail.pipeline.files.check.configuration import write_configuration
from dovetail.pipeline.questions.config import QuestionsConfig, questions_of
from dovetail.web.reader.shelf import OpenedTable


def written_config(found: TableCheck, table: OpenedTable) -> str:
    """The text of the configuration beside the table."""
    return write_configuration(found, table.folder / "survey.toml")


def checked_config(body: bytes, table: OpenedTable) -> str:
    """The configuration in a form's body, if it is a rehearsal of this table and of no other file.

    Raises
    ------
    ConfigError
        In one line; nothing is run.
    """
    try:
        (text,) = parse_qs(body.decode(), strict_parsing=True, max_num_fields=4)["config"]
        raw = tomllib.loads(text)
    except (KeyError, UnicodeDecodeError) as error:
        raise ConfigError("there is no configuration in this form.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the configuration is no TOML: {error}.") from None
    except (ValueError, RecursionError):
        raise ConfigError("the configuration cannot be read.") from None
    config = questions_of(raw) or parse_config(raw)
    if config.mode != "rehearsal":
        raise ConfigError('this page rehearses only: set mode = "rehearsal"; `dovetail run` releases.')
    if config.data.path != table.name:
        raise ConfigError(f"[data] path must be {table.name!r}, the table that was opened, got {config.data.path!r}.")
    if isinstance(config, QuestionsConfig):  # which names no other file
        return text
    others = [name for name, path in files_of(config.shuffle).items() if path is not None]
    if others:
        raise ConfigError(f"[shuffle] {others[0]} names another file: use `dovetail run` for that.")
    return text
