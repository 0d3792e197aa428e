"""Alert rules and dashboard as they are shipped: they ask for metrics that servers have, and leave none out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.collect.issuer.world import TokenWorld
from tests.collect.shuffler.world import World, campaign

from dovetail.collect.analyzer.analyzer import AnalyzerMetrics
from dovetail.collect.issuer.app import scrape as scrape_issuer
from dovetail.collect.shuffler.app import scrape
from dovetail.collect.shuffler.service import ShufflerService

DEPLOY = Path(__file__).parents[3] / "deploy"
RUNBOOK = (DEPLOY.parent / "docs" / "runbook.md").read_text()
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
BOARD = json.loads((DEPLOY / "grafana" / "dovetail.json").read_text())


def asked(expression: str) -> set[str]:
    """Names of our metrics in an expression, counters without their ending."""
    return {name.removesuffix("_total") for name in re.findall(r"\bdovetail_\w+", expression)}


@pytest.fixture(scope="module")
def told() -> set[str]:
    """Names of the metrics that the servers tell."""
    world = World(campaign())
    shuffler = scrape(ShufflerService(world.shuffler, world.clock)).decode()
    texts = (shuffler, AnalyzerMetrics().text().decode(), scrape_issuer(TokenWorld().issuer).decode())
    return {family.name for text in texts for family in text_string_to_metric_families(text)}


def test_rules_and_dashboard_ask_for_metrics_that_are_told(told: set[str]) -> None:
    for expression in [rule["expr"] for rule in RULES] + [panel["targets"][0]["expr"] for panel in BOARD["panels"]]:
        assert asked(expression) <= told, expression


def test_the_dashboard_shows_every_metric_that_no_rule_watches(told: set[str]) -> None:
    everywhere = {name for rule in RULES for name in asked(rule["expr"])}
    shown = {name for panel in BOARD["panels"] for name in asked(panel["targets"][0]["expr"])}
    assert told - everywhere - shown <= {"dovetail_analyzer_batches_counted"}


def test_every_metric_of_the_runbook_has_a_rule_and_every_rule_says_what_is_wrong() -> None:
    _, _, section = RUNBOOK.partition("## Alert on")
    watched = {name for rule in RULES for name in asked(rule["expr"])}
    assert asked(section) == watched
    assert all(rule["annotations"]["summary"].endswith(".") for rule in RULES)
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names) and all(name.startswith("Dovetail") for name in names)


def test_panels_do_not_lie_on_each_other() -> None:
    places = [
        (x, y)
        for panel in BOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(places)) == len(places) and max(x for x, _ in places) < 24
