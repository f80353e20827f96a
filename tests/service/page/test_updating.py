"""Views are updated in place: the focus, selected text, scroll positions and opened details stay."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.service.page.console import Console
from tests.service.running import RunningServer

UPDATE = """async ([before, after]) => {
    const {el, replace} = await import("/page/dom.js");
    const {update} = await import("/page/update.js");
    const node = el("div"), tree = ([tag, key, ...children]) => el(tag, {key}, children.map(
        (child) => (typeof child === "string" ? child : tree(child))));
    replace(node, before.map(tree));
    const known = new Map([...node.children].filter((child) => child.key).map((child) => [child.key, child]));
    update(node, after.map(tree));
    const stayed = [...node.children].filter((child) => known.get(child.key) === child).map((child) => child.key);
    const expected = el("div", {}, after.map(tree));
    return {stayed, isRight: node.isEqualNode(expected), html: node.innerHTML,
        keys: [...node.children].map((child) => child.key ?? null)};
}"""
"""Shows one list of elements, [tag, key or null, children …], and then another."""


def row(key: str | None, *texts: str) -> list[Any]:
    return ["p", key, *(["b", None, text] for text in texts)]


CASES: list[tuple[list[Any], list[Any], str]] = [
    ([], [row("a", "1")], ""),
    ([row("a", "1"), row("b", "2")], [row("a", "1"), row("b", "3")], "ab"),
    ([row("a", "1"), row("b", "2"), row("c", "3")], [row("b", "2"), row("c", "3"), row("d", "4")], "bc"),
    ([row("b", "2")], [row("a", "1"), row("b", "2")], "b"),
    ([row("a", "1"), row("b", "2"), row("c", "3")], [row("c", "3"), row("a", "1"), row("b", "2")], "cab"),
    ([row("a", "1"), row("b", "2")], [], ""),
    ([row(None, "1"), row("a", "2")], [row("a", "2"), row(None, "1", "more")], "a"),
    ([["p", "a", "text"]], [["div", "a", "text"]], ""),
    ([["p", "a", "text", ["b", None, "bold"], "end"]], [["p", "a", ["b", None, "other"], "text"]], "a"),
    ([row("a", "1"), ["p", None, "x"], row("b")], [["p", None, "y"], row("b", "2"), row("a")], "ba"),
    ([row("a"), row("b"), row("c"), row("d")], [row("d"), row("x"), row("b"), row("a", "1")], "dba"),
]
"""Elements before and after an update, and the keys of those that stay."""


def test_elements_with_the_same_key_stay(console: Console) -> None:
    for before, after, stayed in CASES:
        result = console.page.evaluate(UPDATE, [before, after])
        assert result["isRight"], result["html"]
        assert result["keys"] == [entry[1] for entry in after]
        assert "".join(result["stayed"]) == stayed
    console.check()


def test_buttons_are_not_reused(console: Console) -> None:
    """What a button does refers to the data that it was made for."""
    clicked = console.page.evaluate("""async () => {
        const {el} = await import("/page/dom.js");
        const {update} = await import("/page/update.js");
        const node = el("div"), clicked = [];
        for (const text of ["first", "second"]) update(node, el("button", {onclick: () => clicked.push(text)}, "same"));
        node.firstChild.click();
        return clicked;
    }""")
    assert clicked == ["second"]


def test_focus_stays_in_lists(console: Console, served: RunningServer, trades: str) -> None:
    page = console.page
    for name in ("before", "after"):
        served.soup.create_stream(f"{name}_{trades}", "a INT")
    console.open("streams")
    link = page.get_by_role("link", name=f"after_{trades}", exact=True)
    link.focus()
    handle = link.element_handle()
    # Streams come and go, and numbers change, above and below.
    served.soup.drop_stream(f"before_{trades}")
    served.soup.create_stream(f"later_{trades}", "a INT")
    served.soup.push(f"after_{trades}", [{"a": 1}] * 7)
    page.get_by_role("link", name=f"before_{trades}", exact=True).wait_for(state="detached")
    page.get_by_role("row", name=f"after_{trades} 7").wait_for()
    page.get_by_role("link", name=f"later_{trades}", exact=True).wait_for()
    assert handle.evaluate("node => node.isConnected && node === document.activeElement")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=f"after_{trades}").wait_for()
    for name in ("after", "later"):
        served.soup.drop_stream(f"{name}_{trades}")
    console.check("404")


def test_selected_text_and_scroll_position_stay(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(f"SELECT sym, price, ts FROM {trades} ORDER BY ts DESC")
    page = console.page
    console.open(f"queries/{query.id}")
    page.get_by_text("60 rows").wait_for()
    page.get_by_label("Kind of chart").select_option("points")
    page.get_by_role("cell", name="17", exact=True).evaluate("node => getSelection().selectAllChildren(node)")
    page.get_by_label("answer", exact=True).focus()
    served.soup.push(trades, [{"sym": "LIVE", "price": 1000.5, "ts": datetime.now(UTC)}])
    page.get_by_role("cell", name="1000.5").wait_for()
    assert page.evaluate("getSelection().toString()") == "17"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "answer"
    assert page.get_by_label("Kind of chart").input_value() == "points"
    console.check()


def test_opened_details_stay_open(console: Console, served: RunningServer, trades: str) -> None:
    query = served.soup.register(f"SELECT sym FROM {trades} WHERE price > 3")
    page = console.page
    console.open(f"queries/{query.id}?tab=plan")
    page.get_by_text("All details").click()
    details = page.locator("details pre")
    details.wait_for()
    with page.expect_response(f"**/v1/queries/{query.id}/explain"):
        pass
    with page.expect_response(f"**/v1/queries/{query.id}/explain"):
        # The response before has been shown.
        pass
    assert details.is_visible()
    console.check()
