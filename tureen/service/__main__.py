"""`python -m tureen.service`: start a server from command-line flags."""

from __future__ import annotations

import sys

from tureen.errors import TureenError
from tureen.service.server import serve
from tureen.service.settings import from_flags


def main() -> int:
    """Serve until the process is told to stop, and return the exit code."""
    try:
        settings = from_flags(sys.argv[1:])
    except TureenError as error:
        print(f"tureen: {error}", file=sys.stderr)
        return 2
    try:
        return serve(settings)
    except KeyboardInterrupt:
        # Ctrl-C before the server installed its signal handler.
        return 130


if __name__ == "__main__":
    sys.exit(main())
