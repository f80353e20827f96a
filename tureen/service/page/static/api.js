// Requests to the HTTP API, with the session's cookie.

/** An error response of the API. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, {status, code: error.code, detail: error.detail, hint: error.hint, position: error.position});
  }

  /** The message with detail and hint. */
  get text() {
    return [this.message, this.detail, this.hint && `Hint: ${this.hint}`].filter(Boolean).join("\n");
  }
}

let onSignedOut = () => {};

/** Set what happens when the session has ended. */
export function whenSignedOut(action) {
  onSignedOut = action;
}

/** Send a request; the parsed JSON of the response, or null if it has no content. Raises ApiError. */
export async function request(method, path, {body, json, headers = {}, quiet = false} = {}) {
  const response = await send(method, path, {body, json, headers});
  if (response.ok) return response.status === 204 ? null : await response.json();
  throw await failure(response, quiet);
}

async function send(method, path, {body, json, headers = {}}) {
  const sent = {...headers, "X-Tureen-Page": "1"};
  if (json !== undefined) { body = JSON.stringify(json); sent["Content-Type"] = "application/json"; }
  try {
    return await fetch(path, {method, body, headers: sent, credentials: "same-origin", cache: "no-store"});
  } catch {
    throw new ApiError(0, {message: "the server cannot be reached", code: "unreachable"});
  }
}

async function failure(response, quiet) {
  let error;
  try { error = (await response.json()).error; } catch { error = {message: `status ${response.status}`}; }
  if (response.status === 401 && !quiet) onSignedOut();
  return new ApiError(response.status, error);
}

/** GET with parameters; those that are null or empty are left out. The response may be `maxAge` seconds old. */
export function get(path, parameters = {}, maxAge = 0) {
  return request("GET", path + query(parameters), {headers: ageOf(maxAge)});
}

/** The header of a request whose response may be that many seconds old. */
function ageOf(maxAge) {
  return maxAge ? {"Cache-Control": `max-age=${maxAge}`} : {};
}

/** Parameters as the end of an address. */
export function query(parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** A reader of one address that transfers a body only if it has changed; null means that it has not. */
export function poller() {
  let tag = null, last = null;
  return async (path, maxAge = 0) => {
    const headers = {...ageOf(maxAge), ...(tag !== null && path === last ? {"If-None-Match": tag} : {})};
    const response = await send("GET", path, {headers});
    if (response.status === 304) return null;
    if (!response.ok) throw await failure(response, false);
    tag = response.headers.get("ETag");
    last = path;
    return response.json();
  };
}

/** The path of an object below a route, with its name escaped. */
export function pathOf(route, name, rest = "") {
  return `/v1/${route}/${encodeURIComponent(name)}${rest}`;
}
