"""`dovetail collect`: the verbs of the running service; options and printing, no protocol."""

from __future__ import annotations

from dovetail.cli.collect import devices, keys, new, operate, query, servers
from dovetail.cli.options import add_verbs, verb_group

app = verb_group(
    "collect",
    """The collection service: devices send sealed reports, a shuffler mixes them, an analyzer estimates.

    In order: keys (one file per role), new (write a campaign), check (explain it), sign (by its owner), roster
    (who may send), shuffler and analyzer (the two servers), submit (one value from one device), close (a round by
    hand), query and status (what came out). For operators: token (who may ask), drop (give up a lost round),
    clock (go on after a jump), rotate (new keys), hand-over (another owner), audit (what was done), issuer,
    token-keys, invite and issued (anonymous tokens instead of a roster); docs/runbook.md says when. Without any of
    that: simulate (all roles in one process, with everything that goes wrong) and demo (real servers on this machine,
    and devices that report to them). Verbs that print facts take --json. docs/collect.md walks through all of it.
    """,
)
for module in (new, keys, servers, query, operate, devices):
    add_verbs(app, module.VERBS)

VERBS = {"collect": app}
