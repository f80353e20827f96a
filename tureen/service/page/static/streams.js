// Streams: the list, and the page of one.

import {get, pathOf, request} from "./api.js";
import {bytes, choice, confirmed, count, duration, el, every, field, loading, notify, plural, replace} from "./dom.js";
import {columnsOf, forgetNames} from "./editor.js";
import {dataTable, facts, heads} from "./table.js";
import {update} from "./update.js";

const TYPES = {csv: "text/csv", json: "application/json", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson", xml: "application/xml", arrow: "application/vnd.apache.arrow.stream"};

export function show(main, route) {
  return route.name ? showStream(main, route) : showList(main, route);
}

function showList(main, {session, parameters}) {
  const list = el("div", {}, loading());
  replace(main, el("h1", {}, "Streams"), list, session.can("write") ? createForm(parameters.has("create")) : null);
  return every(2000, async (maxAge) => {
    const [{streams}, status] = await Promise.all([get("/v1/streams", {limit: 1000}, maxAge), get("/v1/status", {}, maxAge)]);
    update(list, streams.length ? el("div", {class: "scroll"}, el("table", {},
      heads(["name", "tuples", "on disk", "kept", "made from", "state"], ["tuples", "on disk"]),
      el("tbody", {}, streams.map((stream) => {
        const numbers = status.streams[stream.name] ?? {};
        return el("tr", {key: stream.name},
          el("td", {}, el("a", {href: `#/streams/${encodeURIComponent(stream.name)}`}, stream.name)),
          el("td", {class: "value"}, count(numbers.rows)),
          el("td", {class: "value"}, numbers.bytes === undefined ? "–" : bytes(numbers.bytes)),
          el("td", {}, kept(stream)),
          el("td", {}, stream.query ?? stream.source?.format ?? "pushes"),
          el("td", {}, stream.error ? el("span", {class: "bad"}, stream.error) : numbers.rejected ? el("span", {class: "bad"}, `${count(numbers.rejected)} rejected`) : "ok"));
      }))))
      : el("p", {class: "soft"}, "There are no streams yet."));
  });
}

function kept(stream) {
  if (stream.retain) return stream.retain;
  return stream.retain_seconds === null || stream.retain_seconds === undefined ? "for ever" : duration(stream.retain_seconds);
}

function createForm(isOpen) {
  const name = el("input", {name: "name", required: true, maxlength: 255});
  const schema = el("input", {name: "schema", required: true, placeholder: "sym STRING, price DOUBLE, ts TIMESTAMP"});
  const time = el("input", {name: "time", placeholder: "ts; empty for the time of arrival"});
  const retain = el("input", {name: "retain", placeholder: "1 day; empty to keep all"});
  const clock = choice([["wall", "the wall clock"], ["stream", "the highest time seen"]], "wall", {name: "clock"});
  const form = el("form", {class: "fields"}, field("Name", name), field("Columns", schema), field("Time column", time),
    field("Keep", retain), field("NOW is", clock), el("button", {class: "primary"}, "Create stream"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = {name: name.value, schema: schema.value, clock: clock.value};
    if (time.value) body.time = time.value;
    if (retain.value) body.retain = retain.value;
    const stream = await request("POST", "/v1/streams", {json: body});
    forgetNames();
    location.hash = `#/streams/${encodeURIComponent(stream.name)}`;
  });
  return el("details", {open: isOpen}, el("summary", {}, "Create a stream"), form);
}

async function showStream(main, {name, session}) {
  const stream = await get(pathOf("streams", name));
  const numbers = el("div"), rows = el("div"), rejected = el("div"), dependants = el("div");
  replace(main, el("h1", {}, stream.name),
    stream.query ? el("pre", {class: "sql", tabindex: 0, role: "region", "aria-label": "text of the query"}, stream.query) : null,
    numbers, session.can("write") && !stream.query ? pushForm(stream) : null,
    el("h2", {}, "Columns"), dataTable([{name: "name"}, {name: "type"}], columnsOf(stream.schema), {caption: "columns"}),
    dependants, el("h2", {}, "Newest rows"), rows, rejected,
    session.can("admin") ? el("div", {class: "row"}, el("button", {class: "danger", type: "button", onclick: () => drop(stream)}, "Drop stream")) : null);
  const newest = `SELECT * FROM \`${stream.name.replaceAll("`", "``")}\` BEGIN NOW - 20 ROWS END NOW`;
  let seen = null;
  return every(1000, async (maxAge) => {
    const [status, answer, {streams}] = await Promise.all([
      get("/v1/status", {}, maxAge), request("POST", "/v1/sql", {json: {sql: newest}}), get("/v1/streams", {limit: 1000}, maxAge)]);
    const now = streams.find((other) => other.name === stream.name) ?? stream;
    const counts = status.streams[stream.name] ?? {};
    const refused = counts.rejected ? (await get(pathOf("streams", name, "/rejected"), {limit: 20})).rejected : [];
    update(numbers, facts([
      ["tuples", count(counts.rows)], ["not yet in a run", count(counts.pending_rows)], ["runs", count(counts.runs)],
      ["tuples in the tail", count(counts.tail_rows)], ["on disk", counts.bytes === undefined ? null : bytes(counts.bytes)],
      ["rows per second", counts.rows_per_second], ["time column", now.time ?? "arrival"],
      ["clock", now.clock], ["kept", kept(now)], ["unique", now.unique?.join(", ")], ["lateness", now.lateness_seconds && duration(now.lateness_seconds)],
      ["closed by punctuations", now.closed && Object.entries(now.closed).filter(([, value]) => value !== null && value?.length !== 0)
        .map(([key, value]) => `${key.replaceAll("_", " ")}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ")],
      ["error", now.error && el("span", {class: "bad"}, now.error)]]));
    const texts = new Set(answer.rows.map((row) => JSON.stringify(row)));
    const known = seen;
    update(rows, answer.rows.length ? dataTable(answer.columns, [...answer.rows].reverse(), {caption: "newest rows", isNew: (row) => known !== null && !known.has(JSON.stringify(row))}) : el("p", {class: "soft"}, "No rows."));
    seen = texts;
    update(rejected, refused.length ? [el("h2", {class: "bad"}, "Rejected rows"), dataTable([{name: "rejected_at"}, {name: "reason"}, {name: "row"}], refused, {caption: "rejected rows"})] : null);
    const derived = streams.filter((other) => other.query && mentions(other.query, stream.name));
    update(dependants, derived.length ? el("p", {}, "Streams that are derived from it: ", derived.map((other, index) => [index ? ", " : "", el("a", {href: `#/streams/${encodeURIComponent(other.name)}`}, other.name)])) : null);
  });
}

/** Whether a query reads a stream: its name stands after FROM, JOIN or a comma. */
export function mentions(sql, name) {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?:\\bfrom|\\bjoin|,)\\s*\\(?\\s*\`?${escaped}\`?(?![\\w])`, "i").test(sql);
}

function pushForm(stream) {
  const file = el("input", {type: "file", accept: Object.keys(TYPES).map((suffix) => `.${suffix}`).join(","), "aria-label": "file with rows"});
  const button = el("button", {type: "button", onclick: async () => {
    const [chosen] = file.files;
    if (!chosen) return notify("choose a file first", true);
    const type = TYPES[chosen.name.split(".").pop().toLowerCase()];
    if (!type) return notify(`unknown suffix of '${chosen.name}'; known are ${Object.keys(TYPES).join(", ")}`, true);
    button.disabled = true;
    try {
      const pushed = await request("POST", pathOf("streams", stream.name, "/rows"), {body: chosen, headers: {"Content-Type": type}});
      notify(`${plural(pushed.added, "row")} pushed${pushed.rejected ? `, ${count(pushed.rejected)} rejected` : ""}`);
      file.value = "";
    } finally { button.disabled = false; }
  }}, "Push file");
  return el("div", {class: "row"}, file, button);
}

async function drop(stream) {
  if (!(await confirmed(`Drop stream ${stream.name}, with its tuples and the queries over it?`, "Drop"))) return;
  await request("DELETE", pathOf("streams", stream.name));
  forgetNames();
  notify(`stream ${stream.name} dropped`);
  location.hash = "#/streams";
}
