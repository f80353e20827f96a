"""The files of the page, and the headers that they are sent with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The content security policy: nothing but the server's own files, no inline script or style, no frame around it."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    # The browser asks each time, and gets 304 while the file is the same: a new version is seen at once.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page."""

    content: bytes
    media_type: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """All files of the page by their names; a request cannot name any other."""
    files = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in MEDIA_TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.name] = PageFile(content, MEDIA_TYPES[path.suffix], tag)
    return files


def file_response(name: str, request: Request) -> Response | None:
    """The response with a file of the page; None if there is none of that name."""
    file = page_files().get(name)
    if file is None:
        return None
    headers = {**HEADERS, "ETag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)
