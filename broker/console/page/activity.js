// Who is connected and what they ask: connections, the journal of requests, and where clients break rules.

import { h, fill, isRead, prepend, update, table, badge, emptyState } from "./dom.js";
import { post } from "./live.js";
import { count, moment, rate, time } from "./words.js";

export function clients(root, context) {
  const body = h("div");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Clients")), body);
  let last = null;
  context.watch({ clients: { view: "connections" } }, (news) => {
    if (news.clients) last = news.clients;
    if (!last || !context.about) return;
    if (last.error) {
      fill(body, h("p", { class: "problems" }, last.error));
      return;
    }
    const addresses = context.about.brokers.map((broker) => broker.address).filter(Boolean).join(",");
    update(body,
      h("h2", {}, "Connections ", h("span", { class: "muted" }, count(last.total))),
      table([
        ["Client", (row) => row.client_id || h("span", { class: "muted" }, "has not said its name")],
        ["Library", (row) => row.software || h("span", { class: "muted" }, "not said")],
        ["From", (row) => row.peer],
        ["User", (row) => row.principal.replace(/^User:/, "")],
        ["Listener", (row) => row.listener],
        ["Broker", (row) => count(row.broker), "number"],
        ["Is asking", (row) => row.requests.length
          ? row.requests.map((request) => [badge(`${request.api} v${request.version}`), " "]) : h("span", { class: "muted" }, "nothing"), "",
        "Requests that are not answered yet. A consumer that waits for messages has a Fetch open."],
      ], last.rows, { empty: emptyState("Nobody is connected", "Clients connect with the address of the broker:", `bootstrap.servers=${addresses}`) }),
      h("h2", {}, "Requests since the start"),
      table([
        ["Request", (row) => row.api],
        ["Count", (row) => count(row.total), "number"],
        ["Per second", (row) => rate(context.rates.add(`api ${row.api}`, row.total)), "number"],
        ["Median", (row) => milliseconds(row.median_ms), "number", "Half of those that were timed lately were answered faster. Fetch and JoinGroup wait on purpose: for messages, and for other members."],
        ["99 %", (row) => milliseconds(row.p99_ms), "number", "99 of 100 were answered faster."],
        ["Versions", (row) => row.versions.join(", ")],
        ["Errors", (row) => Object.entries(row.errors).map(([error, times]) => [badge(`${count(times)} ${error}`, "bad"), " "])],
      ], last.requests));
  });
}

function milliseconds(value) {
  return value === null ? "–" : `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;
}

const MOST_ENTRIES = 200;

export function journal(root, context) {
  const filters = ["api", "client_id", "topic", "group", "error"].map((name) => h("input", {
    name, placeholder: name.replace("_", " "), "aria-label": name.replace("_", " "), autocomplete: "off", class: "short", oninput: () => ask(),
  }));
  const toggle = h("button", { type: "button", onclick: async () => {
    await post("/api/journal", { on: !last?.on });
  } }, "…");
  const list = h("div", { class: "messages" });
  const says = h("p", { class: "muted", role: "status" });
  const rules = h("section");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Journal"), toggle),
    h("form", { class: "inline", onsubmit: (event) => event.preventDefault() }, filters), says, list, rules);
  let last = null;
  let newest = null;
  let strict = null;

  function showRules() {
    if (!strict || strict.error) return;
    update(rules, h("h2", {}, "Broken rules ", h("span", { class: "muted" }, strict.on ? count(strict.total) : "off")),
      h("p", { class: "muted" }, "Strict mode checks each request against the rules of the protocol: what works here and would not work elsewhere."),
      h("p", {}, h("button", { type: "button", key: "strict", onclick: () => post("/api/strict", { on: !strict.on }) },
        strict.on ? "Stop checking" : "Check the rules")),
      strict.on || strict.total ? table([
        ["When", (row) => h("span", { title: time(row.at_ms) }, moment(row.at_ms))],
        ["Rule", (row) => h("span", { title: row.reference }, row.rule)],
        ["Client", (row) => row.client_id ?? row.peer],
        ["What", (row) => row.message],
        ["Times", (row) => count(row.count), "number"],
      ], strict.rows, { empty: h("p", { class: "muted" }, "Everybody keeps to the rules so far.") }) : null);
  }

  function ask() {
    newest = null;
    const question = { view: "journal" };
    for (const input of filters) if (input.value) question[input.name] = input.value;
    context.watch({ journal: question, strict: { view: "strict" } }, (news) => {
      if (news.strict) {
        strict = news.strict;
        showRules();
      }
      if (!news.journal) return;
      if (news.journal.error) {
        fill(says, news.journal.error);
        return;
      }
      last = news.journal;
      toggle.textContent = last.on ? "Turn it off" : "Turn it on";
      drawEntries();
    });
  }

  function drawEntries() {
    if (!last) return;
    const reads = newest !== null && isRead(list);
    says.textContent = !last.on ? "The journal is off. It notes every request and its answer, and costs some speed."
      : `${count(last.last)} requests so far; ${reads ? "new ones wait while one is unfolded." : "the last ones are shown."}`;
    if (reads) return;
    if (newest === null || !last.rows.length) fill(list);
    prepend(list, last.rows.filter((row) => newest === null || row.number > newest).map(entry), MOST_ENTRIES);
    newest = last.rows[0]?.number ?? null;
  }
  list.addEventListener("toggle", drawEntries, true);
  ask();
}

function entry(row) {
  const errors = row.errors ?? [];
  return h("details", { class: "message entry" },
    h("summary", { "data-row": "", key: `entry ${row.number}` },
      h("span", { class: "when" }, row.at_ms ? moment(row.at_ms) : `#${row.number}`),
      h("span", { class: "where" }, `${row.api} v${row.version}`),
      h("span", { class: "key" }, row.client_id ?? ""),
      h("span", { class: "value" }, errors.length ? errors.map((error) => [badge(error, "bad"), " "]) : row.outcome === "answered" ? null : `${row.outcome} `,
        row.took_ms === undefined ? null : h("span", { class: "muted" }, `${row.took_ms} ms `),
        [...(row.groups ?? []), ...(row.transactional_ids ?? []), ...(row.partitions ?? [])].join(", "))),
    h("div", { class: "inside" },
      row.changes?.length ? [h("h2", {}, "What it changed"), h("pre", {}, row.changes.map((change) => JSON.stringify(change)).join("\n"))] : null,
      h("h2", {}, "Request"), h("pre", {}, row.request), h("h2", {}, "Answer"), h("pre", {}, row.answer)));
}
