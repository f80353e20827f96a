"""Error bodies become the exceptions of an embedded pot."""

from __future__ import annotations

import pytest

from tureen import errors
from tureen.client.remote_errors import error_from
from tureen.errors import Location, TureenError

CLASSES = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, TureenError)]


@pytest.mark.parametrize("kind", CLASSES)
def test_error_body_becomes_its_class(kind: type[TureenError]) -> None:
    body = {
        "code": kind.code,
        "message": "m",
        "detail": "d",
        "hint": "h",
        "position": {"line": 2, "column": 3},
    }
    error = error_from(body)
    assert type(error) is kind
    assert (error.message, error.detail, error.hint, error.location) == ("m", "d", "h", Location(2, 3))


def test_error_codes_are_unique() -> None:
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)


def test_unknown_error_code_is_kept() -> None:
    error = error_from({"code": "brand_new", "message": "m"})
    assert (type(error), error.code, str(error)) == (errors.ServiceError, "brand_new", "m")
