"""Traffic reports of detectors on a freeway: the schema of PSoup's Table 3, with synthetic data.

Nine stations of eight lanes report every 20 seconds, as long as they are not out of order. Two rush hours a day raise
demand, the morning's at odd stations and the evening's at even ones. Where demand comes near to the capacity of a lane,
speed breaks down; lanes on the left are faster. A detector without vehicles reports the speed that vehicles would have.
So lanes and stations are uniform, and very slow and very fast tuples are rare (§5.5).
"""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_workload import Condition, Factor, Workload

SCHEMA = "sensordatetime TIMESTAMP, lane INT, stationid INT, speed DOUBLE, volume INT, occupancy DOUBLE"
LANES, STATIONS = 8, 9
REPORT = 20_000_000
"""Microseconds from one report to the next."""
MISSING = 0.01
"""The share of missing reports."""
START = 1_767_571_200_000_000  # Monday 2026-01-05, in microseconds

_DAY = 24 * 3600 * 1_000_000
_CAPACITY = 12.0
"""The capacity of a lane in vehicles per 20 seconds."""

Floats = npt.NDArray[np.float64]


def trace(rows: int, seed: int = 0) -> pa.Table:
    """The first tuples, in order of time, then station, then lane."""
    chance = np.random.default_rng(seed)
    reports = int(rows / (LANES * STATIONS * (1 - MISSING))) + 16
    report, station, lane = np.meshgrid(np.arange(reports), np.arange(STATIONS), np.arange(LANES), indexing="ij")
    times = START + report * REPORT
    demand = _demand(times, station) * (1.1 - 0.04 * lane)
    speed = _speed(demand, lane, chance)
    volume = chance.poisson(np.minimum(demand, 1.0) * _CAPACITY * np.minimum(speed / 45, 1.0))
    # The share of the time that vehicles of five metres are over a detector of two; speed is in miles per hour.
    occupancy = np.minimum(100 * volume * 7 / (0.447 * speed * 20), 100.0)
    reported = np.flatnonzero(chance.random(times.size) >= MISSING)[:rows]
    assert len(reported) == rows
    return pa.table(
        {
            "sensordatetime": pa.array(times.ravel()[reported], pa.timestamp("us", tz="UTC")),
            "lane": pa.array((lane.ravel()[reported] + 1).astype(np.int32)),
            "stationid": pa.array((station.ravel()[reported] + 1).astype(np.int32)),
            "speed": pa.array(speed.ravel()[reported].round(1)),
            "volume": pa.array(volume.ravel()[reported].astype(np.int32)),
            "occupancy": pa.array(occupancy.ravel()[reported].round(1)),
        }
    )


def conditions(count: int, seed: int = 7) -> list[Condition]:
    """One lane of one station, above some speed (§5.5.1); all constants uniform."""
    chance = random.Random(seed)
    return [
        (
            Factor("lane", "=", chance.randint(1, LANES)),
            Factor("stationid", "=", chance.randint(1, STATIONS)),
            Factor("speed", ">", chance.randrange(1000) / 10),
        )
        for _ in range(count)
    ]


def traffic(name: str, rows: int, queries: int) -> Workload:
    """A workload of tuples and queries."""
    queries_conditions = conditions(queries)
    return Workload(name, SCHEMA, "sensordatetime", trace(rows), queries_conditions, REPORT, LANES * STATIONS)


def _demand(times: npt.NDArray[np.int64], station: npt.NDArray[np.int64]) -> Floats:
    """The demand as a share of a lane's capacity."""
    hour = (times % _DAY) / 3_600_000_000
    weekday = np.where((times // _DAY + 3) % 7 < 5, 1.0, 0.55)  # day 0 of the epoch was a Thursday
    inbound = np.where(station % 2 == 0, 1.0, 0.6)
    morning = inbound * np.exp(-(((hour - 8.0) / 1.3) ** 2))
    evening = (1.6 - inbound) * np.exp(-(((hour - 17.5) / 1.7) ** 2))
    daylight = 0.45 / (1 + np.exp(-(hour - 6.0) * 1.5)) / (1 + np.exp((hour - 21.0) * 1.2))
    demand: Floats = 0.06 + weekday * (daylight + 0.6 * (morning + evening)) * (0.9 + 0.03 * station)
    return demand


def _speed(demand: Floats, lane: npt.NDArray[np.int64], chance: np.random.Generator) -> Floats:
    """Free flow until demand comes near to the capacity of the lane; within [0, 100]."""
    free = 70 - 1.5 * lane
    # Jams affect a whole station for some minutes, not single tuples.
    waves = chance.normal(0, 0.12, (len(demand) // 15 + 1, demand.shape[1], 1)).repeat(15, axis=0)[: len(demand)]
    load = np.maximum(demand + waves * demand, 0.0)
    speed = free / (1 + 0.6 * load**6) + chance.normal(0, 4.0, demand.shape)
    clipped: Floats = np.clip(speed, 0.1, 100.0)
    return clipped
