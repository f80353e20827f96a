"""XML in: documents of photons that are parsed, typed and pushed, by the processor time that they take.

An element is an XML element; a photon has eleven. The rows are compared with those that the documents were written from
before anything is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.results.answer import xml_pieces
from tureen.schema import Schema
from tureen.stems.xml_items import read_xml
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.photons import ITEM, SCHEMA, TIME, photon_xml, photons

ROUNDS = 7
PHOTON_ELEMENTS = 11


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure parsing, pushing and writing."""
    schema = Schema.parse(SCHEMA, TIME)
    rows = list(photons(scale.photons))
    document, elements = photon_xml(rows), len(rows) * PHOTON_ELEMENTS
    assert document.count(b"</") == elements + 1
    engine = ManualEngine(root / "xml")
    engine.create_stream("photons", SCHEMA, time=TIME, clock="stream")
    handle = engine.register("SELECT * FROM photons")
    engine.append("photons", read_xml(schema, ITEM, document, "photons"))
    table = engine.invoke(handle).table
    assert table.to_pylist() == rows
    report.add(f"the document of {len(rows):,} photons", len(document) / 1e6, "MB")
    parsing = _seconds(lambda: read_xml(schema, ITEM, document, "photons"))
    report.add("elements parsed and typed", elements / parsing, "elements/s of a core")
    pushing = _seconds(lambda: engine.append("photons", read_xml(schema, ITEM, document, "photons")))
    report.add("elements pushed", elements / pushing, "elements/s of a core")
    report.reach("xml elements", elements / pushing)
    writing = _seconds(lambda: sum(map(len, xml_pieces(table))))
    report.add("elements of an answer written", elements / writing, "elements/s of a core")
    engine.close()


def _seconds(call: Callable[[], object]) -> float:
    """The median of the processor times of a call, in all threads."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return statistics.median(times)
