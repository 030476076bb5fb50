// The API: questions, changes, and one stream for all that a view watches.

let source = null;
const listeners = new Set();

// Tells whether the broker can be reached.
export function onConnection(listener) {
  listeners.add(listener);
}

function tell(connected) {
  for (const listener of listeners) listener(connected);
}

// Watches some views under names of the caller's own; the answer is called with those that are new.
export function watch(questions, answer) {
  if (source) source.close();
  source = new EventSource(`/api/live?watch=${encodeURIComponent(JSON.stringify(questions))}`);
  source.onopen = () => tell(true);
  source.onmessage = (event) => {
    tell(true);
    answer(JSON.parse(event.data));
  };
  source.onerror = () => tell(false);
}

export function stopWatching() {
  if (source) source.close();
  source = null;
}

export function tail(query, answer) {
  const stream = new EventSource(`/api/tail?${new URLSearchParams(query)}`);
  stream.onmessage = (event) => answer(JSON.parse(event.data));
  return () => stream.close();
}

export async function get(path, query = {}) {
  return read(await fetch(`${path}?${new URLSearchParams(query)}`));
}

export function post(path, body = {}) {
  return send("POST", path, body);
}

export async function send(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  return read(await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
}

async function read(response) {
  const text = await response.text();
  if (!text) return null;
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = { error: text.trim() };
  }
  if (!response.ok) throw new Error(data.error ?? response.statusText);
  return data;
}

// Turns counts that only grow into rates. It remembers the last minutes for curves.
export class Rates {
  constructor(kept = 90) {
    this.kept = kept;
    this.last = new Map();
    this.curves = new Map();
  }

  add(name, total, now = performance.now()) {
    const before = this.last.get(name);
    this.last.set(name, [total, now]);
    if (!before || now - before[1] < 200) return this.now(name);
    const rate = Math.max(0, (total - before[0]) / ((now - before[1]) / 1000));
    const curve = this.curves.get(name) ?? [];
    curve.push(rate);
    if (curve.length > this.kept) curve.shift();
    this.curves.set(name, curve);
    return rate;
  }

  curve(name) {
    return this.curves.get(name) ?? [];
  }

  now(name) {
    return this.curve(name).at(-1);
  }
}
