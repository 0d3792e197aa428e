"""What every mechanism is: parameters, a sampler for one value, and a report of fixed length."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dovetail_protocol.words import Words


class Mechanism(ABC):
    """A local randomizer of one person's value; frozen parameters that the device and the analyst share.

    Laws: one report is epsilon-differentially private for the realized integer thresholds; its law is the channel or
    log density that the analyst's randomizer of the same name publishes; `encode` makes `report_bytes` bytes of every
    report, so that the length of a message says nothing; `decode(encode(report)) == report`.

    The samplers are exact but not constant-time: who can time this process is not kept out.
    """

    name: ClassVar[str]
    epsilon: float

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Length of an encoded report, the same for every value."""

    @abstractmethod
    def check(self, value: Any) -> Any:
        """`value` in the type that is randomized; DataError, which does not repeat the value, if it is not one."""

    @abstractmethod
    def randomize(self, value: Any, words: Words) -> Any:
        """The report of one value, which is checked first."""

    @abstractmethod
    def encode(self, report: Any) -> bytes:
        """`report` as `report_bytes` bytes, big endian; DataError for what `randomize` never makes."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """The report of these bytes; DataError for what no device could send."""
