"""Boxes to audit: a callable of one input, a maker of devices, a program that answers lines, a library's object."""

from __future__ import annotations

import copy
import io
import json
import math
import os
import select
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.core.stages import Randomizer

# What federated learning sends, as mechanisms: a Flower mod or an NVFLARE filter behind a client's update.
#
# The input is the update, a list of numbers; the output is what leaves the client. Two updates are neighbours if they
# are those of two people, as far apart as the clipping allows.


TRAIN = "train"  # the messages that Flower's mods change


def of_federated_learning(thing: Any) -> Mechanism | None:
    """The mechanism of a Flower mod or an NVFLARE filter; None for anything else."""
    if callable(getattr(thing, "process_dxo", None)):
        return _nvflare(thing)
    home = getattr(thing, "__module__", None) or type(thing).__module__
    if callable(thing) and home.split(".")[0] == "flwr":
        return _flower(thing, sys.modules[home])
    return None


def _nvflare(filter: Any) -> Mechanism:
    """A filter of data exchange objects: the update is a difference of weights of one layer."""
    from nvflare.apis.dxo import DXO, DataKind
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable

    def send(update: Any) -> Any:
        made = DXO(DataKind.WEIGHT_DIFF, data={"update": np.asarray(update, dtype=float)})
        sent = filter.process_dxo(made, Shareable(), FLContext())
        return (made if sent is None else sent).data["update"]  # None: the filter changes nothing

    return send


def _flower(mod: Any, home: ModuleType) -> Mechanism:
    """A mod around a client that was sent zeros and answers with the update."""
    convert = getattr(home, "compat", None)
    if convert is None:
        raise UnsupportedError(f"{home.__name__} does not change updates of the kind that this audit sends.")
    from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays

    def send(update: Any) -> Any:
        weights = np.asarray(update, dtype=float)
        asked = FitIns(ndarrays_to_parameters([np.zeros_like(weights)]), {})

        def client(message: Any, context: Any) -> Any:
            answer = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([weights.copy()]), 1, {})
            return _message(convert.fitres_to_recorddict(answer, keep_input=True))

        sent = mod(_message(convert.fitins_to_recorddict(asked, keep_input=True)), None, client)
        answer = convert.recorddict_to_fitres(sent.content, keep_input=True)
        return parameters_to_ndarrays(answer.parameters)[0]

    return send


def _message(content: Any) -> Any:
    return SimpleNamespace(content=content, metadata=SimpleNamespace(message_type=TRAIN), has_error=lambda: False)


Mechanism = Callable[[Any], Any]
Atoms = tuple[Any, ...]  # an output, flat
NO_ANSWER = "(no answer)"  # what a program that ended instead has said: that can tell the input, too
MOST_SILENT = 20  # first calls of a program that may all stay without an answer
LONGEST_LINE = 1 << 24  # bytes
LONG = 8  # letters of a text that is compared as a whole
AT_ONCE = 4096  # reports of one of our randomizers
METHODS = ("randomize", "randomise", "privatize", "privatise")


class Seen(NamedTuple):
    """One trial as an auditor sees it: the output, and another report of which he knows the input.

    In a row of calls `other` is the call before; with a device for each trial it is the second report of the device.
    """

    now: Atoms
    told: int
    other: Atoms


def trials(
    mechanism: Callable[..., Any],
    inputs: Sequence[Any],
    drawn: Iterable[int],
    told: Iterable[int] | None,
    patience: float,
) -> Iterator[Seen]:
    """The trials, one for each drawn input; with `told` each has a device of its own, which reports that one next."""
    if told is None:
        before: tuple[int, Atoms] = (-1, ())
        for which, now in _outputs(mechanism, inputs, drawn, patience):
            yield Seen(now, *before)
            before = which, now
        return
    for which, second in zip(drawn, told, strict=True):
        device = _device(mechanism, patience)
        now = _call(device, inputs[which], patience)
        yield Seen(now, second, _call(device, inputs[second], patience))


