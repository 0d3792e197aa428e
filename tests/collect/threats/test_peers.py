"""Anybody's client can hand in a captured message: plain curl, and another MQTT client."""

from __future__ import annotations

import pytest
from tests.collect.threats.conftest import BROKERED, SINGLE, Collection
from tests.collect.threats.stage import entries


@pytest.mark.exhaust
def test_plain_curl_submits_a_captured_message(collection: Collection) -> None:
    if collection.by_curl is None:
        pytest.skip("curl is not installed")
    assert collection.by_curl == "202"


@pytest.mark.exhaust
def test_another_mqtt_client_submits_captured_messages(collection: Collection, mosquitto: object) -> None:
    if not collection.by_mqtt:
        pytest.skip("mosquitto_pub is not installed")
    assert collection.by_mqtt == BROKERED


def test_a_message_counts_once_by_whatever_way_it_came(collection: Collection) -> None:
    header, body = entries(collection.stage.campaign, collection.stage.tap.batches[0])
    assert header.count == len(set(body)) == len(collection.sent) > SINGLE
