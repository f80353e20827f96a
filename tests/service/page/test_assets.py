"""The files of the page: complete, cached by tag, and without anything that the policy would refuse."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.service.running import RunningServer
from tureen.service.page.assets import FOLDER, POLICY, page_files

FILES = sorted(path.name for path in FOLDER.iterdir())


def test_every_file_has_a_media_type() -> None:
    assert sorted(page_files()) == FILES


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_modules_import_files_that_exist_and_make_no_markup_from_text(name: str) -> None:
    text = (FOLDER / name).read_text()
    for imported in re.findall(r'from "\./([^"]+)"', text):
        assert imported in FILES
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert unsafe not in text


def test_the_page_refers_to_its_own_files_only() -> None:
    html = (FOLDER / "index.html").read_text()
    for reference in re.findall(r'(?:src|href)="([^"#][^"]*)"', html):
        assert reference.removeprefix("/page/") in FILES
    assert "<style" not in html
    assert " style=" not in html
    assert not re.search(r" on\w+=", html)
    assert not re.search(r"<script(?![^>]* src=)", html)


def test_files_have_the_policy_and_a_tag(served: RunningServer) -> None:
    with httpx.Client(base_url=served.url) as client:
        for path in ("/", *(f"/page/{name}" for name in FILES)):
            first = client.get(path)
            assert first.status_code == 200, path
            assert first.headers["content-security-policy"] == POLICY
            assert first.headers["x-frame-options"] == "DENY"
            again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("name", ["../assets.py", "..%2fassets.py", "%2e%2e/assets.py", "nothing.js", "index.html/"])
def test_no_other_file_can_be_read(served: RunningServer, name: str) -> None:
    response = httpx.get(f"{served.url}/page/{name}")
    assert response.status_code == 404
    assert b"FOLDER" not in response.content
