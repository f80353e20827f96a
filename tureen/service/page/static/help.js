// The language reference, searchable.

import {request} from "./api.js";
import {el, replace} from "./dom.js";

const ALLOWED = new Set(["P", "CODE", "PRE", "UL", "OL", "LI", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "STRONG", "EM", "BLOCKQUOTE", "H1", "H2", "H3", "H4", "BR", "HR"]);
const SHOWN = 30;

export async function show(main, {parameters}) {
  const {sections} = await request("GET", "/page/manual/sections");
  const search = el("input", {type: "search", class: "grow", "aria-label": "Search the manual", placeholder: "BETWEEN, window, punctuation, …", value: parameters.get("search") ?? ""});
  const list = el("div", {class: "manual", "aria-live": "polite"});
  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const scored = sections.map((section, index) => ({section, score: score(section, words), index})).filter(({score: points}) => points > 0);
    scored.sort((first, second) => second.score - first.score || first.index - second.index);
    replace(list, scored.length ? scored.slice(0, words.length ? SHOWN : 200).map(({section}) => el("details", {open: words.length > 0},
      el("summary", {}, el("strong", {}, section.heading), el("span", {class: "soft"}, ` ${section.document}`)), parsed(section.html)))
      : el("p", {class: "soft"}, "Nothing has all of these words."));
  }
  search.addEventListener("input", draw);
  replace(main, el("h1", {}, "Help"), el("div", {class: "row"}, search), list);
  draw();
  search.focus();
}

function score({heading, text}, words) {
  const [title, body] = [heading.toLowerCase(), text.toLowerCase()];
  if (!words.every((word) => title.includes(word) || body.includes(word))) return 0;
  return 1 + words.filter((word) => title.includes(word)).length * 10;
}

/** The elements of the manual's HTML, without any that are not text, lists, tables or code. */
function parsed(html) {
  const body = new DOMParser().parseFromString(html, "text/html").body;
  const copy = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE) return null;
    const children = [...node.childNodes].map(copy);
    // A wide table can be scrolled with the keyboard.
    return ALLOWED.has(node.tagName) ? el(node.tagName.toLowerCase(), node.tagName === "TABLE" ? {tabindex: 0} : {}, children) : children;
  };
  return el("div", {}, [...body.childNodes].map(copy));
}
