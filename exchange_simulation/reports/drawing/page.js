"use strict";
// Charts of a page: the value under the pointer, series that one can hide, and a zoom over time or percentiles.
// A chart is an SVG with the scale of each axis in data-x and data-y: name, values at its ends, places of its ends.
// Each series has a line, id NAME-line-SERIES, more parts as its whiskers, id NAME-part-SERIES--1, and a label, id
// NAME-label-SERIES. data-values has, by series, points of [place, x, y, low, high]: what the pointer shows; without it
// the lines' own places tell. data-cells has a heat map's counts. Without this script all is readable.

const SCALES = {
  linear: [value => value, place => place],
  log: [Math.log10, place => 10 ** place],
  nines: [percent => -Math.log10(1 - percent / 100), nines => 100 * (1 - 10 ** -nines)],
};
const SVG = "http://www.w3.org/2000/svg";

function number(value, digits = 3) {
  if (Math.abs(value) >= 100) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: 8 });
}

function axisOf(text) {
  const [name, ...numbers] = text.split(" ");
  const [low, high, from, to] = numbers.map(Number);
  const [onto, back] = SCALES[name] || SCALES.linear;
  const [start, end] = name === "nines" ? [low, high] : [onto(low), onto(high)], share = (end - start) / (to - from);
  const at = place => start + (place - from) * share;
  return { name, from, to, at, back, value: place => back(at(place)), place: value => from + (onto(value) - start) / share };
}

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const PERCENTS = [0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 99.9995, 99.9999];
const EDGE = 4; // How far outside of the axes the pointer still counts: a point may lie on their edge.
const DECADES = Array.from({ length: 18 }, (_, n) => n - 5);

// Round values between two places of an axis: with steps of 1, 2 or 5, or those that a log axis or percentiles have.
function ticks(axis, from, to) {
  const [low, high] = [axis.at(from), axis.at(to)].sort((a, b) => a - b);
  const [first, last] = [axis.back(low), axis.back(high)];
  const step = [1, 2, 5, 10].map(n => n * 10 ** Math.floor(Math.log10((last - first) / 5))).find(n => (last - first) / n <= 6);
  const even = Array.from({ length: 8 }, (_, n) => (Math.ceil(first / step) + n) * step);
  const usual = { log: DECADES.flatMap(n => [1, 2, 5].map(m => m * 10 ** n)), nines: PERCENTS }[axis.name] || [];
  const within = values => values.filter(value => value >= first * (1 - 1e-9) && value <= last * (1 + 1e-9));
  let found = within(usual).length > 1 ? within(usual) : within(even);
  while (found.length > 8) found = found.filter((_, n) => n % 2 === 0);
  return found.map(value => [axis.place(value), number(value, 7)]);
}

// The value at a place in words; a percentile has as many digits as it has nines.
function word(axis, place) {
  if (axis.name !== "nines") return number(axis.value(place));
  return `${Number(axis.value(place).toFixed(Math.max(0, Math.ceil(axis.at(place)))))} %`;
}

const slug = name => name.replace(/[^a-zA-Z0-9]+/g, "-").replace(/^-|-$/g, "");

function seriesOf(svg, prefix, values) {
  const drawn = [...svg.querySelectorAll(`g[id^="${prefix}-line-"]`)].map(line => line.id.slice(`${prefix}-line-`.length));
  const named = Object.fromEntries(Object.keys(values || {}).map(name => [slug(name), name]));
  return [...new Set([...drawn, ...Object.keys(named)])].map(key => {
    const line = svg.querySelector(`g[id="${prefix}-line-${key}"]`), label = svg.querySelector(`[id="${prefix}-label-${key}"]`);
    const groups = [line, ...svg.querySelectorAll(`g[id^="${prefix}-part-${key}--"]`)].filter(Boolean);
    const paths = groups.flatMap(group => [...group.querySelectorAll(":scope > path")]).map(path => ({
      path, whole: path.getAttribute("d"), isLine: path.parentElement === line,
      points: [...path.getAttribute("d").matchAll(/([ML])\s*(\S+)\s+(\S+)/g)].map(([, how, x, y]) => [how, Number(x), Number(y)]),
    }));
    const marks = groups.flatMap(group => [...group.querySelectorAll("use")])
      .map(mark => [mark, Number(mark.getAttribute("x")), Number(mark.getAttribute("y"))]);
    const points = paths.filter(({ isLine }) => isLine).flatMap(({ points }) => points);
    const name = label ? label.textContent.trim() : named[key] || "";
    return { groups, label, paths, marks, points, name, values: values && (values[named[key]] || []) };
  });
}

