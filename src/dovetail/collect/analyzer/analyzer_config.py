"""The analyzer's configuration file, and the analyzer that it describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers.roster_slots import RosterSlotEstimator
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.parallel_unseal import UnsealingProcesses
from dovetail.collect.analyzer.tokens import LiveTokens, Tokens, TokenSource
from dovetail.collect.clock import Clock, SystemClock
from dovetail.collect.server_config import ServerConfig
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.pipeline.config.parse import parse_section, read_toml
from dovetail.pipeline.config.sections import Section


class RetentionSection(Section):
    """How long bad reports that were set aside are kept."""

    days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0


class AnalyzerConfig(ServerConfig):
    """`analyzer.toml`; paths in it are relative to the file."""

    listen: str = "127.0.0.1:8402"
    tokens: str | None = None  # without, nobody may query
    public_page: bool = False
    workers: Annotated[int, Field(ge=1, le=1024)] = 1  # processes that open a large batch
    retention: RetentionSection = RetentionSection()


def load(path: Path) -> AnalyzerConfig:
    """Read and check a configuration; errors name the file and the key."""
    return parse_section(AnalyzerConfig, read_toml(path), name=str(path))


def assemble(config: AnalyzerConfig, folder: Path, clock: Clock | None = None) -> tuple[Analyzer, TokenSource]:
    """The analyzer of a configuration in `folder`, and the tokens of its subscribers."""
    config.require_private()
    versions = config.load_campaigns(folder)
    keys = config.load_keys(folder, "analyzer")
    campaigns = AnalyzerCampaigns.of([each for each, _ in versions], keys)
    tokens: TokenSource = Tokens(()) if config.tokens is None else LiveTokens(folder / config.tokens)
    slots = {campaign.id: RosterSlotEstimator.load(campaign, place) for campaign, place in versions}
    analyzer = Analyzer(
        campaigns,
        store=open_analyzer_store(config.store_url(folder, "analyzer")),
        clock=clock or SystemClock(),
        keep_days=config.retention.days,
        slots={id: found for id, found in slots.items() if found is not None},
        processes=UnsealingProcesses(config, folder, config.workers),
    )
    if (audit := config.audit_log(folder, keys)) is not None:
        known = tokens.current()
        audit.append("server started", role="analyzer", count=len(known.tokens), digest=known.fingerprint)
    return analyzer, tokens
