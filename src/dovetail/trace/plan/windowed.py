"""A long trace in windows of independent noise: designed one by one, stated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.display.losses import upward
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.adversaries import OWN, adversary_kernels
from dovetail.trace.loss.rounding import least_variance, rounding_charge
from dovetail.trace.loss.windows import Elsewhere, crowd_of
from dovetail.trace.plan.design import axis_noises, stated
from dovetail.trace.plan.noise import WindowedDesign
from dovetail.trace.plan.statement import Secret, Zone, ZoneLoss, zone_loss
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.plan.windows import Window, cut
from dovetail.trace.secrets import SecretTimes

WINDOW = 100  # points, where none is named
FADED, MOST_COMPUTED = 1e-11, 20_000  # correlation and points up to which other windows are computed
MOST_FADED = 1e-6  # correlation beyond which windows cannot be cut

Block = tuple[Floats, ...]


def design_windows(plan: TracePlan, times: Floats) -> WindowedDesign:
    """Noise that is independent between windows; a function of the times alone.

    A window without a secret has noise from the prior, of the same error. The statement about each secret counts
    its window and both neighbours exactly, and all others by an upper bound.
    """
    secrets = plan.secrets.places(times)
    windows = cut(len(times), [] if plan.secrets.every_time else secrets, plan.window or WINDOW)
    variances, axes = plan.prior.axes()
    homes = [[s for s in secrets if start <= s[0] and s[-1] < end] for start, end in windows]
    name, blocks = _blocks(plan, times, windows, homes)
    white = np.min([[least_variance(noise) for noise in block] for block in _single(blocks)], axis=0)
    charge = rounding_charge(plan.grid, plan.prior.dimensions * len(times), float((white * variances).min()))
    whole = _Cut(plan.prior.kernel, times, windows, blocks, variances, white)
    found = dict(whole.losses(homes))
    order = [(i, secret) for i in found for secret in homes[i]]
    moves = {who: np.concatenate([found[i].moves[who] for i in found]) for who in next(iter(found.values())).moves}
    widths = np.concatenate([found[i].widths for i in found])
    guarantee = stated(plan, times, [secret for _, secret in order], moves, widths, charge, name)
    alone = np.sqrt(np.concatenate([found[i].alone for i in found]))
    added = plan.radius * float((np.sqrt(moves[OWN]) - alone).max())
    cut_in = (
        f"the trace is cut into {len(windows):,} windows of independent noise at public times; each secret's loss "
        f"counts the windows beside its own, and all others as adding at most {upward(max(0.0, added))} to mu"
    )
    guarantee = replace(guarantee, caveats=(*guarantee.caveats, cut_in))
    return WindowedDesign(times, axes, variances, guarantee, tuple(windows), tuple(blocks))


def _blocks(
    plan: TracePlan, times: Floats, windows: Sequence[Window], homes: Sequence[Sequence[Secret]]
) -> tuple[str, list[Block]]:
    """The mechanism of windows with secrets, and the noise of every window; the same gaps share one design."""
    made: dict[tuple[bytes, tuple[Secret, ...]], tuple[str, Block]] = {}
    others = replace(plan, noise="uniform" if plan.noise == "uniform" else "all", secrets=SecretTimes())
    names, blocks = [], []
    for (start, end), inside in zip(windows, homes, strict=True):
        part = times[start:end] - times[start]
        secrets = tuple(tuple(place - start for place in secret) for secret in inside)
        key = (part.tobytes(), secrets)
        if key not in made:
            made[key] = axis_noises(plan if secrets else others, part, secrets or ((len(part) // 2,),))
        if secrets:
            names.append(made[key][0])
        blocks.append(made[key][1])
    return " and ".join(dict.fromkeys(names)), blocks


@dataclass(frozen=True, eq=False)
class _Cut:
    """A trace in windows, from which zones are taken."""

    kernel: Kernel
    times: Floats
    windows: Sequence[Window]
    blocks: Sequence[Block]
    variances: Floats
    white: Floats  # least variance of all noise along each axis

    def losses(self, homes: Sequence[Sequence[Secret]]) -> Iterator[tuple[int, ZoneLoss]]:
        """The loss of every window that holds secrets; windows that look alike are computed once."""
        crowds = {name: crowd_of(model, self.times) for name, model in adversary_kernels(self.kernel).items()}
        known: dict[tuple[object, ...], ZoneLoss] = {}
        for i, inside in enumerate(homes):
            if not inside:
                continue
            spans = {name: self._span(model, i) for name, model in adversary_kernels(self.kernel).items()}
            key = self._looks(i, spans, inside)
            if key not in known:
                known[key] = zone_loss(self.kernel, self._zone(i, inside, spans, crowds), self.variances)
            yield i, known[key]

    def _near(self, i: int) -> Window:
        """Windows first and one beyond the last of home and its neighbours."""
        return max(0, i - 1), min(len(self.windows), i + 2)

    def _span(self, model: Kernel, i: int) -> Window:
        """Windows that are computed for a kernel: near ones, and on until it has faded."""
        first, last = self._near(i)
        start, end = self.times[self.windows[first][0]], self.times[self.windows[last - 1][1] - 1]
        low, high, count = first, last, 0
        while count < MOST_COMPUTED and (low > 0 or high < len(self.windows)):
            before = start - self.times[self.windows[low - 1][1] - 1] if low > 0 else np.inf
            after = self.times[self.windows[high][0]] - end if high < len(self.windows) else np.inf
            if model.beyond(float(min(before, after))) <= FADED:
                break
            low, high = (low - 1, high) if before <= after else (low, high + 1)
            added = self.windows[low] if before <= after else self.windows[high - 1]
            count += added[1] - added[0]
        return low, high

    def _gap(self, i: int, span: Window) -> float:
        """Seconds between the near windows and those that are not computed."""
        first, last = self._near(i)
        low, high = span
        before = self.times[self.windows[first][0]] - self.times[self.windows[low - 1][1] - 1] if low > 0 else np.inf
        after = np.inf
        if high < len(self.windows):
            after = self.times[self.windows[high][0]] - self.times[self.windows[last - 1][1] - 1]
        return float(min(before, after))

    def _looks(self, i: int, spans: dict[str, Window], inside: Sequence[Secret]) -> tuple[object, ...]:
        """Everything that the loss of a window depends on."""
        low = min(span[0] for span in spans.values())
        high = max(span[1] for span in spans.values())
        start, end, own = self.windows[low][0], self.windows[high - 1][1], self.windows[i][0]
        gaps = np.diff(self.times[start:end]).tobytes()
        beside = tuple(
            (span[0] > 0, span[1] < len(self.windows), round(self._gap(i, span), 9)) for span in spans.values()
        )
        noises = tuple(id(block) for block in self.blocks[low:high])
        shapes = tuple((a - i, b - i) for a, b in spans.values())
        return gaps, beside, noises, shapes, tuple(tuple(place - own for place in secret) for secret in inside)

    def _zone(self, i: int, inside: Sequence[Secret], spans: dict[str, Window], crowds: dict[str, float]) -> Zone:
        first, last = self._near(i)
        start, end = self.windows[first][0], self.windows[last - 1][1]
        places = [tuple(place - start for place in secret) for secret in inside]
        noises = tuple(_joined([block[k] for block in self.blocks[first:last]]) for k in range(len(self.variances)))
        if len(noises) == 2 and all(block[0] is block[1] for block in _single(self.blocks)):
            noises = (noises[0], noises[0])
        elsewhere = {}
        for name, (low, high) in spans.items():
            others = [j for j in range(low, high) if not first <= j < last]
            rest = len(self.times) - (self.windows[high - 1][1] - self.windows[low][0])
            gap = self._gap(i, (low, high))
            if name == OWN and rest and adversary_kernels(self.kernel)[name].beyond(gap) > MOST_FADED:
                raise UnsupportedError(
                    f"this kernel has not faded after {gap:,.0f} s, so windows of this trace cannot be cut apart; "
                    "use a kernel that fades, or a shorter trace."
                )
            if others or rest:
                elsewhere[name] = tuple(
                    Elsewhere(
                        [(self._times(j), self.blocks[j][k]) for j in others],
                        rest,
                        gap,
                        self.white[k],
                        crowds[name],
                    )
                    for k in range(len(self.variances))
                )
        return Zone(self.times[start:end], noises, places, elsewhere)

    def _times(self, j: int) -> Floats:
        start, end = self.windows[j]
        return self.times[start:end]


def _single(blocks: Sequence[Block]) -> list[Block]:
    """Every block once."""
    return list({id(block): block for block in blocks}.values())


def _joined(blocks: Sequence[Floats]) -> Floats:
    return np.asarray(block_diag(*blocks))
