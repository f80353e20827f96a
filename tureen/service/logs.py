"""Log lines: one for each thing, as text or as JSON; never a token, and never what is in a row."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

REQUESTS = logging.getLogger("tureen.request")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """A line for people."""
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        lines = f"{_moment(record)} {record.levelname.lower()} {record.getMessage()}{facts}"
        return lines if record.exc_info is None else f"{lines}\n{self.formatException(record.exc_info)}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """A line for programs."""
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info is not None:
            line["trace"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = getattr(record, "facts", {})
    return found


def set_up(form: str, level: str) -> None:
    """Log to the standard error in that form, from that level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    for name in ("tureen", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    # Its lines about starting and stopping are said better by this server itself.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, logging.getLogger("uvicorn").level))
