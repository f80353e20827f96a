// The page: signing in, the navigation, and which view is shown.

import {request, whenSignedOut} from "./api.js";
import {el, field, notify, replace} from "./dom.js";
import * as help from "./help.js";
import * as network from "./network.js";
import * as overview from "./overview.js";
import * as queries from "./queries.js";
import * as query from "./query.js";
import * as streams from "./streams.js";
import * as tokens from "./tokens.js";
import * as workbench from "./workbench.js";

const VIEWS = [
  {path: "overview", title: "Overview", scope: "read", view: overview},
  {path: "streams", title: "Streams", scope: "read", view: streams},
  {path: "queries", title: "Queries", scope: "read", view: queries, item: query},
  {path: "workbench", title: "Workbench", scope: "read", view: workbench},
  {path: "network", title: "Network", scope: "read", view: network},
  {path: "tokens", title: "Tokens", scope: "admin", view: tokens},
  {path: "help", title: "Help", scope: null, view: help},
];

const main = document.getElementById("main");
const header = document.getElementById("header");
let session = null;
let stop = null;
let shown = 0;  // The number of the view that is shown: one that loads late must not replace it.

/** Who is signed in: {principal, scopes, can(scope)}. */
function sessionOf(info) {
  return {...info, can: (scope) => scope === null || info.scopes.includes(scope) || info.scopes.includes("admin")};
}

function showSignIn(message = "") {
  shown += 1;
  stop?.();
  stop = null;
  session = null;
  header.hidden = true;
  const token = el("input", {type: "password", name: "token", autocomplete: "off", required: true});
  const problem = el("p", {class: "bad", role: "alert"}, message);
  const form = el("form", {class: "fields signin"},
    el("h1", {}, "Tureen"),
    el("p", {class: "soft"}, "Sign in with a token of this server. The first start prints one; ",
      el("code", {}, "tureen token create"), " creates more."),
    field("Token", token), problem, el("button", {class: "primary"}, "Sign in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = token.value;
    token.value = "";
    try {
      session = sessionOf(await request("POST", "/page/session", {json: {token: text}, quiet: true}));
      begin();
    } catch (error) {
      replace(problem, error.text ?? error.message);
      token.focus();
    }
  });
  replace(main, form);
  token.focus();
}

async function signOut() {
  await request("DELETE", "/page/session", {quiet: true});
  for (const key of Object.keys(localStorage)) if (key.startsWith("tureen.history.")) localStorage.removeItem(key);
  showSignIn();
}

function begin() {
  header.hidden = false;
  document.getElementById("signout").hidden = !session.has_tokens;
  replace(document.getElementById("who"), `${session.principal} (${session.scopes.join(", ")})`);
  if (!location.hash) location.hash = "#/overview";
  else route();
}

/** The view that an address asks for: {path, name, parameters}. */
function parseHash() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/");
  return {path: first || "overview", name: rest.map(decoded).join("/"), parameters: new URLSearchParams(search)};
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function route() {
  if (session === null) return;
  stop?.();
  stop = null;
  const {path, name, parameters} = parseHash();
  const entry = VIEWS.find((each) => each.path === path && session.can(each.scope)) ?? VIEWS.find((each) => session.can(each.scope));
  const visible = VIEWS.filter((each) => session.can(each.scope));
  replace(document.getElementById("nav"), visible.map((each) => el("a",
    {href: `#/${each.path}`, "aria-current": each === entry ? "page" : null}, each.title)));
  // On a phone, the navigation is wider than the screen.
  document.querySelector("#nav [aria-current]").scrollIntoView({inline: "center", block: "nearest"});
  document.title = `${name || entry.title} – Tureen`;
  const number = (shown += 1), place = el("div");
  replace(main, place);
  const view = name && entry.item ? entry.item : entry.view;
  Promise.resolve(view.show(place, {name, parameters, session})).then(
    (cleanup) => {
      if (typeof cleanup !== "function") return;
      if (number === shown) stop = cleanup;
      else cleanup();
    },
    (error) => replace(place, el("h1", {}, entry.title), el("div", {class: "problem", role: "alert"}, error.text ?? error.message),
      name ? el("p", {}, el("a", {href: `#/${entry.path}`}, `All ${entry.title.toLowerCase()}`)) : null),
  );
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

const stored = localStorage.getItem("tureen.theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
applyTheme(stored ?? (prefersDark.matches ? "dark" : "light"));
prefersDark.addEventListener("change", () => localStorage.getItem("tureen.theme") ?? applyTheme(prefersDark.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("tureen.theme", theme);
  applyTheme(theme);
});
document.getElementById("signout").addEventListener("click", signOut);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", () => { route(); main.focus({preventScroll: true}); });
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !isTyping) {
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  }
});
whenSignedOut(() => { if (session !== null) showSignIn("The session has ended."); });
window.addEventListener("unhandledrejection", (event) => {
  // An error of the server is a message to the reader; the page goes on.
  if (event.reason?.text) { event.preventDefault(); notify(event.reason.text, true); }
});

try {
  const info = await request("GET", "/page/session", {quiet: true});
  if (info.principal === null) showSignIn();
  else { session = sessionOf(info); begin(); }
} catch (error) {
  showSignIn(error.text ?? error.message);
}
