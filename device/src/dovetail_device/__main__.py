"""`dovetail-device`: one value in, one sealed report out, from the command line of a small machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from dovetail_device import __version__
from dovetail_device.client import AHEAD, Receipt
from dovetail_device.files import save_keys
from dovetail_device.ledger import Spending
from dovetail_device.session import (
    VISIBLE,
    first_use,
    flush,
    ledgers,
    limit,
    line,
    open_device,
    read_value,
    receipts_document,
    signing_key,
    spent,
    status,
    submit,
)
from dovetail_protocol.budget import DEVICE_TOTAL, QUESTION_TOTAL
from dovetail_protocol.errors import DovetailError, StorageError
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.terminal_text import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; faults are one line. Exit status: 0 done, 1 refused or failed, 2 bad usage or bad input."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except StorageError as error:
        return _fail(str(error), 1)
    except DovetailError as error:
        return _fail(str(error), 2)
    except KeyboardInterrupt:
        return _fail("interrupted; what was drawn is in the outbox, `flush` sends it.", 1)
    except OSError as error:
        return _fail(f"the system refused: {error.strerror or type(error).__name__}.", 1)


def _submit(options: argparse.Namespace) -> int:
    if options.value != "-":
        print(f"note: {VISIBLE}", file=sys.stderr)
    with open_device(options.campaign, options.keys, **_place(options)) as device:
        if note := first_use(device):
            print(f"note: {note}", file=sys.stderr)
        value = read_value(options.value, device.campaign)
        receipt = submit(device, value, options.round, group=options.group, patience=options.wait)
    return _answer([receipt], [line(receipt)], as_json=options.json)


def _flush(options: argparse.Namespace) -> int:
    with open_device(options.campaign, options.keys, **_place(options)) as device:
        receipts = flush(device, patience=options.wait)
    return _answer(receipts, [str(receipt) for receipt in receipts], as_json=options.json)


def _tokens(options: argparse.Namespace) -> int:
    with open_device(options.campaign, options.keys, **_place(options)) as device:
        receipts = device.fetch_tokens(options.ahead)
    if options.json:
        print(json.dumps({"schema_version": 1, "tokens": [asdict(receipt) for receipt in receipts]}))
    else:
        for receipt in receipts:
            print(printable(str(receipt)))
    return int(any(receipt.state == "refused" for receipt in receipts))


def _status(options: argparse.Namespace) -> int:
    found = ledgers(options.keys, options.outbox)
    if options.json:
        print(json.dumps({"schema_version": 1, "campaigns": [asdict(ledger) for ledger in found]}))
        return 0
    for ledger in found:
        print(ledger)
    return 0


def _spent(options: argparse.Namespace) -> int:
    return _tell(spent(options.keys, options.outbox), as_json=options.json)


def _limit(options: argparse.Namespace) -> int:
    made = limit(options.keys, options.outbox, total=options.total, per_question=options.per_question)
    return _tell(made, as_json=options.json)


def _tell(found: Spending, *, as_json: bool) -> int:
    print(json.dumps({"schema_version": 1, **asdict(found)}) if as_json else found)
    return 0


def _keys(options: argparse.Namespace) -> int:
    keys = RoleKeys.generate("device")
    save_keys(keys, options.file)
    name = signing_key(keys, options.file).verifying_key()
    print(json.dumps({"schema_version": 1, "device": str(name)}) if options.json else name)
    return 0


def _place(options: argparse.Namespace) -> dict[str, Any]:
    names = ("outbox", "owner", "max_epsilon", "question", "via", "url", "user", "password_file", "insecure_http")
    return {
        name: getattr(options, name)
        for name in (*names, "insecure_mqtt", "hand_over", "trust", "epsilon_class", "entitlement_file")
    }


def _answer(receipts: Sequence[Receipt], lines: Sequence[str], *, as_json: bool) -> int:
    for text in [json.dumps(receipts_document(receipts))] if as_json else lines:
        print(printable(text))
    return status(receipts)


def _fail(message: str, code: int) -> int:
    print(f"error: {printable(message)}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dovetail-device", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dovetail-device {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    send = _verb(verbs, "submit", _submit, "Randomize a value once for a round, and send that report.")
    send.add_argument("--value", default="-", help=f"The value; - (the default) reads one line. Note: {VISIBLE}")
    send.add_argument("--round", type=int, help="The round; default the one that runs now.")
    send.add_argument("--group", help="The public group, if the campaign has groups.")
    again = _verb(verbs, "flush", _flush, "Send the reports that wait and are due.")
    tokens = _verb(verbs, "tokens", _tokens, "Fetch tokens before they are needed, where the campaign asks for them.")
    tokens.add_argument("--ahead", type=int, default=AHEAD, help=f"Rounds after the one that runs; default {AHEAD}.")
    for verb in (send, again, tokens):
        verb.add_argument("--campaign", type=Path, required=True, help="The signed campaign file.")
        verb.add_argument(
            "--owner", help="The owner's public key: consent to answer it. Else the first one met is kept."
        )
        verb.add_argument("--max-epsilon", type=float, help="Refuse campaigns whose reports cost more (nats).")
        verb.add_argument(
            "--trust", choices=("users", "shuffler"), help="Answer as it is where only their dummies hide the answer."
        )
        verb.add_argument(
            "--class",
            dest="epsilon_class",
            metavar="CLASS",
            help="Where people have different epsilons: your class, chosen once and never by the value; default the "
            "one with the smallest epsilon.",
        )
        verb.add_argument("--question", help="What budgets are counted by; default the words of the question.")
        verb.add_argument("--via", choices=("http", "mqtt"), default="http", help="How to send; default http.")
        verb.add_argument("--url", help="Where to send; default the campaign's endpoint.")
        verb.add_argument("--user", help="User name for the broker, best the same for all devices.")
        verb.add_argument("--password-file", type=Path, help="File with the password for the broker.")
        verb.add_argument("--insecure-http", action="store_true", help="Send over plain HTTP to other machines too.")
        verb.add_argument("--insecure-mqtt", action="store_true", help="Send over plain MQTT to other machines too.")
        verb.add_argument(
            "--no-hand-over",
            dest="hand_over",
            action="store_false",
            help="Follow no owner's hand-over to another key.",
        )
        verb.add_argument(
            "--entitlement-file",
            type=Path,
            help="File with the invitation's code or the account's voucher that tokens are asked for with; default "
            "the device's own key.",
        )
        verb.add_argument("--wait", type=float, default=0.0, help="Try again for so many seconds; default 0.")

    state = _verb(verbs, "status", _status, "Budgets spent, and reports by state, campaign by campaign.")
    told = _verb(verbs, "spent", _spent, "What this device has spent on everybody, and whom it answers.")
    limits = _verb(verbs, "limit", _limit, "Set what this device gives at most, no matter who asks; nats.")
    limits.add_argument("--total", type=float, help=f"Of all reports together; {DEVICE_TOTAL:g} until it is set.")
    limits.add_argument("--per-question", type=float, help=f"On one question; {QUESTION_TOTAL:g} until it is set.")
    for verb in (send, again, tokens, state, told, limits):
        verb.add_argument("--keys", type=Path, required=True, help="The device's key file.")
        verb.add_argument("--outbox", type=Path, help="The outbox; default the key file's name with .outbox.")
    keys = _verb(verbs, "keys", _keys, "Make a key file; its public key goes on the roster.")
    keys.add_argument("file", type=Path, help="The key file to make.")
    return parser


def _verb(verbs: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    verb.add_argument("--json", action="store_true", help="Print JSON for machines.")
    verb.set_defaults(run=run)
    return verb


if __name__ == "__main__":
    sys.exit(main())
