// The workbench: an editor that runs, registers and follows.

import {query as parametersOf, request} from "./api.js";
import {answerChart} from "./answer_chart.js";
import {count, el, field, notify, plural, replace} from "./dom.js";
import {editor, forgetNames} from "./editor.js";
import {dataTable} from "./table.js";

const HISTORY = 50, SHOWN = 500;
const TYPES = {csv: "text/csv", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson"};

export function show(main, {session}) {
  const store = `tureen.history.${session.principal}`;
  const output = el("div", {"aria-live": "polite"}), history = el("div", {class: "history"});
  const name = el("input", {placeholder: "optional", maxlength: 255, "aria-label": "Name of the query"});
  const sql = editor({value: remembered(store)[0] ?? "", onrun: () => run()});

  async function attempt(action) {
    sql.mark(null);
    try {
      await action();
      remember(store, sql.text);
      drawHistory();
    } catch (error) {
      sql.mark(error.position);
      const place = error.position ? `line ${error.position.line}, column ${error.position.column}: ` : "";
      replace(output, el("div", {class: "problem", role: "alert"}, place, error.text ?? error.message));
    }
  }

  function run() {
    return attempt(async () => {
      const answer = await request("POST", "/v1/sql", {json: {sql: sql.text}});
      if (/^\s*(create|drop)\b/i.test(sql.text)) forgetNames();
      replace(output, resultOf(answer));
    });
  }

  function register(tab) {
    return attempt(async () => {
      const body = {sql: sql.text};
      if (name.value) body.name = name.value;
      const query = await request("POST", "/v1/queries", {json: body});
      location.hash = `#/queries/${encodeURIComponent(query.id)}${parametersOf({tab})}`;
    });
  }

  function drawHistory() {
    replace(history, remembered(store).map((text) => el("button", {type: "button", title: text, onclick: () => { sql.text = text; sql.focus(); }}, text)));
  }

  const button = (text, action, className = "") => el("button", {type: "button", class: className, onclick: action}, text);
  replace(main, el("h1", {}, "Workbench"), sql.node,
    el("div", {class: "row"}, button("Run once (Ctrl+Enter)", run, "primary"),
      session.can("write") ? [field("Name", name), button("Register", () => register(null)), button("Register and follow", () => register("changes"))] : null),
    output,
    session.can("write") ? templateForm(sql, attempt) : null,
    el("h2", {}, "History"), history);
  drawHistory();
  sql.focus();
}

function resultOf(answer) {
  if (answer.columns && answer.rows) {
    const chart = answerChart();
    chart.update(answer);
    const rows = answer.rows.slice(0, SHOWN), isCut = rows.length < answer.rows.length;
    return [el("p", {class: "soft"}, plural(answer.rows.length, "row"), isCut ? `; the first ${count(SHOWN)} are in the table` : ""), chart.node, dataTable(answer.columns, rows, {caption: "answer"})];
  }
  return el("pre", {}, JSON.stringify(answer, null, 2));
}

function templateForm(sql, attempt) {
  const name = el("input", {maxlength: 255}), label = el("input", {placeholder: "optional column"});
  const types = el("input", {placeholder: "sym STRING, least DOUBLE"});
  const file = el("input", {type: "file", accept: ".csv,.ndjson,.jsonl", required: true});
  const form = el("form", {class: "fields"},
    el("p", {class: "soft"}, "The SQL above has parameters such as :sym; each row of the file makes a query."),
    field("Name", name), field("Label", label), field("Types of the parameters, for CSV", types), field("File of parameters", file),
    el("button", {class: "primary"}, "Register template"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const [chosen] = file.files;
      const type = TYPES[chosen?.name.split(".").pop().toLowerCase()];
      if (!type) return notify("choose a file with the suffix csv, ndjson or jsonl", true);
      const address = `/v1/templates${parametersOf({sql: sql.text, name: name.value, label: label.value, schema: types.value})}`;
      const template = await request("POST", address, {body: chosen, headers: {"Content-Type": type}});
      notify(`${plural(template.queries, "query", "queries")} registered`);
      location.hash = `#/queries?template=${encodeURIComponent(template.id)}`;
      return null;
    });
  });
  return el("details", {}, el("summary", {}, "Save as a template, with a file of parameters"), form);
}

function remembered(store) {
  try { return JSON.parse(localStorage.getItem(store)) ?? []; } catch { return []; }
}

function remember(store, text) {
  if (!text.trim()) return;
  localStorage.setItem(store, JSON.stringify([text, ...remembered(store).filter((other) => other !== text)].slice(0, HISTORY)));
}
