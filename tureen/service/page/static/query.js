// The page of a query: its answer, changes, plan, why, and the answer at any time.

import {get, pathOf, poller, query as parametersOf, request} from "./api.js";
import {choice, confirmed, el, every, loading, notify, plural, replace, tabs} from "./dom.js";
import {answerChart} from "./answer_chart.js";
import {planGraph} from "./plan.js";
import {cell, dataTable, heads} from "./table.js";
import {update} from "./update.js";

const ROWS = 500, SHOWN_CHANGES = 200;
const TABS = ["answer", "changes", "plan", "why", "time"];

export async function show(main, {name, parameters, session}) {
  const query = await get(pathOf("queries", name));
  const path = (rest) => pathOf("queries", query.id, rest);
  const state = el("span");
  const isOwner = query.owner === session.principal;
  const shared = el("button", {type: "button", onclick: async () => {
    Object.assign(query, await request("PATCH", path(""), {json: {shared: !query.shared}}));
    replace(shared, query.shared ? "Stop sharing" : "Share");
  }}, query.shared ? "Stop sharing" : "Share");
  const drop = el("button", {type: "button", class: "danger", onclick: async () => {
    if (!(await confirmed(`Unregister query ${query.name ?? query.id}?`, "Unregister"))) return;
    await request("DELETE", path(""));
    notify("query unregistered");
    location.hash = "#/queries";
  }}, "Unregister");
  const pages = tabs([
    ["Answer", (panel) => showAnswer(panel, path)],
    ["Changes", (panel) => showChanges(panel, path)],
    ["Plan", (panel) => showPlan(panel, path, state)],
    ["Why", (panel) => showWhy(panel, path)],
    ["Time", (panel) => showTime(panel, path)],
  ], Math.max(0, TABS.indexOf(parameters.get("tab"))));
  replace(state, query.state);
  replace(main, el("h1", {}, query.name ?? query.label ?? query.id),
    el("div", {class: "row"}, el("span", {class: query.state === "failed" ? "bad" : "good"}, state),
      el("span", {class: "soft"}, `owner ${query.owner}, registered ${new Date(query.registered_at).toLocaleString()}, handle `, el("code", {}, query.id)),
      session.can("write") && isOwner ? shared : null,
      session.can("write") && (isOwner || session.can("admin")) ? drop : null),
    el("pre", {class: "sql", tabindex: 0, role: "region", "aria-label": "text of the query"}, query.sql), ...pages.nodes);
  return pages.stop;
}

function errorBox(error) {
  return el("div", {class: "problem", role: "alert"}, error.text ?? error.message);
}

function showAnswer(panel, path) {
  const about = el("p", {class: "soft"}), body = el("div", {}, loading()), chart = answerChart();
  replace(panel, about, chart.node, body);
  const read = poller();
  return every(700, async (maxAge) => {
    try {
      const answer = await read(path(`/result?limit=${ROWS}`), maxAge);
      if (answer === null) return;
      const bounds = [answer.window.begin, answer.window.end];
      const window = bounds.some((each) => each !== null) ? `window from ${bounds.map(moment).join(" to ")}` : "all that is retained";
      update(about, `${plural(answer.rows.length, "row")}${answer.truncated ? " of more" : ""}; ${window}`,
        answer.complete ? "" : el("strong", {}, "; the window reaches beyond what is retained"));
      update(body, dataTable(answer.columns, answer.rows, {caption: "answer"}));
      chart.update(answer);
    } catch (error) { replace(body, errorBox(error)); }
  });
}

/** An end of a window; of an abstract clock, it is not a time of the calendar. */
function moment(text) {
  if (text === null) return "…";
  return Number.isNaN(Date.parse(text)) ? text : new Date(text).toLocaleString([], {dateStyle: "short", timeStyle: "medium"});
}

function showChanges(panel, path) {
  const about = el("p", {class: "soft", role: "status"}, "Waiting for changes."), body = el("tbody");
  const table = el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "changes", hidden: true}, el("table", {}, heads(["kind", "row"]), body));
  replace(panel, about, table);
  let source = null, total = 0, position = null;

  function open() {
    if (document.hidden) { source?.close(); source = null; return; }
    if (source !== null) return;
    // After a pause, from where it ended.
    source = new EventSource(path(`/changes${parametersOf({since: position})}`));
    source.addEventListener("change", (event) => add(event, JSON.parse(event.data)));
    source.addEventListener("position", (event) => { position = event.lastEventId; });
    source.addEventListener("punctuation", (event) => add(event, {kind: "punctuation", row: JSON.parse(event.data)}));
    source.addEventListener("error", (event) => {
      if (event.data) { replace(about, errorBox(JSON.parse(event.data).error)); source.close(); }
      else if (source.readyState === EventSource.CLOSED) explain();
    });
  }

  function add(event, change) {
    position = event.lastEventId || position;
    total += 1;
    table.hidden = false;
    const row = change.punctuation ?? change.row;
    const pairs = Object.entries(row).map(([name, value]) => [el("strong", {}, name), " ", cell(value), "  "]);
    body.prepend(el("tr", {}, el("td", {}, change.kind), el("td", {}, pairs)));
    while (body.children.length > SHOWN_CHANGES) body.lastChild.remove();
    replace(about, `${plural(total, "change")} since this page was opened`);
  }

  async function explain() {
    // An EventSource does not tell why it was refused.
    try { await get(path("/changes"), {timeout: 0}); } catch (error) { if (error.status) replace(about, errorBox(error)); }
  }

  document.addEventListener("visibilitychange", open);
  open();
  return () => { document.removeEventListener("visibilitychange", open); source?.close(); };
}

