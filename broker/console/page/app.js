// The frame of the page: which view is shown, the header, and the keyboard.

import { h, fill } from "./dom.js";
import { onConnection, stopWatching, watch, Rates } from "./live.js";
import { span, plural, link } from "./words.js";
import { overview } from "./overview.js";
import { topics, topic } from "./topics.js";
import { messages } from "./messages.js";
import { groups, group } from "./groups.js";
import { clients, journal, transactions } from "./activity.js";

const VIEWS = [
  ["", "Overview", "o"], ["topics", "Topics", "t"], ["groups", "Groups", "g"], ["clients", "Clients", "c"],
  ["transactions", "Transactions", "x"], ["journal", "Journal", "j"],
];
const SHOW = { "": overview, topics, topic, messages, groups, group, clients, transactions, journal };

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const status = document.getElementById("status");
const rates = new Rates();
let leave = null;
let about = null;
let connected = false;

// What a view gets: where it is, what it may do, and how to watch. Each view also hears of the broker as a whole.
function context(params) {
  return {
    params,
    rates,
    get about() { return about; },
    watch(questions, answer) {
      watch({ ...questions, "": { view: "overview" } }, (news) => {
        if (news[""]) about = news[""];
        showStatus();
        answer(news);
      });
    },
    command(line) {
      const address = about?.brokers.find((broker) => broker.running)?.address;
      return address && address !== "127.0.0.1:9092" ? `barnabas -b ${address} ${line}` : `barnabas ${line}`;
    },
  };
}


function show() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  let [name, ...params] = parts;
  if (name === "topics" && params.length === 1) name = "topic";
  if (name === "topics" && params.length > 1) name = "messages";
  if (name === "groups" && params.length) name = "group";
  const view = SHOW[name] ?? overview;
  if (leave) leave();
  leave = null;
  stopWatching();
  const root = h("div", { class: "view" });
  main.replaceChildren(root);
  const section = parts[0] in SHOW ? parts[0] : "";
  fill(nav, VIEWS.map(([path, title]) => h("a", {
    href: link(path), "aria-current": path === section ? "page" : null,
  }, title)));
  document.title = params.length ? `${params[0]} · Barnabas` : "Barnabas";
  leave = view(root, context(params)) ?? null;
}

function showStatus() {
  if (!connected) {
    fill(status, h("span", { class: "dot bad" }), "The broker does not answer");
    return;
  }
  if (!about) return;
  const running = about.brokers.filter((broker) => broker.running).length;
  fill(status,
    h("span", { class: `dot ${about.without_leader || running < about.brokers.length ? "warn" : "good"}` }),
    h("span", { title: `cluster ${about.cluster_id}, version ${about.version}` },
      `${plural(running, "broker")}, up ${span(about.now_ms - about.started_ms)}`,
      about.writes ? "" : " · read-only"));
}

onConnection((now) => {
  if (now !== connected) {
    connected = now;
    showStatus();
  }
});

// --- the keyboard ---

let awaited = false;

function help() {
  const dialog = h("dialog", { class: "help" },
    h("h2", {}, "Keys"),
    h("dl", {},
      VIEWS.map(([, title, key]) => [h("dt", {}, h("kbd", {}, "g"), " ", h("kbd", {}, key)), h("dd", {}, title)]),
      h("dt", {}, h("kbd", {}, "/")), h("dd", {}, "Search"),
      h("dt", {}, h("kbd", {}, "j"), " ", h("kbd", {}, "k")), h("dd", {}, "Next and previous row"),
      h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, "Open it"),
      h("dt", {}, h("kbd", {}, "?")), h("dd", {}, "This list")),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function step(by) {
  const rows = [...main.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(Math.max(at + by, 0), rows.length - 1)].focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
  if (awaited) {
    awaited = false;
    const found = VIEWS.find(([, , key]) => key === event.key);
    if (found) location.hash = link(found[0]);
    return;
  }
  if (event.key === "g") awaited = true;
  else if (event.key === "?") help();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "/") {
    const search = main.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
show();
