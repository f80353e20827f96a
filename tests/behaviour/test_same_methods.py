"""`open` and `connect` give objects with the same methods."""

from __future__ import annotations

import inspect

import pytest

import tureen

# What only whoever holds the pot can do or needs to know.
OWN = {
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
        name: inspect.signature(one)
        for name, one in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_nothing_is_missing_and_nothing_is_more() -> None:
    assert set(public(tureen.Soup)) - OWN == set(public(tureen.Client))


@pytest.mark.parametrize("name", sorted(public(tureen.Client)))
def test_they_are_called_alike(name: str) -> None:
    ours, theirs = public(tureen.Client)[name], public(tureen.Soup)[name]
    assert [(one.name, one.kind, one.default) for one in ours.parameters.values()] == [
        (one.name, one.kind, one.default) for one in theirs.parameters.values()
    ]
