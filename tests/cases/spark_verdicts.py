"""What Spark has confirmed: fingerprints of cases whose expected answer or error Spark gave for the same input.

Spark answers the same question in the same way, so a case is a question again only when its text for Spark, its input,
its expected outcome or Spark's version changes. `make judge` asks all of them and writes the fingerprints.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyspark

from tests.cases.casefile import Expected
from tests.examples import explores

FILE = Path(__file__).with_name("spark-verdicts.txt")

ASK_ALL = "TUREEN_JUDGE"
"""The environment variable with which all cases are asked, and their fingerprints written."""

SAMPLE = 8
"""In every run, one in this number of the confirmed cases is asked again."""


@dataclass(frozen=True)
class Question:
    """A SELECT for Spark and the views that it reads."""

    text: str
    views: dict[str, pa.Table]

    def fingerprint(self, expected: Expected | None) -> str:
        """A text that changes with the question, the expected outcome and Spark's version."""
        views = {name: (str(view.schema), view.to_pydict()) for name, view in self.views.items()}
        content = repr((pyspark.__version__, self.text, views, expected))
        return sha256(content.encode()).hexdigest()[:16]


@dataclass
class Verdicts:
    """The confirmed fingerprints, and those of this run."""

    confirmed: frozenset[str]
    new: set[str] = field(default_factory=set)

    @property
    def known(self) -> set[str]:
        """What is confirmed after this run."""
        return self.new if ASK_ALL in os.environ else self.new | self.confirmed

    def must_ask(self, fingerprint: str) -> bool:
        """Whether Spark is asked about a case."""
        is_sampled = int(fingerprint, 16) % SAMPLE == 0
        return is_sampled or fingerprint not in self.confirmed or ASK_ALL in os.environ or explores()


@contextmanager
def verdicts() -> Iterator[Verdicts]:
    """The confirmed fingerprints; at the end, those of this run are written, if it asked all."""
    kept = Verdicts(frozenset(FILE.read_text().split()))
    yield kept
    if ASK_ALL in os.environ:
        FILE.write_text("".join(f"{fingerprint}\n" for fingerprint in sorted(kept.known)))
