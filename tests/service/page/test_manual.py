"""The manual: all sections of the reference, as HTML without raw markup."""

from __future__ import annotations

from tureen.service.page.manual import TITLES, manual


def test_the_manual_has_the_reference() -> None:
    headings = {(section.document, section.heading) for section in manual()}
    assert (TITLES["language"], "Joins") in headings
    assert any(document == TITLES["statements"] for document, _ in headings)
    assert any("BETWEEN" in section.text for section in manual())


def test_code_is_not_markup() -> None:
    for section in manual():
        assert "<script" not in section.html
        assert "<a " not in section.html
        assert "<img" not in section.html
