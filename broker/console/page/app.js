// The frame of the page: which view is shown, the header, and the keyboard.

import { h, update } from "./dom.js";
import { get, onConnection, post, stopWatching, watch, Rates } from "./live.js";
import { span, plural, link, listed } from "./words.js";
import { overview } from "./overview.js";
import { topics, topic } from "./topics.js";
import { messages } from "./messages.js";
import { groups, group } from "./groups.js";
import { clients, journal } from "./activity.js";
import { transactions, transaction } from "./transactions.js";
import { brokers } from "./brokers.js";
import { control } from "./control.js";
import { pipelines } from "./pipelines.js";

const VIEWS = [
  ["", "Overview", "o"], ["topics", "Topics", "t"], ["groups", "Groups", "g"], ["clients", "Clients", "c"],
  ["transactions", "Transactions", "x"], ["brokers", "Brokers", "b"], ["pipelines", "Pipelines", "p"],
  ["journal", "Journal", "j"], ["control", "Control", "l"],
];
const SHOW = {
  "": overview, topics, topic, messages, groups, group, clients, transactions, transaction, brokers, pipelines, journal, control,
};
// What is of use only where the broker allows it, or where there are several.
const NEEDS = { control: () => about?.controls, brokers: () => about?.brokers.length > 1 };

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const status = document.getElementById("status");
const spoken = document.getElementById("spoken");
const elsewhere = h("p", { class: "elsewhere muted", role: "note", hidden: true });
const rates = new Rates();
let leave = null;
let about = null;
let connected = false;
let me = { user: null, sign_in: false };

// What a view gets: where it is, what it may do, and how to watch. Each view also hears of the broker as a whole.
function context(params) {
  return {
    params,
    rates,
    get about() { return about; },
    watch(questions, answer) {
      watch({ ...questions, "": { view: "overview" } }, (news) => {
        if (news[""]) {
          about = news[""];
          showNav();
          showElsewhere();
        }
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

// What the address says: the view and what it is about.
function place() {
  let parts;
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    parts = [""]; // somebody has typed it
  }
  return parts;
}

function views() {
  return VIEWS.filter(([path]) => !(path in NEEDS) || NEEDS[path]());
}

function showNav() {
  const [first] = place();
  const section = first in SHOW ? first : "";
  const shown = views();
  const now = shown.map(([path]) => path).join(" ") + section;
  if (nav.dataset.shown === now) return;
  nav.dataset.shown = now;
  update(nav, shown.map(([path, title]) => h("a", {
    href: link(path), key: `nav ${path}`, "aria-current": path === section ? "page" : null,
  }, title)));
}

function show() {
  const parts = place();
  let [name, ...params] = parts;
  if (name === "topics" && params.length === 1) name = "topic";
  if (name === "topics" && params.length > 1) name = "messages";
  if (name === "groups" && params.length) name = "group";
  if (name === "transactions" && params.length) name = "transaction";
  const view = SHOW[name] ?? overview;
  if (leave) leave();
  leave = null;
  stopWatching();
  const root = h("div", { class: "view" });
  main.replaceChildren(elsewhere, root);
  showElsewhere();
  if (me.sign_in && me.user === null) {
    nav.replaceChildren();
    signIn(root);
    return;
  }
  showNav();
  document.title = params.length ? `${params[0]} · Barnabas` : "Barnabas";
  leave = view(root, context(params)) ?? null;
}

// Where brokers are other processes: what is theirs cannot be seen here.
function showElsewhere() {
  const others = about?.other_brokers ?? [];
  elsewhere.hidden = !others.length || (me.sign_in && me.user === null);
  if (elsewhere.hidden) return;
  const here = `broker ${listed(about.brokers.map((broker) => broker.id))}`;
  const one = others.length === 1;
  const there = listed(others.map((broker) => broker.address ? `${broker.id} (${broker.address})` : `${broker.id}`));
  elsewhere.textContent = `This is the console of ${here}. ${one ? "Broker" : "Brokers"} ${there} ${one ? "is another process" : "are other processes"}: ` +
    `${one ? "its" : "their"} clients, the groups and transactions that ${one ? "it coordinates" : "they coordinate"}, and messages without a copy here ` +
    `are shown by ${one ? "a console of its own" : "consoles of their own"}.`;
}

// Where the broker has users: the console acts as the one who signs in.
function signIn(root) {
  const user = h("input", { id: "user", autocomplete: "username", required: true, autofocus: true });
  const password = h("input", { id: "password", type: "password", autocomplete: "current-password", required: true });
  const says = h("p", { role: "alert", class: "bad-text" });
  root.append(h("form", { class: "sign-in", onsubmit: async (event) => {
    event.preventDefault();
    try {
      me = { ...me, ...await post("/api/sign-in", { user: user.value, password: password.value }) };
      show();
    } catch (error) {
      says.textContent = error.message;
      password.value = "";
    }
  } }, h("h1", {}, "Sign in"),
  h("p", { class: "muted" }, "With the name and the password of a user of this broker. You see and may change what that user may."),
  h("label", { for: "user" }, "Name"), user, h("label", { for: "password" }, "Password"), password, h("button", {}, "Sign in"), says));
  user.focus();
}

async function signOut() {
  await post("/api/sign-out");
  me = { ...me, user: null };
  about = null;
  show();
  showStatus();
}

function showStatus() {
  if (me.sign_in && me.user === null) {
    update(status);
    return;
  }
  if (!connected) {
    update(status, h("span", { class: "dot bad" }), "The broker does not answer");
    return;
  }
  if (!about) return;
  const running = about.brokers.filter((broker) => broker.running).length;
  update(status,
    h("span", { class: `dot ${about.without_leader || running < about.brokers.length ? "warn" : "good"}` }),
    h("span", { title: `cluster ${about.cluster_id}, version ${about.version}` },
      `${plural(running, "broker")}, up ${span(about.now_ms - about.started_ms)}`,
      about.writes ? "" : " · read-only"),
    me.user === null ? null : [" · ", h("span", {}, me.user), " ",
      h("button", { type: "button", class: "small", key: "sign out", onclick: signOut }, "Sign out")]);
}

onConnection((now) => {
  if (now !== connected) {
    connected = now;
    // For screen readers: not the rest of the status, which changes every second.
    spoken.textContent = now ? "" : "The broker does not answer";
    showStatus();
  }
});

// --- the keyboard ---

let awaited = false;

function help() {
  const dialog = h("dialog", { class: "help" },
    h("h2", {}, "Keys"),
    h("dl", {},
      views().map(([, title, key]) => [h("dt", {}, h("kbd", {}, "g"), " ", h("kbd", {}, key)), h("dd", {}, title)]),
      h("dt", {}, h("kbd", {}, "/")), h("dd", {}, "Search"),
      h("dt", {}, h("kbd", {}, "j"), " ", h("kbd", {}, "k")), h("dd", {}, "Next and previous row"),
      h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, "Open it"),
      h("dt", {}, h("kbd", {}, "Esc")), h("dd", {}, "Leave a field, or this list"),
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
    const found = views().find(([, , key]) => key === event.key);
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

try {
  me = await get("/api/me");
} catch (error) {
  main.replaceChildren(h("p", { class: "problems" }, error.message));
}
show();
