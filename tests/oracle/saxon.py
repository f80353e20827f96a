"""Saxon in a process of its own.

An object of Saxon ends its process if another thread frees it than the one that made it, and Python frees objects in
whatever thread collects garbage. Here the process has one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from saxonche import PySaxonProcessor

_PROLOG = (
    'declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization"; '
    'declare option output:omit-xml-declaration "yes"; declare option output:indent "no"; '
)


class Saxon:
    """A process that answers queries in XQuery."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Use that process, which runs this module."""
        self._process = process

    def answer(self, document: str, query: str) -> str:
        """The result of a query over a document, as XML."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([document, query]), file=self._process.stdin, flush=True)
        result, error = json.loads(self._process.stdout.readline())
        assert error is None, error
        return str(result)


@contextmanager
def running_saxon() -> Iterator[Saxon]:
    """Start the process, and end it after its use."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Saxon(process)


def main() -> None:
    """Answer a query for each line of the standard input, until its end."""
    with PySaxonProcessor(license=False) as saxon:
        for line in sys.stdin:
            document, query = json.loads(line)
            processor = saxon.new_xquery_processor()
            processor.set_context(xdm_item=saxon.parse_xml(xml_text=document))
            processor.set_query_content(_PROLOG + query)
            result = processor.run_query_to_string()
            error = processor.error_message or "no result" if result is None else None
            print(json.dumps([result, error]), flush=True)


if __name__ == "__main__":
    main()
