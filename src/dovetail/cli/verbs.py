"""The verbs of the command line: each is named once, with its module, and imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

# heading in the overview -> verb -> module whose `VERBS` has it, first sentence of its help
GROUPS = {
    "Start here": {
        "demo": (
            "dovetail.cli.run",
            "A rehearsal on the 1974 Redbook survey (6,366 women; private: affairs), with four shufflers "
            "side by side.",
        ),
        "check": (
            "dovetail.cli.check",
            "List every problem of a table with a remedy each, and write the configuration that `run` takes.",
        ),
        "plan": (
            "dovetail.cli.plan",
            "Plan a collection: how many people, which epsilon, how accurate, and what risk that is.",
        ),
        "run": (
            "dovetail.cli.run",
            "A table goes in; a sanitized table, estimates with errors and a privacy report come out.",
        ),
        "web": (
            "dovetail.cli.web",
            "The planner and the reader in a browser: plan, check a table, rehearse, compare; all on this machine.",
        ),
    },
    "Stages, on files": {
        "randomize": (
            "dovetail.cli.stages",
            "Turn a private column into locally private reports, one per row, in a fresh random order of the rows.",
        ),
        "shuffle": (
            "dovetail.cli.stages",
            "Reorder a batch of reports; a uniform shuffle drops the public columns, the others keep them beside.",
        ),
        "estimate": (
            "dovetail.cli.stages",
            "Unbiased frequencies or a mean with standard errors and 95 % intervals, overall and per public group.",
        ),
        "synthesize": (
            "dovetail.cli.from_report",
            "Write a table of made-up people from a release of all two-way tables, and say which pairs it "
            "is good for.",
        ),
        "refine": (
            "dovetail.cli.from_report",
            "Write the configuration of the next round: finer bins where the intervals of the last round lie.",
        ),
    },
    "Numbers": {
        "account": (
            "dovetail.cli.account",
            "Privacy amplification by shuffling: a certified upper bound on the central epsilon, or the "
            "largest epsilon0.",
        ),
        "audit": (
            "dovetail.cli.audit",
            "Is a privacy claim what it says: proved, possible, or impossible because a known attack needs more.",
        ),
        "compose": (
            "dovetail.cli.compare",
            "Several questions to the same people: four ways to collect the answers, and what each promises "
            "a person.",
        ),
        "leak": (
            "dovetail.cli.leak",
            "Bayes vulnerability: the chance of guessing one person's value, exact wherever an exact sum is "
            "in reach.",
        ),
        "compare": (
            "dovetail.cli.compare",
            "Mechanisms of equal accuracy, side by side: what each leaks to three adversaries.",
        ),
        "plan-questions": (
            "dovetail.cli.plan",
            "Several columns of the same people: what each way to ask them promises a person, and how "
            "accurate it is.",
        ),
        "plan-shuffle": (
            "dovetail.cli.plan_shuffle",
            "Price a promise about order: fits a shuffler to public labels, points, groups or a graph.",
        ),
        "plan-strings": (
            "dovetail.cli.plan",
            "Which strings a search without a list of candidates finds: how many people must hold one.",
        ),
    },
    "Service": {
        "collect": (
            "dovetail.cli.collect",
            "The collection service: devices send sealed reports, a shuffler mixes them, an analyzer estimates.",
        ),
        "survey": (
            "dovetail.cli.survey",
            "A survey that anybody can host: a page that randomizes answers in the browser, and the servers "
            "behind it.",
        ),
    },
    "Research": {
        "attack": (
            "dovetail.cli.attack",
            "Attacks on tables and released files, with chance level and intervals.",
        ),
        "text": (
            "dovetail.cli.text",
            "Sentence privacy of documents: a document is released as one public embedding that hides any "
            "one sentence.",
        ),
        "trace": (
            "dovetail.cli.trace",
            "Location traces: noise for a whole trace that hides secret times although the times around "
            "them tell much.",
        ),
        "memorize": (
            "dovetail.cli.memorize",
            "Does a model repeat its data: tests of generators and encoders that find memorization and "
            "promise nothing.",
        ),
        "study": (
            "dovetail.cli.study",
            "Reproduce a figure or a claim: a table, a picture, and whether it holds.",
        ),
    },
}
VERBS = {verb: entry for verbs in GROUPS.values() for verb, entry in verbs.items()}


@cache
def _load(verb: str) -> Any:
    """The command of a verb, from its module."""
    from dovetail.cli.options import add_verbs

    scratch = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    add_verbs(scratch, import_module(VERBS[verb][0]).VERBS)
    return typer.main.get_group(scratch).commands[verb]


def options_of(arguments: list[str]) -> set[str]:
    """The options of the verb that was called; none of one that reads a file, whose keys may be called the same."""
    command = _load(arguments[0])
    for word in arguments[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    if any(one.param_type_name == "argument" for one in command.params):
        return set()
    return {option for one in command.params for option in one.opts}


class _Commands(MutableMapping[str, Any]):
    """Name of a verb -> its command, imported when it is looked up."""

    def __getitem__(self, verb: str) -> Any:
        if verb not in VERBS:
            raise KeyError(verb)
        return _load(verb)

    def __contains__(self, verb: object) -> bool:
        return verb in VERBS

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)

    def __setitem__(self, verb: str, command: Any) -> NoReturn:
        raise TypeError("verbs are named in VERBS")

    def __delitem__(self, verb: str) -> NoReturn:
        raise TypeError("verbs are named in VERBS")


class VerbGroup(TyperGroup):
    """The group of all verbs; it lists them without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            self.resolve_command(ctx, args)  # refuses before typer loads what coerces options
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names that begin so; what completes them does not import them."""
        named: dict[str, Any] = {verb: TyperCommand(verb, help=line) for verb, (_, line) in VERBS.items()}
        listed = TyperGroup(name=self.name, params=self.params, commands=named)
        return list(listed.shell_complete(type(ctx)(listed), incomplete))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb, line) for verb, (_, line) in verbs.items()])
