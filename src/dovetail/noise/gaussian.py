"""Gaussian noise of the shuffler: dummies for people who are asked five times and more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from dovetail.account.gaussian_dummies import Message
from dovetail.core.noise import Noise, People
from dovetail.noise.shuffler import AddedNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import GaussianDummies, MarginalDummies, SeveralDummies, TruncatedGaussian


@final
@dataclass(frozen=True)
class GaussianNoise(AddedNoise):
    """Dummies with truncated discrete Gaussian numbers: the least noise where people are asked five times or more.

    What T releases tell grows with the root of T, as that of central Gaussian noise. Symbols of a person may have
    laws of their own: less noise for one of them takes more of the common loss.

    Parameters
    ----------
    dummies : GaussianDummies, or SeveralDummies with a law for each symbol of a person
    """

    dummies: GaussianDummies | SeveralDummies | MarginalDummies
    name: ClassVar[str] = "gaussian"
    label: ClassVar[str] = "Gaussian noise of the shuffler"

    def part(self, symbol: int) -> Noise:
        if not isinstance(self.dummies, SeveralDummies):
            return self
        law, k = self.dummies.laws[symbol]
        return replace(self, dummies=GaussianDummies(k, law), own=OpenAnswers(k), symbols=1)  # type: ignore[arg-type]

    def rounds_note(self) -> str:
        if not isinstance(self.dummies, SeveralDummies) or self.rounds == 1:
            return super().rounds_note()
        return f"{self.rounds:,} rounds with dummies of the questions {Message.of(self.dummies.noises)!r}"

    def described(self, people: People) -> dict[str, Any]:
        if isinstance(self.dummies, SeveralDummies):
            each = [[str(law.scale), law.reach] for law in self.dummies.noises]
            return {"dummies": {"each": each, "people": people.n}}
        noise = self.dummies.noise
        assert isinstance(noise, TruncatedGaussian)
        return {"dummies": {"variance": str(noise.scale), "reach": noise.reach, "people": people.n}}
