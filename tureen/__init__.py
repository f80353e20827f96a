"""Tureen: thousands of standing SQL queries over live streams, on one shared Spark pipeline."""

from tureen.embedded import Soup, StandingQuery, open
from tureen.errors import TureenError
from tureen.results.answer import Answer

__all__ = ["Answer", "Soup", "StandingQuery", "TureenError", "open"]
