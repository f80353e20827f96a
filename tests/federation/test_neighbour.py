"""What peers tell about themselves: also in versions that tell more, or not what they must."""

from __future__ import annotations

from typing import Any

import pytest

from tureen.errors import PeerFailed
from tureen.federation.neighbour import PeerInfo, SharedStream

STREAM = SharedStream("s", "k INT, ts TIMESTAMP", "ts", "stream", None, None, "pot/1", "alpha")
INFO = PeerInfo("alpha", "pot", (STREAM,))


def test_a_later_version_may_tell_more() -> None:
    content = INFO.as_json()
    content["streams"][0]["rank"] = 7
    assert PeerInfo.from_json({**content, "version": "9.0"}) == INFO


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a b\x00"},
        {"schema": "k NOTHING"},
        {"clock": "sun"},
        {"origin": ""},
        {"home": None},
        {"retain": "1 day"},
        {"time": "unknown"},
    ],
)
def test_what_is_wrong_is_refused(change: dict[str, Any]) -> None:
    content = INFO.as_json()
    content["streams"][0] |= change
    with pytest.raises(PeerFailed, match="not valid"):
        PeerInfo.from_json(content)


@pytest.mark.parametrize("name", ["schema", "origin", "item"])
def test_what_is_missing_is_refused(name: str) -> None:
    content = INFO.as_json()
    del content["streams"][0][name]
    with pytest.raises(PeerFailed, match="not valid"):
        PeerInfo.from_json(content)
