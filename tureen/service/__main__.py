"""`python -m tureen.service`: a server by its flags alone."""

from __future__ import annotations

import sys

from tureen.errors import TureenError
from tureen.service.server import serve
from tureen.service.settings import from_flags


def main() -> int:
    """Serve until told to stop."""
    try:
        settings = from_flags(sys.argv[1:])
    except TureenError as error:
        print(f"tureen: {error}", file=sys.stderr)
        return 2
    try:
        return serve(settings)
    except KeyboardInterrupt:
        # Before the server took over the signal.
        return 130


if __name__ == "__main__":
    sys.exit(main())