def outputs_by_word(mechanism: Callable[[Any, int], Any], value: Any, words: int, patience: float) -> Iterator[str]:
    """The output for each of the words, as a text."""
    for word in range(words):
        yield repr(_call(lambda given, word=word: mechanism(given, word), value, patience))  # type: ignore[misc]


def _outputs(
    mechanism: Mechanism, inputs: Sequence[Any], drawn: Iterable[int], patience: float
) -> Iterator[tuple[int, Atoms]]:
    if not isinstance(mechanism, _Ours):
        for which in drawn:
            yield which, _call(mechanism, inputs[which], patience)
        return
    rest = iter(drawn)
    while some := list(islice(rest, AT_ONCE)):
        for which, output in zip(some, mechanism.many([inputs[which] for which in some]), strict=True):
            yield which, flat(output)


def _device(make: Callable[[], Any], patience: float) -> Mechanism:
    try:
        with _quiet(patience):
            device = make()
    except DovetailError:
        raise
    except (Exception, SystemExit) as error:
        raise DataError(f"no device was made: {_line(error)}.") from None
    return as_mechanism(device)


def _call(mechanism: Mechanism, value: Any, patience: float) -> Atoms:
    """The output; what it prints is dropped, and it gets a copy of its input."""
    given = copy.deepcopy(value)
    try:
        with _quiet(patience):
            answer = mechanism(given)
    except DovetailError:
        raise
    except (Exception, SystemExit) as error:
        raise DataError(f"the mechanism failed on {value!r}: {_line(error)}.") from None
    return flat(answer)


def flat(answer: Any) -> Atoms:
    """An output or an input as a row of numbers and texts, each list with its length before it.

    >>> flat([1, [True, "no"]]), flat(b"ab")
    ((2, 1, 2, True, 'no'), (2, 97, 98))
    """
    return tuple(_atoms(answer))


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")


def _atoms(answer: Any) -> Iterator[Any]:
    if hasattr(answer, "tolist"):  # an array or a number of numpy
        answer = answer.tolist()
    if isinstance(answer, list | tuple):
        yield len(answer)
        for part in answer:
            yield from _atoms(part)
    elif isinstance(answer, dict):
        yield from _atoms([[*pair] for pair in answer.items()])
    elif isinstance(answer, bytes) or (isinstance(answer, str) and len(answer) > LONG):
        yield from _atoms([*answer])  # letter by letter: no other long text may be the same as a whole
    elif answer is None or isinstance(answer, bool | int | float | str):
        yield answer
    else:
        raise DataError(f"the mechanism must return numbers, texts or lists of them, got {type(answer).__name__}.")


class _Blocked(Exception):
    """The alarm of a call that does not come back; no `OSError`, which a mechanism may handle."""


@contextmanager
def _quiet(patience: float) -> Iterator[None]:
    """Drop what is printed, and break off a call that blocks, where the system has alarms for it."""

    def ring(*_: object) -> None:
        raise _Blocked(f"no answer in {patience:g} seconds")

    alarms = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, ring) if alarms else None
    try:
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, patience)
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)


