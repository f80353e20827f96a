// Answers as tables.

import {el} from "./dom.js";

const NUMBERS = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL.*)$/i;

/** Whether a column of this SQL type has numbers. */
export function isNumber(type) {
  return NUMBERS.test(type);
}

/** A value as the text of a cell. */
export function cell(value) {
  if (value === null || value === undefined) return el("span", {class: "null"}, "NULL");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The rows of an answer; `columns` are {name, type}. */
export function dataTable(columns, rows, {caption = null, isNew = () => false} = {}) {
  const keys = rowKeys(rows);
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption ?? "rows"}, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", {scope: "col", title: column.type, class: styleOf(column)}, column.name)))),
    el("tbody", {}, rows.map((row, index) => el("tr", {class: isNew(row) ? "new" : null, key: keys[index]},
      columns.map((column) => el("td", {class: styleOf(column)}, cell(row[column.name]))))))));
}

/** Numbers are aligned, times stay on one line. */
function styleOf({type = ""}) {
  return isNumber(type) ? "value" : /^TIMESTAMP/i.test(type) ? "time" : null;
}

/** The heads of a table's columns; those of numbers are aligned as the numbers are. */
export function heads(names, numbers = []) {
  return el("thead", {}, el("tr", {}, names.map((name) => el("th", {scope: "col", class: numbers.includes(name) ? "value" : null}, name))));
}

/** A key for each row: its values, and how many rows before it have the same ones. */
function rowKeys(rows) {
  const counts = new Map();
  return rows.map((row) => {
    const text = JSON.stringify(row), earlier = counts.get(text) ?? 0;
    counts.set(text, earlier + 1);
    return `${earlier} ${text}`;
  });
}

/** A table of names and values. */
export function facts(pairs) {
  return el("table", {class: "facts"}, el("tbody", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => el("tr", {key: name}, el("th", {scope: "row"}, name), el("td", {}, value)))));
}
