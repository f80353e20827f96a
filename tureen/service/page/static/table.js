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
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption ?? "rows"}, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", {scope: "col", title: column.type}, column.name)))),
    el("tbody", {}, rows.map((row) => el("tr", {class: isNew(row) ? "new" : null},
      columns.map((column) => el("td", {class: isNumber(column.type ?? "") ? "value" : null}, cell(row[column.name]))))))));
}

/** A table of names and values. */
export function facts(pairs) {
  return el("table", {}, el("tbody", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, value)))));
}
