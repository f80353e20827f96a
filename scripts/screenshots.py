"""`make screenshots`: the pictures of the page in the documents, from a server with the demo's data."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import tureen
from tureen.cli.demo import demo_server
from tureen.cli.demo_data import ALERTS, BLOCK_TRADES, BY_SECTOR, COMPANIES, SCHEMA, rules, trades

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SECONDS = 40
"""How long rows are pushed before the pictures are made, so that charts have something to show."""

DERIVED = "SELECT sym, price, qty, ts FROM trades WHERE qty >= 200"
MINUTES = (
    "SELECT sym, window_end, avg(price) AS average FROM trades [TUMBLE 5 SECONDS] WHERE sym = 'NVDA'"
    " GROUP BY sym BEGIN NOW - 10 MINUTES END NOW"
)


def main() -> int:
    """Make the pictures."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        print("there is no Chromium; scripts/ensure-chromium installs it")
        return 1
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="tureen-") as folder,
        demo_server(Path(folder)) as (url, token),
        tureen.connect(url, token=token) as soup,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        while soup.status()["engine"] == "starting":
            time.sleep(0.5)
        _fill(soup)
        page.goto(url)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        _shoot(page, soup)
        browser.close()
    return 0


def _fill(soup: tureen.Client) -> None:
    """Create the demo's streams and queries, and push rows for a while."""
    generator = random.Random(7)
    soup.create_stream("trades", SCHEMA, time="ts", retain="1 hour")
    soup.create_table("companies", "sym STRING, sector STRING", rows=COMPANIES)
    soup.create_stream("blocks", query=DERIVED)
    queries = [soup.register(BLOCK_TRADES, name="block trades"), soup.register(BY_SECTOR, name="by sector")]
    queries.append(soup.register(MINUTES, name="NVDA, five seconds"))
    soup.register_many(ALERTS, list(rules(generator)), name="alerts")
    batches = trades(generator)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        soup.push("trades", next(batches))
        for query in queries:
            query.invoke()
        time.sleep(0.2)


def _shoot(page: Page, soup: tureen.Client) -> None:
    page.get_by_role("img", name="Rows in per second").wait_for()
    page.wait_for_timeout(3_000)
    page.screenshot(path=IMAGES / "page-overview.png")
    query = soup.query("NVDA, five seconds")
    page.goto(f"{page.url.partition('#')[0]}#/queries/{query.id}")
    page.get_by_role("img", name="average by window_end").wait_for()
    page.screenshot(path=IMAGES / "page-query.png")
    print(f"written to {IMAGES}")


if __name__ == "__main__":
    sys.exit(main())
