"""How many flows a peer may have, and how fast they are."""

from __future__ import annotations

import pytest

from tureen.errors import TooMany
from tureen.federation.peer_quota import PeerQuota, SendingPace


def test_a_peer_has_no_more_flows_than_it_may() -> None:
    quota = PeerQuota(flows=2)
    quota.check_flows(1)
    with pytest.raises(TooMany, match="at most 2 flows at a time"):
        quota.check_flows(2)


def test_the_bytes_of_one_second_are_sent_at_once_and_the_rest_at_the_rate() -> None:
    now = 100.0
    pace = SendingPace(1000.0, lambda: now)
    assert [pace.pause("beta", 500), pace.pause("beta", 500)] == [0.0, 0.0]
    assert pace.pause("beta", 2000) == pytest.approx(2.0)
    assert pace.pause("gamma", 1000) == 0.0, "another peer is not slowed down"
    now += 2.0
    assert pace.pause("beta", 1000) == pytest.approx(1.0)
    now += 3600.0
    assert pace.pause("beta", 1000) == 0.0
    assert pace.pause("beta", 1000) == pytest.approx(1.0), "an idle hour is not saved up"