// The cell of a heat map under the pointer, in words: its seconds, its times, its orders.
function cellAt(cells, x, y, px, py) {
  const { step, low, high, rows, columns } = cells;
  const column = Math.floor(x.value(px) / step), row = Math.floor((y.value(py) - low) / (high - low) * rows);
  if (!columns[column] || row < 0 || row >= rows) return null;
  const [first, ...counts] = columns[column];
  const edge = n => number(10 ** (low + (high - low) * n / rows)), orders = counts[row - first] || 0;
  return [`seconds ${column * step} to ${(column + 1) * step}`,
    `${edge(row)} to ${edge(row + 1)} µs: ${orders ? number(orders) : "no"} order${orders === 1 ? "" : "s"}`];
}

// The points nearest to a place: [name, words, distance] for each series that has one there.
function nearest(series, at) {
  return series.flatMap(({ name, values }) => values.length ? [[name, values.reduce(
    (best, point) => Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best)]] : []);
}

function chart(svg) {
  const figure = svg.closest("figure"), prefix = svg.querySelector("g[id]").id.replace(/-figure_1$/, "");
  const x = axisOf(svg.dataset.x), y = axisOf(svg.dataset.y), [values, cells] = ["values", "cells"].map(
    name => JSON.parse(svg.dataset[name] || "null"));
  const series = seriesOf(svg, prefix, values);
  if (!series.length && !cells) return;
  svg.classList.add("touchable");
  const left = Math.min(x.from, x.to), right = Math.max(x.from, x.to), top = Math.min(y.from, y.to), bottom = Math.max(y.from, y.to);
  const shown = () => series.filter(one => one.name && !one.hidden);
  let view = [left, right, top, bottom], dragged = null;

  const clip = element("clipPath", { id: `${prefix}-zoom` }, svg);
  element("rect", { x: left, y: top - 2, width: right - left, height: bottom - top + 4 }, clip);
  const zoomed = element("g", { class: "zoomed" }, svg);
  const cursor = element("line", { y1: top, y2: bottom, class: "cursor", visibility: "hidden" }, svg);
  const box = element("rect", { y: top, height: bottom - top, class: "selection", visibility: "hidden" }, svg);
  const said = document.createElement("output"), whole = document.createElement("button");
  said.className = "hover";
  said.hidden = whole.hidden = true;
  whole.type = "button";
  whole.className = "whole";
  whole.textContent = "Show all";
  figure.append(said, whole);

  const toView = (px, py) => [
    left + (px - view[0]) / (view[1] - view[0]) * (right - left), top + (py - view[2]) / (view[3] - view[2]) * (bottom - top)];
  const fromView = px => view[0] + (px - left) / (right - left) * (view[1] - view[0]);
  const place = event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };
  const inside = ([px, py]) => px >= left - EDGE && px <= right + EDGE && py >= top - EDGE && py <= bottom + EDGE;

  function redraw() {
    const isWhole = view[0] === left && view[1] === right;
    for (const { groups, paths, marks } of series) {
      for (const group of groups) group.setAttribute("clip-path", isWhole ? "none" : `url(#${prefix}-zoom)`);
      for (const { path, whole, points } of paths)
        path.setAttribute("d", isWhole ? whole : points.map(([how, px, py]) => `${how}${toView(px, py).join(" ")}`).join(""));
      for (const [mark, px, py] of marks) {
        const [nx, ny] = isWhole ? [px, py] : toView(px, py);
        mark.setAttribute("x", nx);
        mark.setAttribute("y", ny);
        mark.setAttribute("visibility", nx < left || nx > right ? "hidden" : "inherit");
      }
    }
    for (const axis of svg.querySelectorAll('g[id*="matplotlib.axis_"]')) axis.setAttribute("visibility", isWhole ? "inherit" : "hidden");
    whole.hidden = isWhole;
    zoomed.replaceChildren();
    if (isWhole) return;
    for (const [at, text] of ticks(x, view[0], view[1]))
      element("text", { x: toView(at, 0)[0], y: bottom + 16, "text-anchor": "middle" }, zoomed, text);
    for (const [at, text] of ticks(y, view[2], view[3])) {
      const py = toView(0, at)[1];
      element("line", { x1: left, x2: right, y1: py, y2: py }, zoomed);
      element("text", { x: left - 5, y: py + 4, "text-anchor": "end" }, zoomed, text);
    }
  }

  function zoom(from, to) {
    [from, to] = [Math.max(left, from), Math.min(right, to)];
    if (to - from < 0.5 || !series.some(({ points }) => points.length > 2 && new Set(points.map(([, px]) => px)).size > 2)) return;
    const seen = shown().flatMap(({ points }) => points.filter(([, px]) => px >= from && px <= to).map(([, , py]) => py));
    const isWhole = from <= left && to >= right;
    const pad = seen.length ? Math.max((Math.max(...seen) - Math.min(...seen)) * 0.08, 1) : 0;
    view = isWhole || !seen.length ? [from, to, top, bottom]
      : [from, to, Math.max(Math.min(...seen) - pad, top), Math.min(Math.max(...seen) + pad, bottom)];
    redraw();
  }

  // What the pointer shows: a heading, and a line for each series.
  function wordsAt(px, py) {
    if (cells) return cellAt(cells, x, y, px, py);
    const at = fromView(px);
    if (values) {
      const all = nearest(shown(), at), best = all.reduce((one, other) => Math.abs(other[1][0] - at) < Math.abs(one[1][0] - at) ? other : one, all[0]);
      if (!best) return null;
      const near = all.filter(([, point]) => point.length > 2 || point[1] === best[1][1]);
      return [`at ${number(best[1][1], 4)}`, ...near.map(([name, [, , value, low, high]]) =>
        value === undefined ? name : `${name}: ${number(value)}${low === undefined ? "" : ` (${number(low)} to ${number(high)})`}`)];
    }
    const near = shown().map(({ name, points }) => {
      const finite = points.filter(([, qx]) => qx >= view[0] - 0.01 && qx <= view[1] + 0.01);
      const known = points.length === 2 && points[0][2] === points[1][2] ? points : finite;
      return [name, known.reduce((best, point) => !best || Math.abs(point[1] - at) < Math.abs(best[1] - at) ? point : best, null)];
    }).filter(([, point]) => point);
    return [x.name === "nines" ? word(x, at) : `at ${word(x, at)}`, ...near.map(([name, point]) => `${name}: ${word(y, point[2])}`)];
  }

  function say(px, py) {
    const words = wordsAt(px, py);
    if (!words) return quiet();
    said.replaceChildren(...words.map((text, n) => {
      const line = document.createElement(n ? "span" : "b");
      line.textContent = text;
      return line;
    }));
    cursor.setAttribute("x1", px);
    cursor.setAttribute("x2", px);
    cursor.setAttribute("visibility", "visible");
    const frame = figure.getBoundingClientRect(), drawn = svg.getBoundingClientRect();
    said.hidden = false;
    const across = drawn.left - frame.left + px / svg.viewBox.baseVal.width * drawn.width;
    said.style.left = `${Math.min(across + 10, frame.width - said.offsetWidth)}px`;
    said.style.top = `${drawn.top - frame.top + top / svg.viewBox.baseVal.height * drawn.height}px`;
  }

  function quiet() {
    said.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  }

  svg.addEventListener("pointermove", event => {
    const at = place(event);
    if (dragged !== null) {
      box.setAttribute("x", Math.max(Math.min(dragged, at[0]), left));
      box.setAttribute("width", Math.min(Math.abs(at[0] - dragged), right - left));
      box.setAttribute("visibility", "visible");
    }
    inside(at) ? say(...at) : quiet();
  });
  svg.addEventListener("pointerleave", quiet);
  svg.addEventListener("pointerdown", event => {
    const at = place(event);
    if (inside(at) && !cells && event.button === 0 && event.pointerType !== "touch") {
      dragged = at[0];
      event.preventDefault();
    }
  });
  window.addEventListener("pointerup", event => {
    if (dragged === null) return;
    const [from, to] = [dragged, place(event)[0]].sort((a, b) => a - b);
    dragged = null;
    box.setAttribute("visibility", "hidden");
    if (to - from > 6) zoom(fromView(Math.max(from, left)), fromView(Math.min(to, right)));
  });
  svg.addEventListener("dblclick", () => zoom(left, right));
  whole.addEventListener("click", () => zoom(left, right));
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", event => {
    const width = view[1] - view[0], middle = (view[0] + view[1]) / 2;
    const moves = { "+": [middle - width / 4, middle + width / 4], "-": [middle - width, middle + width], Escape: [left, right],
      ArrowLeft: [view[0] - width / 4, view[1] - width / 4], ArrowRight: [view[0] + width / 4, view[1] + width / 4] };
    const move = moves[event.key];
    if (!move || event.target !== svg) return;
    event.preventDefault();
    if (event.key.startsWith("Arrow") && (move[0] < left || move[1] > right)) return;
    zoom(...move);
  });
  for (const one of series.filter(({ label }) => label)) {
    const toggle = () => {
      one.hidden = !one.hidden;
      for (const group of one.groups) group.style.display = one.hidden ? "none" : "";
      one.label.style.opacity = one.hidden ? 0.45 : "";
      one.label.setAttribute("aria-pressed", String(!one.hidden));
    };
    one.label.setAttribute("role", "button");
    one.label.setAttribute("tabindex", "0");
    one.label.setAttribute("aria-pressed", "true");
    one.label.classList.add("toggle");
    one.label.addEventListener("click", toggle);
    one.label.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }
}

document.querySelectorAll("svg[data-x]").forEach(chart);

// A table that is wider than the window says so below itself, as long as it is.
function sayWhereTableGoesOn(region) {
  const hint = document.createElement("p");
  hint.className = "goes-on";
  hint.textContent = "This table goes on to the right: scroll it, or make the window wider.";
  hint.hidden = true;
  region.after(hint);
  new ResizeObserver(() => { hint.hidden = region.scrollWidth <= region.clientWidth + 1; }).observe(region);
}

document.querySelectorAll(".scroll").forEach(sayWhereTableGoesOn);