function showPlan(panel, path, state) {
  const body = el("div", {}, loading());
  replace(panel, body);
  return every(3000, async () => {
    const plan = await get(path("/explain"));
    update(state, plan.state);
    update(body, plan.error ? el("div", {class: "problem"}, plan.error) : null,
      el("div", {class: "scroll"}, planGraph(plan)),
      el("details", {}, el("summary", {}, "All details"), el("pre", {}, JSON.stringify(plan, null, 2))));
  });
}

function showWhy(panel, path) {
  const where = el("input", {class: "grow code", "aria-label": "Condition", placeholder: "sym = 'IBM' AND price > 100"});
  const body = el("div");
  const form = el("form", {class: "row"}, where, el("button", {class: "primary"}, "Explain"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const {tuples, total, has_more: hasMore, notes} = await get(path("/why"), {where: where.value, limit: 50});
      replace(body, el("p", {}, `${plural(total, "tuple satisfies", "tuples satisfy")} the condition${hasMore ? "; the latest are shown" : ""}.`),
        notes.map((note) => el("p", {class: "soft"}, note)),
        tuples.map((tuple) => el("div", {class: "card"},
          el("strong", {class: tuple.in_answer ? "good" : "bad"}, tuple.in_answer ? "In the answer" : "Not in the answer"),
          el("div", {class: "code"}, Object.entries(tuple.row).map(([name, value]) => [`${name} = `, cell(value), "  "])),
          tuple.reasons.length ? el("ul", {}, tuple.reasons.map((reason) => el("li", {}, reason.text))) : null)));
    } catch (error) { replace(body, errorBox(error)); }
  });
  replace(panel, el("p", {class: "soft"}, "Which tuples of an input are in the answer, and what kept the others out."), form, body);
  return null;
}

function showTime(panel, path) {
  const span = choice([["600", "the last 10 minutes"], ["3600", "the last hour"], ["86400", "the last day"], ["604800", "the last week"], ["all", "all that is retained"]], "600", {"aria-label": "Length"});
  const slider = el("input", {type: "range", min: 0, max: 1000, value: 1000, "aria-label": "Time of the answer"});
  const play = el("button", {type: "button"}, "Play");
  const shown = el("output"), body = el("div"), chart = answerChart();
  let range = null, timer = null, asked = 0;
  replace(panel, el("div", {class: "row"}, span, play, shown), slider, chart.node, body);

  async function readRange() {
    const bounds = await timeRange(path);
    if (bounds === null) { replace(body, el("p", {class: "soft"}, "The streams of this query have no rows, or no time of the calendar.")); return; }
    const begin = span.value === "all" ? bounds[0] : Math.max(bounds[0], bounds[1] - Number(span.value) * 1000);
    range = [begin, bounds[1]];
    await load();
  }

  async function load() {
    if (range === null) return;
    const now = new Date(range[0] + (range[1] - range[0]) * (Number(slider.value) / 1000));
    replace(shown, now.toLocaleString());
    const number = (asked += 1);
    try {
      const answer = await get(path("/result"), {limit: ROWS, now: now.toISOString()});
      if (number !== asked) return;
      update(body, el("p", {class: "soft"}, `${plural(answer.rows.length, "row")} at that time`), dataTable(answer.columns, answer.rows, {caption: "answer at that time"}));
      chart.update(answer);
    } catch (error) { replace(body, errorBox(error)); }
  }

  function stop() { clearInterval(timer); timer = null; replace(play, "Play"); }
  slider.addEventListener("input", load);
  span.addEventListener("change", readRange);
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) >= 1000) slider.value = 0;
    replace(play, "Pause");
    timer = setInterval(() => {
      if (document.hidden) return;
      slider.value = Number(slider.value) + 10;
      load();
      if (Number(slider.value) >= 1000) stop();
    }, 400);
  });
  readRange();
  return stop;
}

/** The earliest and the latest time of the tuples of a query's streams, in milliseconds; null if there are none. */
async function timeRange(path) {
  const plan = await get(path("/explain"));
  const names = [...new Set(plan.stream ? [plan.stream] : (plan.inputs ?? []).map((input) => input.stream).filter(Boolean))];
  let low = Infinity, high = -Infinity;
  for (const name of names) {
    const stream = await get(pathOf("streams", name));
    const column = stream.time && `\`${stream.time.replaceAll("`", "``")}\``;
    if (!column) { high = Math.max(high, Date.now()); low = Math.min(low, Date.now() - 86_400_000); continue; }
    const {rows} = await request("POST", "/v1/sql", {json: {sql: `SELECT min(${column}) AS low, max(${column}) AS high FROM \`${name.replaceAll("`", "``")}\``}});
    // Numbers are the times of an abstract clock.
    const [first, last] = [rows[0]?.low, rows[0]?.high].map((time) => (typeof time === "string" ? Date.parse(time) : NaN));
    if (!Number.isNaN(first)) { low = Math.min(low, first); high = Math.max(high, last); }
  }
  // Times of the calendar have microseconds, those of the browser milliseconds.
  return Number.isFinite(low) && Number.isFinite(high) ? [low - 1000, high + 1] : null;
}

