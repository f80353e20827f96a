"""Log formats of the server, text and JSON; neither shows tokens or the content of rows."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

REQUESTS = logging.getLogger("tureen.request")


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """A line for people."""
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = f"{_timestamp(record)} {record.levelname.lower()} {record.getMessage()}{fields}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """A line for programs."""
        line = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info is not None:
            line["trace"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


def set_up_logging(log_format: str, level: str) -> None:
    """Log to the standard error in a format (`text` or `json`), from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    for name in ("tureen", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    # This server logs its own start and stop.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, logging.getLogger("uvicorn").level))
