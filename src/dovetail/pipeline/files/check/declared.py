"""What a person said about a table before it was looked at: roles of columns, categories, bounds."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.pipeline.files.check.column import Column, Kind


@dataclass(frozen=True)
class Declared:
    """Nothing in it comes from the table."""

    private: str | None = None
    person: str | None = None
    public: tuple[str, ...] = ()
    categories: tuple[str, ...] | None = None
    lower: float | None = None
    upper: float | None = None
    epsilon: float = 2.0

    @property
    def bounded(self) -> bool:
        """Whether bounds were declared."""
        return self.lower is not None

    def has_role(self, name: str) -> bool:
        """Whether `run` will read this column."""
        return name in (self.private, self.person, *self.public)

    def role_of(self, name: str) -> str | None:
        """What this column is: private, person, public, or nothing."""
        if name in (self.private, self.person):
            return "private" if name == self.private else "person"
        return "public" if name in self.public else None

    def numeric(self, column: Column) -> bool:
        """Whether the private column is asked for its mean: bounds were declared, or it holds many numbers."""
        if self.bounded or self.categories is not None:
            return self.bounded
        return column.kind == Kind.NUMBER and not column.coded
