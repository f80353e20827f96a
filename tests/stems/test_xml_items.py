"""XML as rows: paths, types, pieces of any size, and documents that must be refused."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import InvalidRows, InvalidSchema
from tureen.schema import Schema
from tureen.stems import xml_items
from tureen.stems.xml_items import ItemReader, read_xml, read_xml_batches
from tureen.testing.photons import ITEM, SCHEMA, TIME, photon_xml, photons

PHOTONS = Schema.parse(SCHEMA, TIME)


def read(document: str | bytes, schema: str = "a INT, b STRING", item: str | None = "r/i") -> list[dict[str, Any]]:
    data = document.encode() if isinstance(document, str) else document
    rows: list[dict[str, Any]] = read_xml(Schema.parse(schema), item, data, "d.xml").to_pylist()
    return rows


def test_items_by_paths() -> None:
    rows = list(photons(50))
    assert read_xml(PHOTONS, ITEM, photon_xml(rows), "photons").to_pylist() == rows


@pytest.mark.parametrize(
    ("document", "schema", "item", "rows"),
    [
        ("<r/>", "a INT", "r/i", []),
        ("<r><i><a>1</a></i><i/></r>", "a INT", "r/i", [{"a": 1}, {"a": None}]),
        ("<r><i><a> 7 </a><b> x </b></i></r>", "a INT, b STRING", "r/i", [{"a": 7, "b": " x "}]),
        ("<r><i><a/><b/></i></r>", "a INT, b STRING", "r/i", [{"a": None, "b": ""}]),
        ("<rows><row><a>1</a></row></rows>", "a INT", None, [{"a": 1}]),
        ("<i><a>1</a></i>", "a INT", "i", [{"a": 1}]),
        ("<r><x><i><a>1</a></i></x><i><a>2</a></i><x><i><a>3</a></i></x></r>", "a INT", "r/x/i", [{"a": 1}, {"a": 3}]),
        ("<r><i><i><a>1</a></i></i></r>", "`i/a` INT", "r/i", [{"i/a": 1}]),
        ("<r><i><x><a>1</a></x><c>9</c></i></r>", "`x/a` INT", "r/i", [{"x/a": 1}]),
        ("<r><i><a>1</a><a>2</a><a>3</a></i></r>", "`a[2]` INT, `a[last()]` INT", "r/i", [{"a[2]": 2, "a[last()]": 3}]),
        (
            "<r><i><x><a>1</a></x><x><a>2</a></x></i></r>",
            "`x[1]/a` INT, `x[2]/a` INT",
            "r/i",
            [{"x[1]/a": 1, "x[2]/a": 2}],
        ),
        ('<r><i k="5"><a u="m">1</a></i></r>', "`@k` INT, `a/@u` STRING", "r/i", [{"@k": 5, "a/@u": "m"}]),
        ('<p:r xmlns:p="u"><p:i><q xmlns="v">1</q></p:i></p:r>', "q INT", "r/i", [{"q": 1}]),
        ("<r><i><b>x<!-- c -->y<![CDATA[<&]]>&#65;&lt;</b></i></r>", "b STRING", "r/i", [{"b": "xy<&A<"}]),
        ("<r><i><t>2026-01-01T00:00:00Z</t><d>1.50</d></i></r>", "d DECIMAL(9,2)", "r/i", None),
    ],
)
def test_paths_and_values(document: str, schema: str, item: str | None, rows: list[dict[str, Any]] | None) -> None:
    result = read(document, schema, item)
    assert rows is None or result == rows


BOMB = (
    '<!DOCTYPE r [<!ENTITY l0 "lol">'
    + "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 10))
    + "]>"
)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "not valid XML"),
        ("no XML", "line 1 column 1: not valid XML"),
        ("<r><i><a>1</a></i>", r"line 1 column \d+: not valid XML\nPremature end"),
        ("<r>\n<i></a></i></r>", r"line 2 column \d+: not valid XML"),
        ("<r/><r/>", "not valid XML"),
        (b"<r><i><b>\xff\xfe</b></i></r>", "not valid XML\n.*encoding"),
        ("<r>" + "<x>" * 1000 + "</x>" * 1000 + "</r>", "not valid XML\nExcessive depth"),
        ("<r>" + "<i><a>" + "<x>" * 1000, "not valid XML\nExcessive depth"),
        (BOMB + "<r><i><b>&l9;</b></i></r>", "d.xml"),
        (BOMB + '<r><i x="&l9;"><b/></i></r>', "d.xml"),
        ('<!DOCTYPE r [<!ENTITY e "1">]><r><i><a>&e;</a></i></r>', "line 1: document type declarations"),
        (
            '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r><i><b>&e;</b></i></r>',
            "document type declarations",
        ),
        ('<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd"><r><i><b>x</b></i></r>', "document type declarations"),
        ("<!DOCTYPE r><r/>", "document type declarations"),
        ("<r><i><b>&nothing;</b></i></r>", "not valid XML\nEntity 'nothing' not defined"),
        ("<q><i/></q>", "line 1: the root is <q>, not <r>"),
        ("<r>\n<i><a>x</a></i></r>", "line 2: column 'a' is INT, not 'x'"),
        ("<r><i><a>0x10</a></i></r>", "column 'a' is INT, not '0x10'"),
        ("<r><i><a>99999999999</a></i></r>", "column 'a' is INT, not '99999999999'"),
        ("<r>\n<i>\n<a>1</a><a>2</a></i></r>", "line 3: <a> is repeated in an item\n.*a\\[1\\]"),
        ("<r><i><a>1<x/></a></i></r>", "<a> has elements in it, and column 'a' is a value"),
    ],
)
def test_refused_documents(document: str | bytes, message: str) -> None:
    with pytest.raises(InvalidRows, match=message):
        read(document)


def test_text_of_any_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_items, "MAX_ITEM_BYTES", 200_000)
    with pytest.raises(InvalidRows, match="no item ends within 200,000 bytes"):
        read("<r>" + "<x>y</x>" * 100_000 + "</r>")
    assert len(read("<r>" + "<i><b>y</b></i>" * 20_000 + "</r>")) == 20_000


def test_columns_must_be_paths() -> None:
    with pytest.raises(InvalidSchema, match="column 'a//b' is not a path"):
        read("<r/>", "`a//b` INT")


def test_memory_is_bounded_by_items() -> None:
    reader = ItemReader(Schema.parse("a INT"), "r/i", "endless")
    reader.feed(b"<r>")
    for _ in range(200):
        reader.feed(b"<x/><i><a>1</a></i>" * 50)
        assert reader.take().num_rows == 50
    assert reader._parent is not None
    assert len(reader._parent) <= 2


def test_parents_of_items_are_forgotten() -> None:
    reader = ItemReader(Schema.parse("a INT"), "r/b/i", "endless")
    reader.feed(b"<r>")
    for _ in range(200):
        reader.feed(b"<b><i><a>1</a></i><i><a>2</a></i></b>" * 50)
        assert reader.take().num_rows == 100
    assert reader._parent is not None
    assert len(reader._parent.getparent()) <= 2


@given(
    texts=st.lists(
        st.tuples(
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
        ),
        max_size=8,
    ),
    pieces=st.integers(1, 40),
    rows=st.integers(1, 5),
)
@example_settings(60)
def test_pieces_of_any_size_give_the_same_rows(
    texts: list[tuple[int | None, str | None]], pieces: int, rows: int
) -> None:
    def element(name: str, value: Any) -> str:
        text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return "" if value is None else f"<{name}>{text}</{name}>"

    document = "<r>" + "".join(f"<i>{element('a', a)}{element('b', b)}</i>" for a, b in texts) + "</r>"
    expected = [{"a": a, "b": None if b is None else b.replace("\ufffe", "")} for a, b in texts]
    if any(b is not None and ("\ufffe" in b or "\uffff" in b) for _, b in texts):
        return

    class Slowly(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read(min(pieces, size or 1))

    reader = ItemReader(Schema.parse("a INT, b STRING"), "r/i", "d")
    batches = [batch.to_pylist() for batch in read_xml_batches(reader, Slowly(document.encode()), rows)]
    assert [row for batch in batches for row in batch] == expected
    assert all(len(batch) == rows for batch in batches[:-1])


def test_reader_is_used_by_one_thread() -> None:
    with ThreadPoolExecutor(1) as other:
        reader = other.submit(ItemReader, Schema.parse("a INT"), "r/i", "d").result()
    with pytest.raises(AssertionError, match="one thread"):
        reader.feed(b"<r>")
