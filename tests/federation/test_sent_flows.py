"""What is sent to peers is counted, and what is too much is refused."""

from __future__ import annotations

import pytest

from tureen.errors import TooMany
from tureen.federation.neighbour import FlowRequest
from tureen.federation.peer_quota import PeerQuota
from tureen.federation.sent_flows import SentFlows, SentTotal

REQUEST = FlowRequest("SELECT a FROM s", "pot/1", 0)


def test_flows_are_counted_while_they_are_sent_and_afterwards() -> None:
    sent = SentFlows()
    with sent.sending("beta", REQUEST) as flow:
        flow.rows, flow.bytes = 3, 70
        assert sent.totals() == {"beta": SentTotal(1, 3, 70)}
    with sent.sending("beta", REQUEST) as flow:
        flow.rows = 1
        assert sent.as_dict() == {"beta": {"flows": 1, "rows": 4, "bytes": 70, "refused": 0}}
    assert sent.totals() == {"beta": SentTotal(0, 4, 70)}


def test_a_peer_gets_no_more_flows_than_it_may_have() -> None:
    sent = SentFlows(PeerQuota(flows=1))
    with sent.sending("beta", REQUEST), sent.sending("gamma", REQUEST):
        with pytest.raises(TooMany, match="at most 1 flows"):
            sent.check("beta")
        with pytest.raises(TooMany), sent.sending("beta", REQUEST):
            raise AssertionError("it was sent")
        assert sent.totals()["beta"] == SentTotal(1, refused=2)
    sent.check("beta")
    with sent.sending("beta", REQUEST):
        assert len(sent.open) == 1
