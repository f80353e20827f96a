"""The reference page: the OpenAPI description as static HTML, without scripts or external resources."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
code{background:#f3f3f3;padding:.1em .3em;border-radius:3px}
article{border-top:1px solid #ddd;padding:.5rem 0}
h3{font-weight:600;margin:.5rem 0} .m{display:inline-block;min-width:4.5rem;color:#06c}
table{border-collapse:collapse} td{padding:.1rem 1rem .1rem 0;vertical-align:top} small{color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code{background:#2a2a2a}.m{color:#6af}}
"""


def reference_page(openapi: dict[str, Any]) -> str:
    """Render an OpenAPI description as HTML."""
    parts = []
    group = None
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", [""])[0]
            if tag != group:
                group = tag
                parts.append(f"<h2>{escape(tag.capitalize())}</h2>")
            parts.append(_operation_html(method, path, operation))
    title, summary = escape(openapi["info"]["title"]), escape(openapi["info"].get("summary", ""))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1><p>{summary} "
        "Send <code>Authorization: Bearer …</code>. For programs: <a href=openapi.json>openapi.json</a>.</p>"
        + "".join(parts)
    )


def _operation_html(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(parameter['in'])}"
        f"<td>{escape(parameter.get('description', ''))}"
        for parameter in operation.get("parameters", [])
    ]
    bodies = operation.get("requestBody", {}).get("content", {})
    if bodies:
        rows.append(f"<tr><td>body<td><td>{escape(', '.join(bodies))}")
    responses = operation["responses"].items()
    statuses = ", ".join(f"{status} {response.get('description', '')}" for status, response in responses)
    heading = f"<code>{escape(path)}</code> {escape(operation['summary'])}"
    return (
        f"<article><h3><span class=m>{method.upper()}</span> {heading}</h3>"
        f"<p>{escape(operation.get('description', ''))}</p><table>{''.join(rows)}</table>"
        f"<p><small>{escape(statuses)}</small></p></article>"
    )
