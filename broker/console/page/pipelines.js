// Pipelines that run somewhere and tell this console how they are doing.

import { h, update, badge, table, emptyState } from "./dom.js";
import { count, link, span, time } from "./words.js";

export function pipelines(root, context) {
  const body = h("div");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Pipelines")), body);
  let last = null;
  context.watch({ pipelines: { view: "pipelines" } }, (news) => {
    if (news.pipelines) last = news.pipelines;
    if (!last || !context.about) return;
    update(body, last.rows.length ? last.rows.map((row) => pipeline(row, context.about.now_ms)) : emptyState(
      "No pipelines", "A pipeline that runs on this machine tells the console how it is doing:",
      location.origin === "http://127.0.0.1:9080" ? "barnabas pipeline run pipeline.yaml" : `BARNABAS_CONSOLE=${location.origin} barnabas pipeline run pipeline.yaml`));
  });
}

function pipeline(told, now) {
  const state = told.silent ? badge("not heard of", "bad")
    : badge(told.state, told.state === "failed" ? "bad" : told.state === "running" ? "good" : told.state === "ended" ? "" : "warn");
  return h("article", { class: "story", key: told.run },
    h("h3", {}, told.name, " ", state, " ",
      h("span", { class: "muted" }, `${told.words ? `${told.words} · ` : ""}last heard of ${span(now - told.heard_at_ms)} ago`)),
    told.bad ? h("p", { class: "problems" }, `${count(told.bad)} records could not be read.`) : null,
    table([
      ["Query", (row) => row.name],
      ["Reads", (row) => topics(row.sources)],
      ["Writes", (row) => topics(row.sinks)],
      ["Read", (row) => count(row.read), "number"],
      ["Written", (row) => count(row.written), "number"],
      ["Bad", (row) => row.bad ? badge(count(row.bad), "bad") : "0", "number"],
      ["Late", (row) => count(row.late ?? 0), "number"],
      ["Lag", (row) => count(row.lag), "number"],
      ["Progress", (row) => row.end ? h("progress", { max: row.end, value: row.read, "aria-label": `progress of ${row.name}` }) : "–"],
    ], told.queries ?? [], { empty: h("p", { class: "muted" }, told.state === "starting" ? "Its queries have not begun yet." : "It has no queries.") }),
    told.plan ? h("details", {}, h("summary", {}, "Plan"), h("pre", {}, told.plan)) : null,
    told.began_ms ? h("p", { class: "muted" }, `since ${time(told.began_ms)}`) : null);
}

function topics(places = []) {
  return places.map((place, index) => [index ? ", " : "", place.topic ? h("a", { href: link("topics", place.topic) }, place.topic) : place.path ?? "?"]);
}
