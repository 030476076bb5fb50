// A rebalance as a picture against time: a line for each member, from its request to the answer, and the phases behind them.

import { h, svg } from "./dom.js";
import { clockTime, time } from "./words.js";

const ROW = 26;
const NAMES = 150;
const WIDTH = 720;

export function rebalanceStory(told) {
  const title = told.generation === null ? "Rebalance" : `To generation ${told.generation}`;
  return h("article", { class: "story" },
    h("h3", {}, title, " ", h("span", { class: "muted", title: time(told.began_ms) }, clockTime(told.began_ms))),
    h("p", {}, told.words.join(" ")),
    told.members.length ? picture(told) : null);
}

function picture(told) {
  const members = told.members.slice(0, 20);
  const ends = [told.began_ms, told.joined_ms, told.ended_ms, ...told.notes.map((note) => note.at_ms)].filter((each) => each !== null);
  const first = Math.min(...ends);
  const last = Math.max(...ends, first + 1);
  const left = NAMES;
  const x = (at) => left + 10 + ((at - first) / (last - first)) * (WIDTH - left - 30);
  const height = members.length * ROW + 40;
  const joined = told.joined_ms ?? last;
  const ended = told.ended_ms ?? last;
  const parts = [
    phase("joining", x(told.began_ms), x(joined), height, "everybody joins"),
    told.joined_ms === null ? null : phase("assigning", x(joined), x(ended), height, "the leader shares out"),
  ];
  members.forEach((member, index) => {
    const y = 30 + index * ROW + ROW / 2;
    const notes = told.notes.filter((note) => note.member_id === member.member_id);
    const join = notes.find((note) => note.what.startsWith("joins"));
    const sync = notes.find((note) => note.what.startsWith("asks"));
    const gone = notes.find((note) => /^its? /.test(note.what));
    parts.push(svg("text", { x: left, y: y + 4, class: "name", "text-anchor": "end" }, short(member.name)));
    parts.push(svg("line", { x1: left + 10, x2: WIDTH - 20, y1: y, y2: y, class: "base" }));
    if (join) parts.push(svg("line", { x1: x(join.at_ms), x2: x(Math.max(joined, join.at_ms)), y1: y, y2: y, class: "wait" }));
    if (sync) parts.push(svg("line", { x1: x(sync.at_ms), x2: x(Math.max(ended, sync.at_ms)), y1: y, y2: y, class: "wait second" }));
    for (const [note, kind] of [[join, "join"], [sync, "sync"], [gone, "gone"]]) {
      if (note) {
        parts.push(svg("circle", { cx: x(note.at_ms), cy: y, r: 5, class: kind },
          svg("title", {}, `${member.name} ${note.what}, ${clockTime(note.at_ms)}`)));
      }
    }
  });
  return h("div", { class: "scroll plain" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "timeline", role: "img", "aria-label": told.words.join(" ") }, parts));
}

function phase(kind, from, to, height, text) {
  return svg("g", { class: `phase ${kind}` },
    svg("rect", { x: from, y: 0, width: Math.max(to - from, 2), height }),
    to - from > 90 ? svg("text", { x: from + 6, y: 15 }, text) : null);
}

function short(name) {
  return name.length > 20 ? `${name.slice(0, 18)}…` : name;
}
