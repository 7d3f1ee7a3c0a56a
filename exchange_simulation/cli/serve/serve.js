"use strict";
// The table of runs: sorted by a title, filtered by words. The run under way: its last minute, an event a second.

const SVG = "http://www.w3.org/2000/svg", SECONDS = 60, SPEAK_EVERY_S = 10;
const find = id => document.getElementById(id);

function made(name, parent, attributes = {}, text = "") {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.textContent = text;
  parent.append(one);
  return one;
}

function table(runs) {
  const body = runs.tBodies[0], heads = [...runs.tHead.rows[0].cells], rows = [...body.rows];
  const valueOf = (row, place, kind) => {
    const cell = row.cells[place];
    return kind === "number" ? Number(cell.dataset.value ?? NaN) : cell.textContent.trim();
  };
  const order = (a, b) => typeof a === "string" ? a.localeCompare(b) : a - b;
  heads.forEach((head, place) => head.querySelector("button")?.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && head.dataset.kind === "word");
    heads.forEach(one => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const keyed = rows.map(row => [valueOf(row, place, head.dataset.kind), row]);
    const known = keyed.filter(([value]) => !Number.isNaN(value) && value !== ""), none = keyed.filter(one => !known.includes(one));
    known.sort(([a], [b]) => up ? order(a, b) : order(b, a));
    body.append(...[...known, ...none].map(([, row]) => row));
  }));
  find("filter").addEventListener("input", event => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    find("count").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} shown`;
  });
  find("filter").addEventListener("keydown", event => event.key === "Enter" && event.preventDefault());
}

const short = value => value === null || value === undefined ? "-"
  : value.toLocaleString("en-US", { maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2 });

function graph(svg, values, top) {
  const runs = [[]];
  values.forEach((value, n) => value === null ? runs.push([]) : runs.at(-1).push(`${n},${(40 - 40 * value / (top || 1)).toFixed(2)}`));
  svg.replaceChildren();
  const add = (name, attributes) => {
    const one = svg.appendChild(document.createElementNS(SVG, name));
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  };
  add("rect", { x: 0, y: 0, width: SECONDS - 1, height: 40 });
  for (const points of runs.filter(run => run.length)) {
    if (points.length === 1) points.push(points[0].replace(/^(\d+)/, n => Number(n) - 0.5));
    add("polyline", { points: points.join(" ") });
  }
}

// The time below the graphs of a section: their first second, the middle and the last one.
function axis(section) {
  const line = made("div", section, { class: "minute axis" }), places = made("div", line);
  for (const text of [`${SECONDS - 1} s ago`, `${SECONDS / 2} s ago`, "now"]) made("span", places, {}, text);
  return line;
}

function live(minutes) {
  const rows = new Map(), source = new EventSource(minutes.dataset.events);
  let spoken = 0, second = 0;
  function row(group, label) {
    const key = `${group}: ${label}`;
    if (!rows.has(key)) {
      const section = [...minutes.children].find(one => one.dataset.title === group) || made("section", minutes, { "data-title": group });
      if (!section.firstChild) made("h2", section, {}, group);
      const line = document.createElement("div");
      line.className = "minute";
      section.insertBefore(line, section.querySelector(".axis") || axis(section));
      made("span", line, {}, label);
      const now = made("b", line), svg = line.appendChild(document.createElementNS(SVG, "svg")), top = made("span", line, { class: "top" });
      svg.setAttribute("viewBox", `0 0 ${SECONDS - 1} 40`);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("role", "img");
      const one = { now, svg, top, values: [], pointed: null };
      const say = () => {
        const place = one.pointed === null ? SECONDS - 1 : one.pointed;
        now.textContent = short(one.values[place]);
        now.title = one.pointed === null ? "" : `second ${second - (SECONDS - 1 - place)}`;
        svg.setAttribute("aria-label", `${key}, last minute, now ${short(one.values.at(-1))}, at most ${top.textContent}`);
      };
      svg.addEventListener("pointermove", event => {
        const box = svg.getBoundingClientRect();
        one.pointed = Math.round((event.clientX - box.left) / box.width * (SECONDS - 1));
        say();
      });
      svg.addEventListener("pointerleave", () => { one.pointed = null; say(); });
      rows.set(key, { ...one, put: values => {
        one.values = values;
        const most = Math.max(...values.filter(value => value !== null), 0);
        top.textContent = short(most);
        graph(svg, values, most);
        say();
      } });
    }
    return rows.get(key);
  }
  source.addEventListener("latest", event => {
    const latest = JSON.parse(event.data);
    second = latest.second;
    find("headline").textContent = latest.headline;
    if (latest.second - spoken >= SPEAK_EVERY_S) {
      spoken = latest.second;
      find("status").textContent = latest.headline;
    }
    for (const { title, rows: figures } of latest.groups) for (const { label, values } of figures) row(title, label).put(values);
  });
  source.addEventListener("ended", event => {
    source.close();
    const { words, has_page } = JSON.parse(event.data);
    find("status").textContent = find("headline").textContent = `Ended: ${words}`;
    find("ours")?.remove();
    if (has_page) made("a", made("p", find("headline").parentElement, { class: "verdict" }), { href: minutes.dataset.page, id: "page" }, "Its page").focus();
  });
  source.addEventListener("error", () => { find("status").textContent = "The connection is lost; exchange serve may have ended."; });
}

if (find("runs")) table(find("runs"));
if (find("minutes")) live(find("minutes"));
find("mistake")?.focus();
