"""Whether a release repeats its people, in words: copies among its rows, and values guessed from it."""

from __future__ import annotations

from dovetail.report.number_format import Document, missing_reason, percent

_OWN = "the chosen shuffler of a rehearsal"  # other shufflers of a comparison and releases are not measured


def copying_notes(document: Document) -> tuple[str, ...]:
    """Whether released rows repeat people; nothing in documents that do not say."""
    found = document.get("copying")
    if found is None:
        return ()
    if (why := missing_reason(found)) is not None:
        return () if _OWN in why else (f"Copies in the release do not apply: {why}.",)
    nearer = percent(1.0 - found["delta"]["value"])
    return (
        f"Copies: {percent(found['copies'])} of {found['released']:,} released rows equal somebody's public columns "
        f"and true value together; of people who are not in the release {percent(found['coincidences'])} do. A "
        f"released row is nearer to the people in the release than somebody else is with chance {nearer} (half: no "
        f"nearer); who is in it is told with an AUC of {found['membership']:.3f}. Public columns leave as they are.",
    )


def label_notes(document: Document) -> tuple[str, ...]:
    """Whether a release tells the values of its own people beyond those of others, the finding first."""
    found = document.get("label_inference")
    if found is None:
        return ()
    if (why := missing_reason(found)) is not None:
        return () if _OWN in why else (f"Label inference does not apply: {why}.",)
    low, high = found["interval"]
    lead = (
        "Label inference: the release tells values of its own people that their likes do not tell."
        if found["verdict"] == "repeats people"
        else "Label inference: nothing was found that the release tells of its own people alone."
    )
    parts = found["partition"]
    return (
        f"{lead} The value in the released row nearest to a person's public columns is theirs in "
        f"{percent(found['target_accuracy'])} of the releases that they are in and in "
        f"{percent(found['reference_accuracy'])} of those without them; difference {found['score']:+.3f}, 95 % "
        f"interval {low:+.3f} to {high:+.3f}, p {found['p']:.2g} over {found['pairs']} pairs of halves. Guessed by "
        f"the release with them alone: {percent(parts['memorized'])}; by that without them alone: "
        f"{percent(parts['misrepresented'])}.",
    )
