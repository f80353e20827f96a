// An editor of SQL: colours, completion of names, and marks at errors.

import {get} from "./api.js";
import {el, replace} from "./dom.js";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|(\d[\w.]*)|([A-Za-z_]\w*)|(\s+|[^\sA-Za-z_0-9'-]+|[\s\S])/g;
let words = null;

/** The names that can be completed: [{text, kind, relation}], read once for all editors of the page. */
async function names() {
  words ??= Promise.all([get("/v1/language"), get("/v1/streams", {limit: 1000}), get("/v1/tables", {limit: 1000})]).then(
    ([language, streams, tables]) => [
      ...relations(streams.streams, "stream"), ...relations(tables.tables, "table"),
      ...language.keywords.map((text) => ({text, kind: "keyword"})),
      ...language.functions.map((text) => ({text, kind: "function"})),
    ]);
  words.catch(() => { words = null; });
  return words;
}

/** Read the names again, after a stream was created or dropped. */
export function forgetNames() {
  words = null;
}

/** The columns of a schema text. */
export function columnsOf(schema) {
  return [...schema.matchAll(/`((?:[^`]|``)+)` ([^,(]+(?:\([^)]*\))?)/g)].map(([, name, type]) => ({name: name.replaceAll("``", "`"), type: type.trim()}));
}

function relations(list, kind) {
  return list.flatMap((relation) => [{text: relation.name, kind},
    ...columnsOf(relation.schema).map((column) => ({text: quoted(column.name), kind: "column", relation: relation.name}))]);
}

function quoted(name) {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

/** An editor; `onrun` is called on Ctrl+Enter. */
export function editor({value = "", label = "SQL", onrun = () => {}} = {}) {
  const back = el("pre", {"aria-hidden": "true"});
  const area = el("textarea", {spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": label, placeholder: "SELECT … FROM a stream WHERE … BEGIN NOW - 10 MINUTES END NOW", rows: 6, "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": "choices"});
  const list = el("ul", {class: "choices", role: "listbox", id: "choices", "aria-label": "completions", hidden: true});
  const box = el("div", {class: "editor"}, back, area, list);
  let mistake = null, keywords = new Set(), shown = [], chosen = 0, start = 0;

  function paint() {
    const text = area.value;
    let at = 0;
    const offset = mistake === null ? -1 : offsetOf(text, mistake);
    const pieces = [...text.matchAll(TOKEN)].map((match) => {
      const [token, comment, string, digits, word] = match;
      const kind = comment ? "comment" : string ? "string" : digits ? "digits" : word && keywords.has(word.toUpperCase()) ? "keyword" : null;
      const isMistake = offset >= at && offset < at + token.length;
      at += token.length;
      return kind || isMistake ? el("span", {class: [kind, isMistake ? "mistake" : null].filter(Boolean).join(" ")}, token) : token;
    });
    // An error at the end of the text has no token.
    replace(back, pieces, offset >= text.length && mistake !== null ? el("span", {class: "mistake"}, " ") : "", "\n");
    back.scrollTop = area.scrollTop;
  }

  async function complete(force = false) {
    const before = area.value.slice(0, area.selectionStart);
    const match = /(?:(\w+)\.)?([\w]*)$/.exec(before);
    const [, owner, word] = match;
    if (!force && !owner && word.length < 2) return close();
    const known = await names().catch(() => []);
    if (document.activeElement !== area) return close();
    start = area.selectionStart - word.length;
    const relation = owner && (aliases(area.value).get(owner.toLowerCase()) ?? owner.toLowerCase());
    const seen = new Set();
    shown = known.filter((name) => {
      if (owner ? name.kind !== "column" || name.relation.toLowerCase() !== relation : false) return false;
      if (!name.text.toLowerCase().startsWith(word.toLowerCase()) || name.text.toLowerCase() === word.toLowerCase()) return false;
      return !seen.has(name.text) && seen.add(name.text);
    }).slice(0, 12);
    chosen = 0;
    if (!shown.length) return close();
    list.hidden = false;
    place();
    draw();
  }

  function place() {
    // The caret is where the text up to it ends in an invisible copy.
    const marker = el("span", {}, "");
    const copy = el("pre", {}, area.value.slice(0, start), marker);
    box.append(copy);
    list.style.left = `${Math.min(marker.offsetLeft, box.clientWidth - 180)}px`;
    list.style.top = `${marker.offsetTop - area.scrollTop + 24}px`;
    copy.remove();
  }

  function draw() {
    replace(list, shown.map((name, index) => el("li", {role: "option", id: `choice-${index}`, "aria-selected": String(index === chosen),
      onmousedown: (event) => { event.preventDefault(); chosen = index; accept(); }}, name.text, el("span", {class: index === chosen ? "" : "soft"}, name.kind))));
    area.setAttribute("aria-activedescendant", `choice-${chosen}`);
  }

  function accept() {
    const name = shown[chosen], text = area.value, end = area.selectionStart;
    const word = text.slice(start, end);
    const insert = name.kind === "keyword" && word && word === word.toLowerCase() ? name.text.toLowerCase() : name.text;
    area.setRangeText(insert, start, end, "end");
    close();
    changed();
  }

  function close() {
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  function changed() {
    mistake = null;
    paint();
  }

  area.addEventListener("input", () => { changed(); complete(); });
  area.addEventListener("scroll", () => { back.scrollTop = area.scrollTop; });
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); close(); onrun(); return; }
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); complete(true); return; }
    if (list.hidden) return;
    if (event.key === "Escape") { event.preventDefault(); close(); }
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
      draw();
    } else if (event.key === "Tab" || event.key === "Enter") { event.preventDefault(); accept(); }
  });
  names().then((known) => { keywords = new Set(known.filter((name) => name.kind === "keyword").map((name) => name.text)); paint(); }).catch(() => {});
  area.value = value;
  paint();
  return {
    node: box,
    focus: () => area.focus(),
    get text() { return area.value; },
    set text(text) { area.value = text; changed(); },
    /** Mark the token at a position {line, column}, or none. */
    mark(position) { mistake = position ?? null; paint(); },
  };
}

/** Aliases in FROM, in lower case. */
function aliases(text) {
  const pattern = /(?:\bfrom|\bjoin|,)\s+(\w+)(?:\s*\[[^\]]*\])?\s+(?:as\s+)?(\w+)/gi;
  return new Map([...text.matchAll(pattern)].map(([, relation, alias]) => [alias.toLowerCase(), relation.toLowerCase()]));
}

function offsetOf(text, {line, column}) {
  const lines = text.split("\n");
  return lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
}
