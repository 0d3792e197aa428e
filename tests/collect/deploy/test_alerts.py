"""Alert rules and dashboard as they are shipped: they ask for metrics that servers have, and leave none out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.collect.issuer.world import TokenWorld
from tests.collect.shuffler.world import BEGIN, World, campaign

from dovetail.collect.analyzer.analyzer import AnalyzerMetrics
from dovetail.collect.issuer.app import scrape as scrape_issuer
from dovetail.collect.shuffler.app import scrape
from dovetail.collect.shuffler.service import ShufflerService

DEPLOY = Path(__file__).parents[3] / "deploy"
RUNBOOK = (DEPLOY.parent / "docs" / "runbook.md").read_text()
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
PROMETHEUS = {"scrape_duration_seconds"}  # what it measures itself
BOARD = json.loads((DEPLOY / "grafana" / "dovetail.json").read_text())


def asked(expression: str) -> set[str]:
    """Names of metrics in an expression, counters without their ending."""
    found = re.findall(r"\b(?:dovetail|process|scrape)_\w+", expression)
    return {name.removesuffix("_total") for name in found}


@pytest.fixture(scope="module")
def each() -> dict[str, dict[str, Metric]]:
    """The metrics that each server tells, by name."""
    world = World(campaign())
    texts = {
        "shuffler": scrape(ShufflerService(world.shuffler, world.clock)),
        "analyzer": AnalyzerMetrics().text(),
        "issuer": scrape_issuer(TokenWorld().issuer, BEGIN),
    }
    return {
        role: {family.name: family for family in text_string_to_metric_families(text.decode())}
        for role, text in texts.items()
    }


@pytest.fixture(scope="module")
def told(each: dict[str, dict[str, Metric]]) -> set[str]:
    """Names of the metrics that the servers tell."""
    return {name for metrics in each.values() for name in metrics}


def test_rules_and_dashboard_ask_for_metrics_that_are_told(told: set[str]) -> None:
    for expression in [rule["expr"] for rule in RULES] + [panel["targets"][0]["expr"] for panel in BOARD["panels"]]:
        assert asked(expression) <= told | PROMETHEUS, expression


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="servers run on Linux")
def test_servers_that_meet_single_reports_tell_of_their_process_the_minute_of_its_start_alone(
    each: dict[str, dict[str, Metric]],
) -> None:
    for role in ("shuffler", "issuer"):
        others = {name: family for name, family in each[role].items() if not name.startswith("dovetail_")}
        assert list(others) == ["process_start_time_seconds"]
        (began,) = others["process_start_time_seconds"].samples
        assert began.value > 0 and began.value % 60 == 0 and not began.labels
    assert {"process_cpu_seconds", "process_resident_memory_bytes"} <= each["analyzer"].keys()


def test_the_dashboard_shows_every_metric_that_no_rule_watches(told: set[str]) -> None:
    everywhere = {name for rule in RULES for name in asked(rule["expr"])}
    shown = {name for panel in BOARD["panels"] for name in asked(panel["targets"][0]["expr"])}
    unshown = told - everywhere - shown
    assert {name for name in unshown if name.startswith("dovetail")} <= {"dovetail_analyzer_batches_counted"}


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
