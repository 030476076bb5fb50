// Numbers, sizes and times as people read them.

const NUMBER = new Intl.NumberFormat("en");

export function count(number) {
  return number === null || number === undefined ? "–" : NUMBER.format(number);
}

export function rate(number) {
  if (number === undefined || number === null) return "–";
  if (number === 0) return "0";
  if (number < 10) return number.toFixed(1);
  return NUMBER.format(Math.round(number));
}

export function bytes(number) {
  if (number === undefined || number === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(number) : number.toFixed(number < 10 ? 1 : 0)} ${units[unit]}`;
}

export function time(ms) {
  if (ms === undefined || ms === null || ms < 0) return "no time";
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const text = (number, digits = 2) => String(number).padStart(digits, "0");
  return `${date.getFullYear()}-${text(date.getMonth() + 1)}-${text(date.getDate())} ` +
    `${text(date.getHours())}:${text(date.getMinutes())}:${text(date.getSeconds())}.${text(date.getMilliseconds(), 3)}`;
}

export function clockTime(ms) {
  return time(ms).slice(11);
}

export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// The address of a view; whatever a name contains, it stays one part.
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

// "1", "1 and 2", "1, 2 and 3".
export function listed(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

// Which partitions this console cannot read, and who could.
export function elsewhereWords(partitions = []) {
  if (!partitions.length) return "";
  const one = partitions.length === 1;
  const leaders = [...new Set(partitions.map((each) => each.leader))].filter((each) => each >= 0);
  const named = partitions.length > 10 ? `${count(partitions.length)} partitions`
    : `${one ? "Partition" : "Partitions"} ${listed(partitions.map((each) => each.partition))}`;
  const who = leaders.length ? `the console of broker ${listed(leaders)} shows ${one ? "its" : "their"} messages` : `nobody leads ${one ? "it" : "them"} now`;
  return `${named} ${one ? "has" : "have"} no copy here; ${who}.`;
}
