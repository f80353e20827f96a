// The list of queries: search, states, and the queries of templates.

import {get, pathOf} from "./api.js";
import {choice, count, el, loading, plural, replace} from "./dom.js";
import {heads} from "./table.js";

const PAGE = 100;

export function show(main, {parameters, session}) {
  const template = parameters.get("template");
  return template ? showMembers(main, template, Number(parameters.get("start") ?? 0)) : showList(main, parameters, session);
}

async function showList(main, parameters, session) {
  const search = el("input", {type: "search", placeholder: "text in the name, SQL or handle", "aria-label": "Search queries", value: parameters.get("search") ?? "", class: "grow"});
  const state = choice([["", "all states"], ["failed", "failed"]], parameters.get("state") ?? "", {"aria-label": "State"});
  const owner = choice([["", "mine and shared"], ["*", "all owners"]], parameters.get("owner") ?? "", {"aria-label": "Owner"});
  const list = el("div", {}, loading()), templates = el("div"), more = el("div", {class: "row"});
  replace(main, el("h1", {}, "Queries"),
    el("div", {class: "row"}, search, state, session.can("admin") ? owner : null,
      session.can("write") ? el("a", {href: "#/workbench"}, "New query") : null),
    list, more, templates);
  let timer = null, number = 0;

  async function load(after = null, earlier = []) {
    const asked = (number += 1);
    const found = await get("/v1/queries", {limit: PAGE, after, search: search.value, failed: state.value === "failed" ? "true" : null, owner: session.can("admin") ? owner.value : null});
    if (asked !== number) return;
    const all = [...earlier, ...found.queries];
    const isFiltered = search.value || state.value || owner.value;
    replace(list, all.length ? queryTable(all) : el("p", {class: "soft"}, isFiltered ? "No query matches." : "There are no queries yet."));
    replace(more, found.next ? el("button", {type: "button", onclick: () => load(found.next, all)}, `More than ${count(all.length)}: show the next`) : null);
  }

  const again = () => { clearTimeout(timer); timer = setTimeout(() => load(), 200); };
  for (const control of [search, state, owner]) control.addEventListener("input", again);
  await load();
  const found = await get("/v1/templates", {limit: PAGE, owner: session.can("admin") ? owner.value : null});
  replace(templates, found.templates.length ? [el("h2", {}, "Templates"), el("div", {class: "scroll"}, el("table", {},
    heads(["name", "queries", "owner", "SQL"], ["queries"]),
    el("tbody", {}, found.templates.map((template) => el("tr", {},
      el("td", {class: "name"}, el("a", {href: `#/queries?template=${encodeURIComponent(template.id)}`}, template.name ?? template.id.slice(0, 8))),
      el("td", {class: "value"}, count(template.queries)), el("td", {}, template.owner), el("td", {class: "code"}, template.sql))))))] : null);
  return () => clearTimeout(timer);
}

async function showMembers(main, template, start) {
  const [about, {queries}] = await Promise.all([
    get(pathOf("templates", template)), get(pathOf("templates", template, "/queries"), {start, limit: PAGE})]);
  const link = (from, text) => el("a", {href: `#/queries?template=${encodeURIComponent(template)}&start=${from}`}, text);
  const jump = el("input", {type: "number", min: 0, value: start, "aria-label": "First query to show"});
  jump.addEventListener("change", () => { location.hash = `#/queries?template=${encodeURIComponent(template)}&start=${Math.max(0, Number(jump.value))}`; });
  replace(main, el("h1", {}, `Template ${about.name ?? about.id}`), el("pre", {class: "sql", tabindex: 0, role: "region", "aria-label": "text of the query"}, about.sql),
    el("div", {class: "row"}, `${plural(about.queries, "query", "queries")}, from`, jump,
      start > 0 ? link(Math.max(0, start - PAGE), "previous") : null,
      start + PAGE < about.queries ? link(start + PAGE, "next") : null),
    queryTable(queries));
}

function queryTable(queries) {
  return el("div", {class: "scroll", tabindex: 0}, el("table", {},
    heads(["name", "state", "owner", "registered", "SQL"]),
    el("tbody", {}, queries.map((query) => el("tr", {},
      el("td", {class: "name"}, el("a", {class: "few", href: `#/queries/${encodeURIComponent(query.id)}`}, query.name ?? query.label ?? query.id.slice(0, 8))),
      el("td", {class: query.state === "failed" ? "bad" : "good"}, query.state),
      el("td", {}, query.owner, query.shared ? " (shared)" : ""),
      el("td", {class: "time"}, new Date(query.registered_at).toLocaleString()),
      el("td", {class: "code"}, el("div", {class: "few", title: query.sql}, query.sql)))))));
}
