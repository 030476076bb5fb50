// At first glance: how much goes through, the topics, the groups, the clients.

import { h, update, spark, table, badge, emptyState } from "./dom.js";
import { count, rate, bytes, plural, link } from "./words.js";
import { topicColumns, noTopics } from "./topics.js";
import { groupColumns, noGroups } from "./groups.js";

export function overview(root, context) {
  const tiles = h("div", { class: "tiles" });
  const problems = h("div");
  const topics = h("section", { "aria-labelledby": "topics-title" });
  const groups = h("section", { "aria-labelledby": "groups-title" });
  const clients = h("section", { "aria-labelledby": "clients-title" });
  root.append(h("h1", { class: "quiet" }, "Overview"), tiles, problems, topics, groups, clients);
  const state = {};

  context.watch({ topics: { view: "topics" }, groups: { view: "groups" } }, (news) => {
    Object.assign(state, news);
    const about = context.about;
    if (!about || !state.topics) return;
    const { rates } = context;
    const figures = [
      ["Messages in", about.traffic.messages_in, (value) => `${rate(value)}/s`, `${count(about.traffic.messages_in)} since the start`],
      ["Bytes in", about.traffic.bytes_in, (value) => `${bytes(value)}/s`, `${bytes(about.traffic.bytes_in)} since the start`],
      ["Bytes out", about.traffic.bytes_out, (value) => `${bytes(value)}/s`, `${bytes(about.traffic.bytes_out)} since the start`],
      ["Requests", about.requests, (value) => `${rate(value)}/s`, `${count(about.requests)} since the start`],
    ];
    update(tiles, figures.map(([title, total, words, since]) => {
      const now = rates.add(title, total);
      return h("div", { class: "tile" },
        h("div", { class: "label" }, title),
        h("div", { class: "figure" }, now === undefined ? "–" : words(now)),
        spark(rates.curve(title), { label: `${title} in the last minute` }),
        h("div", { class: "muted" }, since));
    }));
    update(problems, problemsOf(about));
    update(topics, h("h2", { id: "topics-title" }, h("a", { href: link("topics") }, "Topics"), " ",
      h("span", { class: "muted" }, `${plural(about.topics, "topic")}, ${plural(about.partitions, "partition")}`)),
      table(topicColumns(context), state.topics.rows.slice(0, 10), { empty: noTopics(context) }),
      more(state.topics.total, 10, "topics"));
    if (state.groups) {
      update(groups, h("h2", { id: "groups-title" }, h("a", { href: link("groups") }, "Groups"), " ",
        h("span", { class: "muted" }, plural(state.groups.total, "group"))),
        table(groupColumns(context), state.groups.rows.slice(0, 10), { empty: noGroups(context) }),
        more(state.groups.total, 10, "groups"));
    }
    update(clients, h("h2", { id: "clients-title" }, h("a", { href: link("clients") }, "Clients"), " ",
      h("span", { class: "muted" }, plural(about.connections, "connection"))),
      about.clients.length
        ? h("p", { class: "badges" }, about.clients.map((client) => badge(client)))
        : emptyState("Nobody is connected", "Clients connect with the address of the broker:",
          `bootstrap.servers=${about.brokers.filter((broker) => broker.address).map((broker) => broker.address).join(",")}`));
  });
}

function more(total, shown, name) {
  return total > shown ? h("p", {}, h("a", { href: link(name) }, `All ${count(total)} ${name}`)) : null;
}

function problemsOf(about) {
  const found = [];
  for (const broker of about.brokers) {
    if (!broker.running) found.push(`Broker ${broker.id} is not running.`);
    else if (broker.isolated) found.push(`Broker ${broker.id} is cut off from the others.`);
  }
  if (about.without_leader) found.push(`${plural(about.without_leader, "partition")} without a leader.`);
  for (const entry of about.set_aside) found.push(`Set aside on broker ${entry.broker}: ${Object.values(entry).slice(1).join(" ")}`);
  return found.length ? h("div", { class: "problems", role: "alert" }, found.map((text) => h("p", {}, text))) : null;
}
