"""What one device, and all senders together, may ask for; in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dovetail.collect.http.problems import Refusal

_MOST_DEVICES = 100_000
_BUSY_SECONDS = 2.0


class RateLimiter:
    """A token bucket for each device: `per_minute` messages, and as many at once.

    Only the devices heard of last are kept; one that is forgotten begins with a full bucket.
    """

    def __init__(self, per_minute: float, *, most: int = _MOST_DEVICES) -> None:
        self._rate, self._size, self._most = per_minute / 60.0, max(1.0, per_minute), most
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # tokens, as of when
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, device: bytes, now: float) -> float:
        """Take a token: 0, or the seconds until there is one."""
        with self._lock:
            tokens, since = self._buckets.pop(device, (self._size, now))
            tokens = min(self._size, tokens + max(0.0, now - since) * self._rate)
            taken = tokens >= 1.0
            self._buckets[device] = (tokens - 1.0 if taken else tokens, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self._rate


class AdmissionControl:
    """Admits work while what is under way stays below `most` bytes; otherwise says when to come back."""

    def __init__(self, most: int) -> None:
        self._most, self._used, self._lock = most, 0, Lock()

    @property
    def used(self) -> int:
        return self._used

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        """Hold `size` bytes while the work is done."""
        with self._lock:
            if self._used + size > self._most:
                raise Refusal(
                    "unavailable", "too much work is under way; come back later.", retry_after=_BUSY_SECONDS
                )
            self._used += size
        try:
            yield
        finally:
            with self._lock:
                self._used -= size
