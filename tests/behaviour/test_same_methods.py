"""`open` and `connect` return objects with the same methods."""

from __future__ import annotations

import inspect

import pytest

import tureen

# Methods for the process that has opened the pot.
EMBEDDED_ONLY = {
    "acting_for",
    "batches",
    "is_light",
    "registered_queries",
    "settle",
    "start",
    "template_members",
    "trouble",
}


def public(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_methods_are_the_same() -> None:
    assert set(public(tureen.Soup)) - EMBEDDED_ONLY == set(public(tureen.Client))


@pytest.mark.parametrize("name", sorted(public(tureen.Client)))
def test_signatures_are_the_same(name: str) -> None:
    connected, embedded = public(tureen.Client)[name], public(tureen.Soup)[name]
    assert parameters(connected) == parameters(embedded)


def parameters(signature: inspect.Signature) -> list[tuple[str, object, object]]:
    return [(parameter.name, parameter.kind, parameter.default) for parameter in signature.parameters.values()]
