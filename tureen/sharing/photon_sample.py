"""Photons of a sky survey and random queries over them, for networks in simulation (Data Stream Sharing, §1).

A quarter of the photons come from a few sources, the others from the whole sky. Queries are about well-known regions,
as those of the paper: a source has regions around it, one within the other, and queries differ in regions, energies,
columns and windows. With more sources, fewer queries have something in common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tureen.schema import Schema
from tureen.sharing.measured_rates import StreamSample

PHOTONS = Schema.parse("ra DOUBLE, dec DOUBLE, dx INT, dy INT, phc INT, en DOUBLE, det_time TIMESTAMP", time="det_time")

BASE_MICROS = 1_767_225_600_000_000
"""The time of the first photon: 2026-01-01."""

PHOTONS_PER_SECOND = 200

SOURCES = ((128.0, -45.0), (83.6, 22.0), (299.9, 40.7), (187.7, 12.4), (266.4, -29.0), (201.4, -43.0))
"""Right ascension and declination of the sources, in degrees."""

_SHARE = 0.25
_SPREAD = 3.0
_SIZES = (9.0, 6.0, 3.0)
_ENERGIES = (1.0, 1.3)
_SOURCES = 1
_PROJECTIONS = ("ra, dec, phc, en, det_time", "ra, dec, en, det_time", "en, det_time")
_WINDOWS = ((10, 10), (20, 10), (60, 20), (60, 40))
_WINDOWED = " FROM {stream} WHERE {where} GROUP BY HOP(det_time, INTERVAL '{step}' SECOND, INTERVAL '{size}' SECOND)"


def photon_sample(count: int, seed: int) -> StreamSample:
    """Photons in order of time; the same for the same arguments."""
    generator = np.random.default_rng(seed)
    sources = np.array(SOURCES)[generator.integers(0, len(SOURCES), count)]
    is_source = generator.random(count) < _SHARE
    sky = np.column_stack([generator.uniform(0, 360, count), generator.uniform(-90, 90, count)])
    places = np.where(is_source[:, None], sources + generator.normal(0, _SPREAD, (count, 2)), sky)
    times = BASE_MICROS + np.cumsum(generator.exponential(1e6 / PHOTONS_PER_SECOND, count)).astype(np.int64)
    table = pa.table(
        {
            "ra": np.round(places[:, 0] % 360, 4),
            "dec": np.round(np.clip(places[:, 1], -90, 90), 4),
            "dx": generator.integers(0, 512, count),
            "dy": generator.integers(0, 512, count),
            "phc": generator.integers(1, 256, count),
            "en": np.round(generator.lognormal(0.0, 0.6, count), 3),
            "det_time": times,
        }
    )
    return StreamSample(PHOTONS, table.cast(PHOTONS.arrow))


class PhotonQuery(NamedTuple):
    """A random query, as SQL, and where it is registered: the index of a peer."""

    sql: str
    peer: int


def photon_queries(count: int, streams: list[str], peers: int, seed: int, sources: int = _SOURCES) -> list[PhotonQuery]:
    """Random queries: selections and projections of regions, and averages of regions over step windows."""
    generator = np.random.default_rng(seed)
    return [
        PhotonQuery(
            _query(generator, streams[generator.integers(len(streams))], sources), int(generator.integers(peers))
        )
        for _ in range(count)
    ]


def _query(generator: np.random.Generator, stream: str, sources: int) -> str:
    # The first sources are asked for more often.
    ra, dec = SOURCES[min(int(generator.geometric(0.35)) - 1, min(sources, len(SOURCES)) - 1)]
    size = _SIZES[generator.integers(len(_SIZES))]
    where = f"ra BETWEEN {ra - size} AND {ra + size} AND dec BETWEEN {dec - size} AND {dec + size}"
    if generator.random() < 0.4:
        width, slide = _WINDOWS[generator.integers(len(_WINDOWS))]
        select = "SELECT window_start, avg(en) AS en"
        return select + _WINDOWED.format(stream=stream, where=where, step=slide, size=width)
    if generator.random() < 0.5:
        where = f"en >= {_ENERGIES[generator.integers(len(_ENERGIES))]} AND {where}"
    return f"SELECT {_PROJECTIONS[generator.integers(len(_PROJECTIONS))]} FROM {stream} WHERE {where}"
