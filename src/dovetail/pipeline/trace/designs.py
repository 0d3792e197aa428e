"""Designs for many traces: one for each pattern of time stamps, in parallel processes where there are many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.pipeline.progress import Progress, silent
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.mechanisms.descent import one_thread
from dovetail.trace.plan.design import shown_times
from dovetail.trace.plan.noise import TraceNoise
from dovetail.trace.plan.release_design import design_release
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.trace import Trace

WORTH_A_PROCESS = 8  # patterns of time stamps: a process takes a second to start


def design_all(
    plan: TracePlan, traces: Sequence[Trace], *, jobs: int = 0, progress: Progress = silent
) -> list[TraceNoise]:
    """The noise of every trace; what is wrong is said with the trace's name.

    Parameters
    ----------
    plan : TracePlan
    traces : list of Trace
    jobs : int, at least 0
        Processes; 0 for as many as there are processors, where there are many patterns of time stamps.
    progress : function
    """
    patterns: dict[bytes, Trace] = {}
    for trace in traces:
        patterns.setdefault(shown_times(plan, trace.times).tobytes(), trace)
    workers = jobs or (1 if len(patterns) < WORTH_A_PROCESS else os.cpu_count() or 1)
    found = _apart(plan, patterns, min(workers, len(patterns)), progress)
    return [found[shown_times(plan, trace.times).tobytes()] for trace in traces]


Designs = dict[bytes, TraceNoise]  # by the bytes of time stamps


def _apart(plan: TracePlan, patterns: dict[bytes, Trace], workers: int, progress: Progress) -> Designs:
    """The design of every pattern; designs draw nothing, so that no process needs entropy."""
    found: Designs = {}
    if workers <= 1:
        for done, (key, trace) in enumerate(patterns.items(), start=1):
            found[key] = _named(plan, trace)
            progress("designing noise", done, len(patterns))
        return found
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_alone, plan, trace.times, trace.name): key for key, trace in patterns.items()}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                found[waiting[future]] = future.result()
                progress("designing noise", done, len(patterns))
        finally:
            pool.shutdown(cancel_futures=True)
    return found


def _alone(plan: TracePlan, times: Floats, name: str) -> TraceNoise:
    """In a process of its own, on one thread."""
    with one_thread():
        return _named(plan, Trace.of(name, times, times))


def _named(plan: TracePlan, trace: Trace) -> TraceNoise:
    try:
        return design_release(plan, trace.times)
    except (ParameterError, UnsupportedError) as error:
        raise UnsupportedError(f"trace {trace.name!r}: {error}") from None
