"""Photons of a sky survey, as in the example of "Data Stream Sharing" (§1): a stream, its XML, and four queries.

Each photon has celestial coordinates, the pixel of the detector, its pulse, an energy in keV and a detection time in
seconds of the mission, which ascends.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SCHEMA = (
    "`coord/cel/ra` DOUBLE, `coord/cel/dec` DOUBLE, `coord/det/dx` INT, `coord/det/dy` INT, "
    "phc INT, en DOUBLE, det_time DOUBLE"
)
ITEM = "photons/photon"
TIME = "det_time"

_VELA = """\
[coord/cel/ra >= 120.0 and coord/cel/ra <= 138.0
      and coord/cel/dec >= -49.0 and coord/cel/dec <= -40.0]"""

Q1 = """\
<photons>
  { for $p in stream("photons")/photons/photon
    where $p/coord/cel/ra >= 120.0 and $p/coord/cel/ra <= 138.0
      and $p/coord/cel/dec >= -49.0 and $p/coord/cel/dec <= -40.0
    return <vela> { $p/coord/cel/ra } { $p/coord/cel/dec }
              { $p/phc } { $p/en } { $p/det_time } </vela> }
</photons>
"""
Q2 = """\
<photons>
  { for $p in stream("photons")/photons/photon
    where $p/en >= 1.3
      and $p/coord/cel/ra >= 130.5 and $p/coord/cel/ra <= 135.5
      and $p/coord/cel/dec >= -48.0 and $p/coord/cel/dec <= -45.0
    return <rxj> { $p/coord/cel/ra } { $p/coord/cel/dec }
              { $p/en } { $p/det_time } </rxj> }
</photons>
"""
Q3 = f"""\
<photons>
  {{ for $w in stream("photons")/photons/photon
    {_VELA}
    |/photon/det_time diff 20 step 10|
    let $a := avg($w/photon/en)
    return <avg_en> {{ $a }} </avg_en> }}
</photons>
"""
Q4 = f"""\
<photons>
  {{ for $w in stream("photons")/photons/photon
    {_VELA}
    |/photon/det_time diff 60 step 40|
    let $a := avg($w/photon/en)
    where $a >= 1.3
    return <avg_en> {{ $a }} </avg_en> }}
</photons>
"""
QUERIES = {"Q1": Q1, "Q2": Q2, "Q3": Q3, "Q4": Q4}
"""The four queries of the paper: the Vela supernova remnant, RX J0852.0-4622 within it, and two averages."""

_REGIONS = (((130.5, 135.5), (-48.0, -45.0)), ((120.0, 138.0), (-49.0, -40.0)), ((0.0, 360.0), (-90.0, 90.0)))
"""Where photons come from: RX J0852.0-4622, the remnant around it, and the whole sky."""
_SHARES = (10, 30, 60)


def photons(count: int, seed: int = 0, *, start: float = 0.0, interval: float = 0.05) -> Iterator[dict[str, Any]]:
    """Photons in order of time, `interval` seconds apart on average; the same for the same arguments.

    >>> first = next(photons(1))
    >>> sorted(first) == sorted(name.split()[0].strip("`") for name in SCHEMA.split(", "))
    True
    """
    random_numbers = random.Random(seed)
    time = start
    for _ in range(count):
        (right_ascensions, declinations), *_ = random_numbers.choices(_REGIONS, _SHARES)
        time += random_numbers.uniform(0.0, 2 * interval)
        yield {
            "coord/cel/ra": round(random_numbers.uniform(*right_ascensions), 3),
            "coord/cel/dec": round(random_numbers.uniform(*declinations), 3),
            "coord/det/dx": random_numbers.randrange(512),
            "coord/det/dy": random_numbers.randrange(512),
            "phc": random_numbers.randrange(1, 256),
            "en": round(random_numbers.uniform(0.1, 2.4), 3),
            "det_time": round(time, 3),
        }


def photon_xml(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Photons as a document."""
    items = "".join(
        "<photon><coord>"
        f"<cel><ra>{row['coord/cel/ra']}</ra><dec>{row['coord/cel/dec']}</dec></cel>"
        f"<det><dx>{row['coord/det/dx']}</dx><dy>{row['coord/det/dy']}</dy></det></coord>"
        f"<phc>{row['phc']}</phc><en>{row['en']}</en><det_time>{row['det_time']}</det_time></photon>\n"
        for row in rows
    )
    return f"<photons>\n{items}</photons>\n".encode()