def as_mechanism(thing: Any) -> Mechanism:
    """A callable of one input, from what libraries have: a callable itself, or an object that randomizes.

    opendp's measurements are callables. diffprivlib's mechanisms `randomise`, and clients of pure-ldp `privatise`. A
    Flower mod and an NVFLARE filter take a client's update, a list of numbers, and return what leaves the client.
    Reports of our own randomizers come with the values that they support: where each has a fresh seed, no test of the
    report alone sees anything.

    >>> import dovetail as dt
    >>> as_mechanism(dt.KRR(k=4, epsilon=50.0))(2)
    [2, 0, 0, 1, 0]
    """
    if isinstance(thing, Randomizer):
        return _Ours(thing)
    federated = of_federated_learning(thing)
    if federated is not None:
        return federated
    if callable(thing):
        return thing  # type: ignore[no-any-return]
    for name in METHODS:
        found = getattr(thing, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise ParameterError(f"a mechanism must be a callable of one input, got {thing!r}.")


class _Ours:
    """One of our randomizers, called for many people at once; each report beside the values that it supports."""

    def __init__(self, randomizer: Randomizer) -> None:
        self.randomizer = randomizer

    def __call__(self, value: Any) -> Any:
        return self.many([value])[0]

    def many(self, values: Sequence[Any]) -> list[Any]:
        reports = np.asarray(self.randomizer.randomize(np.asarray(values)))
        rows = reports.reshape(len(reports), -1)
        try:
            supported = self.randomizer.support(reports)  # type: ignore[attr-defined]
            rows = np.concatenate([rows, supported.astype(rows.dtype)], axis=1)
        except (AttributeError, UnsupportedError):  # numbers, and reports that support nothing
            pass
        return rows.tolist() if rows.shape[1] > 1 else rows[:, 0].tolist()


# A program: one JSON value a line in, one JSON value a line out.


class Program:
    """A program that reads one JSON value a line and writes one JSON value a line, as a mechanism.

    A program that ends has answered `NO_ANSWER`, and is started again. `device` starts it afresh: a new device.

    Parameters
    ----------
    command : str
        Its arguments, as in a shell; no shell runs it.
    patience : float, seconds
        For one answer.

    Raises
    ------
    DataError
        In one line, for a program that is not found, hangs, never answers, or writes something else.
    """

    def __init__(self, command: str, *, patience: float = 60.0) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError:
            self._arguments = []
        if not self._arguments:
            raise ParameterError(f"the command must be a program with its arguments, got {command!r}.")
        self.patience = positive("patience", patience)
        self._process: subprocess.Popen[bytes] | None = None
        self._left = b""
        self._answers = self._silent = 0

    def __call__(self, value: Any) -> Any:
        """The answer to one value."""
        line = self._ask(json.dumps(value).encode() + b"\n")
        if line is None:
            self._silent += 1
            if not self._answers and self._silent >= MOST_SILENT:
                raise DataError(f"{self._arguments[0]} ends without an answer, the first {MOST_SILENT} times.")
            return NO_ANSWER
        self._answers += 1
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{self._arguments[0]} must write one JSON value a line, got {line[:80]!r}.") from None

    def device(self) -> Program:
        """The same program, started afresh."""
        self.close()
        return self

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.wait()
        self._process, self._left = None, b""

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    self._arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                )
            except (OSError, ValueError) as error:
                raise DataError(f"{self._arguments[0]} cannot be started: {_line(error)}.") from None
        return self._process

    def _ask(self, line: bytes) -> bytes | None:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        try:
            process.stdin.write(line)
            while b"\n" not in self._left:
                if not select.select([process.stdout], [], [], self.patience)[0]:
                    self.close()
                    raise DataError(f"{self._arguments[0]} gives no answer in {self.patience:g} seconds.")
                read = os.read(process.stdout.fileno(), 1 << 16)
                if not read:
                    self.close()
                    return None
                self._left += read
                if len(self._left) > LONGEST_LINE:
                    raise DataError(f"{self._arguments[0]} writes a line of more than {LONGEST_LINE:,} bytes.")
        except BrokenPipeError:
            self.close()
            return None
        answer, _, self._left = self._left.partition(b"\n")
        if self._left:
            raise DataError(f"{self._arguments[0]} must write one line for each input, and wrote more.")
        return answer


def between(low: float, high: float) -> list[Any]:
    """Inputs to search in a range: its ends, its middle, zero, and numbers beside them; whole numbers if both are.

    >>> between(0, 3), between(-1.0, 1.0)[:4]
    ([0, 1, 2, 3], [-1.0, -0.5, 0.0, 0.5])
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"a range must be two numbers, the smaller first, got {low!r} and {high!r}.")
    if isinstance(low, int) and isinstance(high, int):
        inner = [low + (high - low) * part // 10 for part in range(11)]
        return sorted({low, low + 1, *inner, high - 1, high, *([0] if low <= 0 <= high else [])})
    steps = [low + (high - low) * part / 4 for part in range(5)]
    near = [math.nextafter(low, high), math.nextafter(high, low), *([0.0] if low <= 0.0 <= high else [])]
    return [*dict.fromkeys([*steps, *near])]
