"""The routes as one page of HTML, made from the OpenAPI description: no script, nothing from elsewhere."""

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


def reference(described: dict[str, Any]) -> str:
    """The page."""
    parts = []
    group = None
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            tag = one.get("tags", [""])[0]
            if tag != group:
                group = tag
                parts.append(f"<h2>{escape(tag.capitalize())}</h2>")
            parts.append(_route(method, path, one))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(described['info']['title'])}</title><style>{_STYLE}</style>"
        f"<h1>{escape(described['info']['title'])}</h1><p>{escape(described['info'].get('summary', ''))} "
        "Send <code>Authorization: Bearer …</code>. For programs: <a href=openapi.json>openapi.json</a>.</p>"
        + "".join(parts)
    )


def _route(method: str, path: str, one: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(parameter['in'])}"
        f"<td>{escape(parameter.get('description', ''))}"
        for parameter in one.get("parameters", [])
    ]
    bodies = one.get("requestBody", {}).get("content", {})
    if bodies:
        rows.append(f"<tr><td>body<td><td>{escape(', '.join(bodies))}")
    answers = ", ".join(f"{status} {answer.get('description', '')}" for status, answer in one["responses"].items())
    return (
        f"<article><h3><span class=m>{method.upper()}</span> <code>{escape(path)}</code> {escape(one['summary'])}</h3>"
        f"<p>{escape(one.get('description', ''))}</p><table>{''.join(rows)}</table>"
        f"<p><small>{escape(answers)}</small></p></article>"
    )
