// Tokens, for administrators.

import {get, pathOf, request} from "./api.js";
import {confirmed, el, field, notify, replace} from "./dom.js";
import {heads} from "./table.js";

export async function show(main) {
  const list = el("div"), made = el("div");
  const principal = el("input", {required: true, maxlength: 255}), note = el("input", {maxlength: 1000});
  const expires = el("input", {placeholder: "30 days; empty for never"});
  const scopes = ["read", "write", "admin", "peer"].map((scope) => el("input", {type: "checkbox", name: scope, checked: scope === "read"}));
  const form = el("form", {class: "fields"}, field("Principal", principal),
    el("fieldset", {class: "row"}, el("legend", {}, "Scopes"), scopes.map((box) => el("label", {}, box, " ", box.name))),
    field("Expires in", expires), field("Note", note), el("button", {class: "primary"}, "Create token"));

  async function load() {
    const tokens = [];
    let after = null;
    do {
      const page = await get("/v1/tokens", {limit: 1000, after});
      tokens.push(...page.tokens);
      after = page.next;
    } while (after);
    const time = (text) => (text ? new Date(text).toLocaleString() : "–");
    replace(list, el("div", {class: "scroll"}, el("table", {},
      heads(["principal", "scopes", "note", "created", "expires", "last used", "action"]),
      el("tbody", {}, tokens.map((token) => el("tr", {},
        el("td", {}, token.principal), el("td", {}, token.scopes.join(", ")), el("td", {}, token.note), el("td", {}, time(token.created_at)),
        el("td", {}, time(token.expires_at)), el("td", {}, time(token.last_used_at)),
        el("td", {}, el("button", {class: "danger", type: "button", onclick: () => revoke(token)}, "Revoke"))))))));
  }

  async function revoke(token) {
    if (!(await confirmed(`Revoke the token of ${token.principal}${token.note ? ` (${token.note})` : ""}?`, "Revoke"))) return;
    await request("DELETE", pathOf("tokens", token.id));
    notify("token revoked");
    await load();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = {principal: principal.value, scopes: scopes.filter((box) => box.checked).map((box) => box.name)};
    if (note.value) body.note = note.value;
    if (expires.value) body.expires_in = expires.value;
    const token = await request("POST", "/v1/tokens", {json: body});
    replace(made, el("div", {class: "card"}, el("p", {}, "This is the only time that the token is shown:"), el("pre", {}, token.token),
      el("button", {type: "button", onclick: () => replace(made)}, "Hide")));
    await load();
  });
  replace(main, el("h1", {}, "Tokens"), list, el("h2", {}, "Create a token"), made, form);
  await load();
}
