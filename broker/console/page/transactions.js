// Transactions and their stories, and what producers sent again.

import { h, fill, update, svg, table, badge, pager, emptyState } from "./dom.js";
import { AXIS, axis } from "./story.js";
import { clockTime, count, link, moment, plural, span, time } from "./words.js";

const KINDS = { duplicate: "", gap: "warn", fenced: "bad", state: "bad" };
const WIDTH = 720;

const STATES = {
  Ongoing: "open", PrepareCommit: "being committed", CompleteCommit: "committed", PrepareAbort: "being aborted", CompleteAbort: "aborted",
  PrepareEpochFence: "being fenced", Empty: "none yet", Dead: "expired",
};

// In words; Kafka's own name is what one sees when one points at it.
function stateOf(row) {
  const kind = row.state === "Ongoing" ? "warn" : row.state.includes("Abort") ? "bad" : row.state === "CompleteCommit" ? "good" : "";
  return h("span", { title: row.state }, badge(STATES[row.state] ?? row.state, kind));
}

export function transactions(root, context) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Find a transactional id", "aria-label": "Find a transactional id", autocomplete: "off" });
  const retries = h("section");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Transactions"), search), list, retries);
  let page = 0;
  const state = {};

  function ask() {
    context.watch({ transactions: { view: "transactions", page, search: search.value }, retries: { view: "retries" } }, (news) => {
      Object.assign(state, news);
      if (!context.about) return;
      if (state.transactions) drawList(state.transactions);
      if (state.retries) drawRetries(state.retries);
    });
  }

  function drawList(last) {
    const now = context.about.now_ms;
    update(list, table([
      ["Transactional id", (row) => h("a", { href: link("transactions", row.name), key: `tx ${row.name}`, "data-row": "" }, row.name)],
      ["State", stateOf],
      ["Open for", (row) => row.started_ms > 0 && row.state === "Ongoing" ? span(now - row.started_ms) : "–"],
      ["Times out after", (row) => span(row.timeout_ms)],
      ["Producer", (row) => `${row.producer_id}, epoch ${row.producer_epoch}`],
      ["Partitions", (row) => row.partitions.slice(0, 5).map((each, index) => [index ? ", " : "", h("a", { href: link("topics", each.topic) }, `${each.topic}-${each.partition}`)])],
    ], last.rows, { empty: search.value ? h("p", { class: "muted" }, "No id has this in it.")
      : emptyState("No transactions", "A producer with a transactional.id appears here with its first transaction.") }),
    pager(last, (to) => { page = to; ask(); }));
  }

  function drawRetries(last) {
    update(retries, h("h2", {}, "What producers sent again ", h("span", { class: "muted" }, plural(last.total, "batch", "batches"))),
      h("p", { class: "muted" }, "A producer that does not hear of an answer sends its batch again. The broker finds a duplicate by its sequence numbers and does not append it twice; ",
        "a gap or an old epoch is refused."),
      table([
        ["When", (row) => h("span", { title: time(row.at_ms) }, moment(row.at_ms))],
        ["What", (row) => badge(row.kind === "state" ? "not in a transaction" : row.kind, KINDS[row.kind])],
        ["Where", (row) => h("a", { href: link("topics", row.topic) }, `${row.topic}-${row.partition}`)],
        ["Producer", (row) => `${row.producer_id}, epoch ${row.producer_epoch}`],
        ["Sequence", (row) => row.records > 1 ? `${row.first_sequence} to ${row.first_sequence + row.records - 1}` : count(row.first_sequence), "number"],
        ["In words", (row) => row.words],
      ], last.rows, { empty: h("p", { class: "muted" }, "Nothing yet: every batch came once and in order.") }));
  }

  search.addEventListener("input", () => { page = 0; ask(); });
  ask();
}

