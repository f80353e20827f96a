"""The page in a real browser: each view's main path, live updates, scopes, and hostile texts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.federation.servers import connect, peer_token, run_servers
from tests.service.page.console import Console
from tests.service.running import RunningServer

HOSTILE = "<img src=x onerror=alert(1)>\"'&lt;<script>alert(2)<\u2028"
_numbers = itertools.count()


def test_sign_in_and_out(new_console: Callable[..., Console], served: RunningServer) -> None:
    opened = new_console()
    page = opened.page
    page.goto(served.url + "/")
    page.get_by_label("Token").fill("tureen_0123456789abcdef_" + 43 * "x")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").get_by_text("the token is not valid").wait_for()
    assert not page.get_by_role("button", name="Sign out").is_visible()
    opened.shoot("sign-in")
    opened.sign_in()
    assert served.tokens["admin"] not in page.url
    storage = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert served.tokens["admin"] not in storage
    assert json.loads(storage)[2] == ""
    page.reload()
    page.get_by_role("heading", name="Overview").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    page.reload()
    page.get_by_label("Token").wait_for()
    opened.check("401")


def test_overview_shows_activity_and_problems(console: Console, served: RunningServer, trades: str) -> None:
    name = f"refusing{next(_numbers)}"
    served.soup.create_stream(name, "a INT", unique=["a"])
    served.soup.push(name, [{"a": 1}, {"a": 1}])
    console.open("overview")
    console.page.get_by_role("link", name=f"stream {name}: 1 row was rejected").wait_for()
    console.page.get_by_role("img", name="Rows in per second").wait_for()
    console.shoot("overview")
    console.page.get_by_role("link", name=f"stream {name}: 1 row was rejected").click()
    console.page.get_by_role("heading", name="Rejected rows").wait_for()
    served.soup.drop_stream(name)
    assert trades
    console.check("404")


def test_stream_is_created_pushed_to_and_dropped(console: Console, served: RunningServer, tmp_path: Path) -> None:
    page, name = console.page, f"made{next(_numbers)}"
    console.open("streams")
    page.get_by_text("Create a stream").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Columns").fill("a INT, b STRING")
    page.get_by_role("button", name="Create stream").click()
    page.get_by_role("heading", name=name).wait_for()
    file = tmp_path / "rows.csv"
    file.write_text(f'a,b\n41,"{HOSTILE.replace(chr(34), chr(34) * 2)}"\n')
    page.get_by_label("file with rows").set_input_files(file)
    page.get_by_role("button", name="Push file").click()
    page.get_by_role("region", name="newest rows").get_by_text("41").wait_for()
    assert page.get_by_role("region", name="newest rows").get_by_text("<img src=x").count() == 1
    served.soup.push(name, [{"a": 42, "b": "live"}])
    page.get_by_role("cell", name="live").wait_for()
    console.shoot("stream")
    page.get_by_role("button", name="Drop stream").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert name in [stream["name"] for stream in served.soup.streams()]
    page.get_by_role("button", name="Drop stream").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    page.get_by_role("heading", name="Streams").wait_for()
    assert name not in [stream["name"] for stream in served.soup.streams()]
    console.check("404")


def test_answer_and_changes_are_live(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(f"SELECT sym, price, ts FROM {trades} WHERE price >= 50", name=f"dear {trades}")
    page = console.page
    console.open(f"queries/{query.id}")
    page.get_by_text("10 rows").wait_for()
    page.get_by_role("img", name="price by ts").wait_for()
    console.shoot("answer")
    served.soup.push(trades, [{"sym": "LIVE", "price": 99.0, "ts": datetime.now(UTC)}])
    page.get_by_role("cell", name="LIVE").wait_for()
    page.get_by_role("tab", name="Changes").click()
    page.get_by_text("Waiting for changes").wait_for()
    for number in range(50):
        # The connection begins at a position that the page does not show.
        served.soup.push(trades, [{"sym": f"NEXT{number}", "price": 100.0, "ts": datetime.now(UTC)}])
        if page.get_by_text("changes since").count():
            break
        page.wait_for_timeout(50)
    page.get_by_text("NEXT").first.wait_for()
    console.shoot("changes")
    page.get_by_label("Kind of chart")
    console.check()


def test_plan_why_and_time(console: Console, served: RunningServer, trades: str) -> None:
    sql = f"SELECT t.sym, t.price FROM {trades} t JOIN {trades} u ON t.price = u.price WHERE t.price > 55"
    query = served.soup.register(sql)
    page = console.page
    console.open(f"queries/{query.id}?tab=plan")
    picture = page.get_by_role("group", name="plan of the query")
    picture.get_by_text("price > 55.0").wait_for()
    picture.get_by_text("Answer").wait_for()
    console.shoot("plan")
    page.get_by_role("tab", name="Why").click()
    page.get_by_label("Condition").fill("t.price = 54 OR t.price = 56")
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("In the answer", exact=True).wait_for()
    page.get_by_text("price > 55.0 is false").wait_for()
    console.shoot("why")
    page.get_by_label("Condition").fill("nothing = 1")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("alert").get_by_text("nothing").wait_for()
    console.check("400")


def test_time_slider_shows_earlier_answers(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(f"SELECT count(*) AS n FROM {trades} BEGIN NOW - 1 HOUR END NOW")
    page = console.page
    console.open(f"queries/{query.id}?tab=time")
    rows = page.get_by_role("region", name="answer at that time")
    rows.get_by_role("cell", name="60", exact=True).wait_for()
    slider = page.get_by_label("Time of the answer")
    slider.evaluate("node => { node.value = 508; node.dispatchEvent(new Event('input')); }")
    # The slider spans a second before the first of 60 tuples to the last: half a second after the thirtieth.
    rows.get_by_role("cell", name="30", exact=True).wait_for()
    console.shoot("time")
    slider.evaluate("node => { node.value = 980; node.dispatchEvent(new Event('input')); }")
    page.get_by_role("button", name="Play").click()
    rows.get_by_role("cell", name="60", exact=True).wait_for()
    console.check()


def test_queries_are_searched(console: Console, served: RunningServer, trades: str) -> None:
    for name in ("needle", "hay"):
        served.soup.register(f"SELECT sym FROM {trades} WHERE sym = '{name}'", name=f"{name} {trades}")
    template = served.soup.register_many(
        f"SELECT sym FROM {trades} WHERE price > :p", [{"p": float(n)} for n in range(250)], name=f"rules {trades}"
    )
    page = console.page
    console.open("queries")
    page.get_by_label("Search queries").fill(f"NEEDLE {trades}")
    page.get_by_role("link", name=f"needle {trades}").wait_for()
    page.get_by_role("link", name=f"hay {trades}").wait_for(state="detached")
    page.get_by_role("link", name=f"needle {trades}").wait_for()
    console.shoot("queries")
    page.get_by_role("link", name=f"rules {trades}").click()
    page.get_by_text("250 queries").wait_for()
    page.get_by_role("link", name="next").click()
    page.get_by_text("price > 100.0").wait_for()
    assert template.id in page.url
    console.check()


def test_workbench_runs_marks_errors_and_registers(console: Console, served: RunningServer, trades: str) -> None:
    page = console.page
    console.open("workbench")
    editor = page.get_by_label("SQL", exact=True)
    editor.fill(f"SELECT sym,\n  prize FROM {trades}")
    editor.press("Control+Enter")
    page.get_by_role("alert").get_by_text("line 2, column 3: no column 'prize'").wait_for()
    assert page.locator(".mistake").inner_text() == "prize"
    console.shoot("workbench")
    editor.fill("")
    editor.press_sequentially(f"SELECT t. FROM {trades} t")
    for _ in range(len(f" FROM {trades} t")):
        editor.press("ArrowLeft")
    editor.press("Control+Space")
    page.get_by_role("option", name="price").click()
    assert editor.input_value() == f"SELECT t.price FROM {trades} t"
    editor.press("Control+Enter")
    page.get_by_text("60 rows").wait_for()
    name = f"made by hand {trades}"
    page.get_by_label("Name of the query").fill(name)
    page.get_by_role("button", name="Register", exact=True).click()
    page.get_by_role("heading", name=name).wait_for()
    assert served.soup.query(name).sql == f"SELECT t.price FROM {trades} t"
    page.get_by_role("button", name="Unregister").click()
    page.get_by_role("dialog").get_by_role("button", name="Unregister").click()
    page.get_by_role("heading", name="Queries").wait_for()
    console.open("workbench")
    page.get_by_role("button", name=f"SELECT t.price FROM {trades} t").wait_for()
    console.check("400")


def test_network_tokens_and_help(console: Console, served: RunningServer, trades: str) -> None:
    page = console.page
    served.soup.create_stream(f"derived_{trades}", query=f"SELECT * FROM {trades} WHERE price > 10")
    console.open("network")
    page.get_by_role("group", name="streams and what they are derived from").get_by_text(f"derived_{trades}").wait_for()
    console.shoot("network")
    console.open("tokens")
    page.get_by_label("Principal").fill("a guest")
    page.get_by_label("Note").fill(HOSTILE)
    page.get_by_role("button", name="Create token").click()
    page.get_by_text("This is the only time").wait_for()
    page.get_by_role("button", name="Hide").click()
    page.get_by_role("row", name="a guest").get_by_role("button", name="Revoke").click()
    console.shoot("tokens")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_role("row", name="a guest").wait_for(state="detached")
    console.open("help?search=tumble")
    page.get_by_text("TUMBLE").first.wait_for()
    console.shoot("help")
    console.check()


def test_a_view_that_loads_late_does_not_replace_another(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(f"SELECT sym FROM {trades}", name=f"late {trades}")
    page = console.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    held: list[Any] = []
    page.route(f"**/v1/queries/{query.id}", lambda route: held.append(route))
    console.open(f"queries/{query.id}")
    page.wait_for_function("document.title.length > 0")
    while not held:
        page.wait_for_timeout(20)
    console.open("help")
    page.get_by_role("heading", name="Help").wait_for()
    with page.expect_response(f"**/v1/queries/{query.id}"):
        held[0].continue_()
    page.wait_for_timeout(1_000)
    assert page.get_by_role("heading", level=1).inner_text() == "Help"
    before = len(asked)
    page.wait_for_timeout(1_500)
    assert asked[before:] == []
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#/help")
    console.check()


def test_polling_goes_on_after_a_failure(console: Console) -> None:
    page = console.page
    failures = iter([True])

    def answer(route: Any) -> None:
        if next(failures, False):
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/overview*", answer)
    console.open("streams")
    console.open("overview")
    page.get_by_text("the server cannot be reached").wait_for()
    page.get_by_role("img", name="Rows in per second").wait_for()
    console.check("ERR_FAILED")


def test_the_editor_shows_every_character(console: Console) -> None:
    console.open("workbench")
    editor = console.page.get_by_label("SQL", exact=True)
    text = "SELECT 1e5, 10m, `a-b`, 'it''s' --x\nFROM é WHERE a<>-.5 AND \"q\""
    editor.fill(text)
    assert console.page.locator(".editor pre").inner_text().rstrip("\n") == text
    console.check()


def test_scopes_hide_what_is_not_allowed(new_console: Callable[..., Console], trades: str) -> None:
    opened = new_console()
    opened.sign_in("read")
    page = opened.page
    opened.open("streams")
    page.get_by_role("link", name=trades, exact=True).wait_for()
    assert page.get_by_text("Create a stream").count() == 0
    assert page.get_by_role("link", name="Tokens").count() == 0
    opened.open(f"streams/{trades}")
    page.get_by_role("region", name="newest rows").wait_for()
    assert page.get_by_role("button", name="Drop stream").count() == 0
    assert page.get_by_role("button", name="Push file").count() == 0
    opened.open("tokens")
    page.get_by_role("heading", name="Overview").wait_for()
    opened.check()


def test_hostile_texts_stay_texts(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(
        f"SELECT '{HOSTILE.replace(chr(39), chr(39) * 2)}' AS `<b>bold</b>`, sym FROM {trades} WHERE price > 58",
        name=f"<b onmouseover=alert(1)>{trades}".replace("/", ""),
    )
    page = console.page
    for tab in ("answer", "changes", "plan", "why", "time"):
        console.open(f"queries/{query.id}?tab={tab}")
        page.get_by_role("heading", name="<b onmouseover=alert(1)>").wait_for()
    console.open(f"queries/{query.id}")
    page.get_by_role("columnheader", name="<b>bold</b>").wait_for()
    page.get_by_text("<img src=x onerror=alert(1)>").first.wait_for()
    console.open("queries?search=%3Cb%20onmouseover")
    page.get_by_role("link", name="<b onmouseover=alert(1)>").wait_for()
    console.open("streams/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.get_by_role("alert").wait_for()
    assert page.evaluate("document.querySelectorAll('main b, main img, main script').length") == 0
    console.check("404")


def test_the_page_fits_a_phone_and_the_dark(new_console: Callable[..., Console], trades: str) -> None:
    opened = new_console(viewport={"width": 390, "height": 844}, color_scheme="dark")
    opened.sign_in()
    for address in ("overview", "streams", f"streams/{trades}", "queries", "workbench", "help"):
        opened.open(address)
        opened.page.get_by_role("heading").first.wait_for()
        wide = opened.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, (address, wide)
    current = opened.page.get_by_role("link", name="Help", exact=True).bounding_box()
    assert current is not None
    assert 0 <= current["x"] <= 390 - current["width"]
    assert opened.page.evaluate("document.getElementById('header').offsetHeight") <= 120
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    opened.shoot("phone")
    opened.check()


def test_the_map_of_servers(chromium: Any, tmp_path: Path) -> None:
    with run_servers(tmp_path, "alpha", "beta") as (alpha, beta), connect(alpha) as home, connect(beta) as soup:
        home.create_stream("photons", "en DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
        soup.add_peer("alpha", alpha.url, token=peer_token(alpha, "beta"))
        home.share_stream("beta", "photons")
        query = soup.register("SELECT en FROM photons WHERE en > 1")
        position = home.push("photons", [{"en": float(n), "ts": datetime(2026, 1, 1, tzinfo=UTC)} for n in range(5)])
        assert len(query.invoke(wait_for=f"alpha/{position}")) == 3
        for server, shown in ((beta, "3 rows received"), (alpha, "3 rows sent")):
            context = chromium.new_context()
            context.set_default_timeout(20_000)
            console = Console(context.new_page(), server)
            console.sign_in()
            console.open("network")
            console.page.get_by_role("group", name="servers that send and receive streams").get_by_text(
                shown
            ).wait_for()
            console.shoot(f"network of {'alpha' if server is alpha else 'beta'}")
            if server is beta:
                row = console.page.get_by_role("row", name="photons")
                assert "SELECT `en`, `ts` FROM `photons` WHERE" in row.inner_text()
                assert "lives at alpha" in console.page.inner_text("main")
            console.check()
            context.close()
