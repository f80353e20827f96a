"""What peers tell each other: read as it was written, and refused if it is anything else."""

from __future__ import annotations

from typing import Any

import pytest

from tureen.errors import PeerFailed
from tureen.federation.peer_messages import (
    hops_json,
    read_flows,
    read_hops,
    read_names,
    read_sample,
    read_states,
    sample_json,
    states_json,
)
from tureen.sharing.peer_network import Hop, PeerReport, ReceivedFlow
from tureen.sharing.photon_sample import PHOTONS, photon_sample

REPORT = PeerReport("B", False, ("A",), (ReceivedFlow("A", "SELECT 1"),), 0.5)


def test_what_is_written_is_read() -> None:
    assert read_states(states_json([REPORT])) == [REPORT]
    hops = [Hop("B", "A", "SELECT 1")]
    assert read_hops(hops_json(hops)) == hops
    rows = photon_sample(20, 1).rows
    sample, rate = read_sample(sample_json(rows, 2.5), PHOTONS)
    assert (sample.to_pylist(), rate) == (rows.to_pylist(), 2.5)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"peers": "B"},
        {"peers": [{}]},
        {"peers": [{"name": "", "is_home": True, "senders": [], "flows": [], "load": 0}]},
        {"peers": [{"name": "B", "is_home": 1, "senders": [], "flows": [], "load": 0}]},
        {"peers": [{"name": "B", "is_home": True, "senders": [7], "flows": [], "load": 0}]},
        {"peers": [{"name": "B", "is_home": True, "senders": [], "flows": [["A"]], "load": 0}]},
        {"peers": [{"name": "B", "is_home": True, "senders": [], "flows": [], "load": float("nan")}]},
        {"peers": [{"name": "B", "is_home": True, "senders": [], "flows": [], "load": -1}]},
        {"peers": [{"name": str(n), "is_home": True, "senders": [], "flows": [], "load": 0} for n in range(65)]},
    ],
)
def test_other_reports_are_refused(content: Any) -> None:
    with pytest.raises(PeerFailed):
        read_states(content)


@pytest.mark.parametrize("content", [None, {}, [["B", "A"]], [["B", "A", 1]], [["B", "A", "x" * 70_000]], [[]] * 100])
def test_other_hops_are_refused(content: Any) -> None:
    with pytest.raises(PeerFailed):
        read_hops(content)


@pytest.mark.parametrize("read", [read_names, read_flows])
@pytest.mark.parametrize("content", [None, {}, "AB", [None], [["a", "b", "c"]]])
def test_other_lists_are_refused(read: Any, content: Any) -> None:
    with pytest.raises(PeerFailed):
        read(content)


@pytest.mark.parametrize(
    "content",
    [
        None,
        {"rows_per_second": "1", "rows": ""},
        {"rows_per_second": 1, "rows": "no base64"},
        {"rows_per_second": 1, "rows": "AAAA"},
        {"rows_per_second": 1, "rows": "A" * 3_000_000},
        sample_json(photon_sample(5, 1).rows.drop_columns(["en"]), 1.0),
    ],
)
def test_other_samples_are_refused(content: Any) -> None:
    with pytest.raises(PeerFailed):
        read_sample(content, PHOTONS)