export function transaction(root, context) {
  const [name] = context.params;
  const body = h("div");
  root.append(h("div", { class: "bar" }, h("h1", {}, name), h("a", { href: link("transactions") }, "All transactions")), body);
  let last = null;
  context.watch({ transaction: { view: "transaction", name } }, (news) => {
    if (news.transaction) last = news.transaction;
    if (!last || !context.about) return;
    if (last.error) fill(body, h("p", { class: "problems" }, last.error));
    else draw(last, context.about.now_ms);
  });

  function draw(told, now) {
    update(body,
      h("p", { class: "facts" }, stateOf(told), ` producer ${told.producer_id}, epoch ${told.producer_epoch}; times out after ${span(told.timeout_ms)}`,
        told.state === "Ongoing" && told.started_ms > 0 ? `; open for ${span(now - told.started_ms)}` : ""),
      told.held_up.length ? [h("h2", {}, "Where readers wait"),
        table([
          ["Partition", (row) => h("a", { href: link("topics", row.topic) }, `${row.topic}-${row.partition}`)],
          ["Begins at", (row) => count(row.first_offset), "number"],
          ["Last stable", (row) => count(row.last_stable_offset), "number"],
          ["High watermark", (row) => count(row.high_watermark), "number"],
          ["Held up", (row) => row.behind ? badge(plural(row.behind, "message"), "warn") : "nothing"],
          ["By", (row) => row.is_first ? "this transaction" : row.behind ? "one that began before" : "–"],
          ["Who waits", (row) => row.waiting.length ? row.waiting.map((each) => [badge(each || "no name"), " "]) : h("span", { class: "muted" }, "nobody now")],
        ], told.held_up)] : null,
      told.offsets.length ? [h("h2", {}, "Offsets that it commits"),
        table([
          ["Group", (row) => h("a", { href: link("groups", row.group) }, row.group)],
          ["Partition", (row) => `${row.topic}-${row.partition}`],
          ["Offset", (row) => count(row.offset), "number"],
        ], told.offsets)] : null,
      told.notes.length ? [h("h2", {}, "What was refused, or went wrong"),
        table([
          ["When", (row) => h("span", { title: time(row.at_ms) }, moment(row.at_ms))],
          ["What", (row) => row.what],
        ], told.notes)] : null,
      h("h2", {}, "Its last transactions"),
      told.stories.length ? told.stories.map(story) : h("p", { class: "muted" }, "None yet: its producer has begun, and has written nothing."));
  }
}

function story(told) {
  return h("article", { class: "story", key: told.began_ms },
    h("h3", {}, stateOf(told), " ", h("span", { class: "muted", title: time(told.began_ms) }, moment(told.began_ms))),
    h("p", {}, told.words.join(" ")),
    picture(told),
    h("ol", { class: "steps" }, told.steps.slice(-30).map((step) => h("li", {},
      h("span", { class: "when" }, clockTime(step.at_ms)), " ", h("span", { class: `step ${step.kind}` }, step.what)))));
}

function picture(told) {
  const last = told.ended_ms ?? told.now_ms;
  const first = told.began_ms;
  const x = (at) => 10 + ((at - first) / Math.max(last - first, 1)) * (WIDTH - 20);
  const decided = told.prepared_ms ?? last;
  const aborts = told.state.includes("Abort");
  return h("div", { class: "scroll plain" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${40 + AXIS}`, class: "timeline", role: "img", "aria-label": told.words.join(" ") },
      svg("line", { x1: 10, x2: WIDTH - 10, y1: 28, y2: 28, class: "base" }),
      svg("line", { x1: x(first), x2: x(decided), y1: 28, y2: 28, class: "wait" }),
      told.prepared_ms === null ? null : svg("line", { x1: x(decided), x2: x(last), y1: 28, y2: 28, class: `wait ${aborts ? "third" : "second"}` }),
      svg("text", { x: 10, y: 14 }, "open"),
      told.prepared_ms === null ? null : svg("text", { x: Math.min(x(decided), WIDTH - 110), y: 14 }, aborts ? "abort: markers" : "commit: markers"),
      told.steps.map((step) => svg("circle", { cx: x(step.at_ms), cy: 28, r: 5, class: { begin: "join", commit: "sync", done: "sync", abort: "gone", note: "gone" }[step.kind] },
        svg("title", {}, `${clockTime(step.at_ms)} ${step.what}`))),
      axis(last - first, (after) => x(first + after), 40)));
}
