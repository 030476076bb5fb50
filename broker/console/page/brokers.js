// Several brokers: who is there, and who led which partition when.

import { h, update, table, badge, emptyState } from "./dom.js";
import { count, link, moment, time } from "./words.js";

export function brokers(root, context) {
  const body = h("div");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Brokers")), body);
  let last = null;
  context.watch({ leaders: { view: "leaders" } }, (news) => {
    if (news.leaders) last = news.leaders;
    if (!last || !context.about) return;
    update(body,
      table([
        ["Broker", (row) => count(row.id), "number"],
        ["State", (row) => row.running ? row.isolated ? badge("cut off", "warn") : badge("running", "good") : badge("not running", "bad")],
        ["Address", (row) => row.address ?? "–"],
        ["Rack", (row) => row.rack ?? "–"],
        ["", (row) => row.controller ? badge("controller") : ""],
      ], context.about.brokers),
      h("h2", {}, "What happened to them"),
      table([
        ["When", (row) => h("span", { title: time(row.at_ms) }, moment(row.at_ms))],
        ["Broker", (row) => count(row.broker_id), "number"],
        ["What", (row) => row.what],
      ], last.events.slice(0, 20)),
      h("h2", {}, "Who led when"),
      last.changes.length ? last.changes.map(change)
        : emptyState("No changes yet", "When a broker stops or dies, another replica leads its partitions: that is told here."));
  });
}

function change(told) {
  return h("article", { class: "story", key: `${told.topic}-${told.partition} ${told.epoch}` },
    h("h3", {}, h("a", { href: link("topics", told.topic) }, `${told.topic}-${told.partition}`), " ",
      badge(`broker ${told.former}`, "bad"), " → ", badge(`broker ${told.leader}`, "good"),
      " ", h("span", { class: "muted", title: time(told.at_ms) }, `epoch ${told.epoch}, ${moment(told.at_ms)}`)),
    h("p", {}, told.words.join(" ")));
}
