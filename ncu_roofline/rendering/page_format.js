"use strict";
/* Values to text, text to elements.  Units come with the page; everything is SI until it is written. */

const PAGE = JSON.parse(document.getElementById("data").textContent);
const PREFIXES = { "-12": "p", "-9": "n", "-6": "\u00b5", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E" };
const MISSING = "n/a";

/** Rows of a frame of columns: a list has one value per row, a name stands for the list of that column, anything else is in every row.
 *
 * What a row doesn't say it has from the row `above` it, that of its owner. */
function unpack({ rows, text_columns, ...frame }, above = () => Object.prototype) {
  const texts = new Set(text_columns);
  const columns = Object.entries(frame).map(([name, values]) => [name, texts.has(name), typeof values === "string" ? frame[values] : values]);
  return Array.from({ length: rows }, (_, index) => {
    const row = Object.assign(Object.create(above(frame.owner?.[index])), { index });
    for (const [name, text, values] of columns) {
      const value = Array.isArray(values) ? values[index] : values;
      row[name] = text ? PAGE.texts[value] : value;
    }
    return row;
  });
}

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A value in base units as text with SI prefix: formatValue(2.5e12, "flop/s") is "2.5 TFLOP/s". */
function formatValue(value, unit, digits = 4) {
  if (!known(value)) return MISSING;
  const [symbol, prefixed] = PAGE.units[unit] || ["", false];
  let exponent = 0;
  if (prefixed && value !== 0) {
    exponent = Math.min(Math.max(3 * Math.floor(Math.log10(Math.abs(value)) / 3), -12), 18);
    if (Math.abs(Number((value / 10 ** exponent).toPrecision(digits))) >= 1000) exponent = Math.min(exponent + 3, 18);
  }
  const scaled = Number((value / 10 ** exponent).toPrecision(digits));
  return `${scaled} ${PREFIXES[exponent]}${symbol}`.trim();
}

/** "1.91 to 2.1 TFLOP/s": the unit once where both have the same prefix. */
function formatRange(low, high, unit, digits = 4) {
  const [small, great] = [formatValue(low, unit, digits), formatValue(high, unit, digits)];
  const [first, rest] = [small.indexOf(" "), great.indexOf(" ")];
  return small.slice(first) === great.slice(rest) && first > 0 ? `${small.slice(0, first)} to ${great}` : `${small} to ${great}`;
}

function formatPercent(ratio) {
  if (!known(ratio)) return MISSING;
  if (ratio > 0 && ratio < 1e-4) return "< 0.01 %";
  return `${Number((100 * ratio).toPrecision(3))} %`;
}

/** The unit of a column in a row: integer work is counted in OP, all else in FLOP. */
function unitOf(column, row) {
  const unit = PAGE.columns[column][0];
  return row.unit === "op" ? unit.replace(/^flop/, "op") : unit;
}

function formatColumn(column, row) {
  const unit = unitOf(column, row);
  if (unit !== "ratio" || column.startsWith("locality")) return formatValue(row[column], unit);
  return formatPercent(row[column]);
}

function shorten(text, length) {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) * 0.65);
  return `${text.slice(0, head)}\u2026${text.slice(text.length - (length - 1 - head))}`;
}

/** Different texts cut to `length` such that they still differ: the same head and tail give way to what differs. */
function shortenApart(texts, length) {
  const cut = new Map(distinct(texts).map((text) => [text, shorten(text, length)]));
  for (let again = true; again; ) {
    again = false;
    for (const group of Map.groupBy(cut, ([, short]) => short).values()) {
      if (group.length < 2) continue;
      const same = group.map(([text]) => text);
      again = true;
      let common = 0;
      while (same.every((text) => text[common] === same[0][common])) common += 1;
      const from = Math.max(1, common - Math.floor(length / 3));
      for (const text of same) {
        const rest = text.slice(from);
        cut.set(text, `\u2026${rest.length < length ? rest : `${rest.slice(0, length - 2)}\u2026`}`);
      }
    }
  }
  return cut;
}

function distinct(values) {
  return [...new Set(values)];
}

/** The sums of some values by key, the largest first. */
function sumsBy(rows, keyOf, valueOf) {
  const sums = [...Map.groupBy(rows, keyOf)].map(([key, group]) => [key, group.reduce((sum, row) => sum + (valueOf(row) || 0), 0)]);
  return new Map(sums.sort((a, b) => b[1] - a[1]));
}

/** A count with its noun: "1 kernel", "2 kernels". */
function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}

/** Text for plotly, which reads a few tags and entities in every string. */
function plotlyText(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/** A new element; strings among the children become text, never markup. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  node.append(...children.filter((child) => child !== null));
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "colour") node.style.setProperty("--chip", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
}

function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(node, attributes);
  node.append(...children);
  return node;
}

/* Marker shapes: plotly's name and the same shape as a path in a 14 x 14 box for the table. */
function polygon(corners, turn, inner = 0) {
  const steps = inner ? 2 * corners : corners;
  const points = Array.from({ length: steps }, (_, i) => {
    const angle = ((turn + (360 * i) / steps) * Math.PI) / 180;
    const radius = inner && i % 2 ? inner : 6;
    return `${(7 + radius * Math.sin(angle)).toFixed(2)},${(7 - radius * Math.cos(angle)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}

const SHAPES = [
  ["circle", "M7,1.5A5.5,5.5 0 1 1 6.99,1.5Z"],
  ["square", "M2,2H12V12H2Z"],
  ["diamond", polygon(4, 0)],
  ["triangle-up", polygon(3, 0)],
  ["cross", "M5,1H9V5H13V9H9V13H5V9H1V5H5Z"],
  ["star", polygon(5, 0, 2.6)],
  ["triangle-down", polygon(3, 180)],
  ["hexagon", polygon(6, 0)],
  ["x", "M3.5,1L7,4.5L10.5,1L13,3.5L9.5,7L13,10.5L10.5,13L7,9.5L3.5,13L1,10.5L4.5,7L1,3.5Z"],
  ["pentagon", polygon(5, 0)],
  ["triangle-left", polygon(3, 270)],
  ["triangle-right", polygon(3, 90)],
  ["hourglass", "M2,1.5H12L2,12.5H12Z"],
  ["bowtie", "M1.5,2V12L12.5,2V12Z"],
  ["hexagram", polygon(6, 0, 3.4)],
  ["star-diamond", polygon(4, 0, 2.6)],
  ["diamond-tall", "M7,0.5L11,7L7,13.5L3,7Z"],
  ["diamond-wide", "M0.5,7L7,3L13.5,7L7,11Z"],
  ["triangle-ne", "M2,2H12V12Z"],
  ["triangle-sw", "M2,2V12H12Z"],
];

/** The n-th kernel's marker; of very many kernels some share one, and their names tell them apart. */
function shapeOf(index) {
  const [symbol, path] = SHAPES[index % SHAPES.length];
  return { symbol, path };
}

// How symbols are filled: wholly, not at all, with a dot in it, palely, wholly with a light dot, palely with a dot.
const FILLS = ["full", "open", "dot", "pale", "eye", "seed"];

/** A small symbol beside text, in the colour of the text. */
function shapeIcon(index, fill = "full") {
  const { path } = shapeOf(index);
  const [whole, pale, none] = [{ "stroke-width": "0.5" }, { "fill-opacity": "0.35", "stroke-width": "1.4" }, { fill: "none", "stroke-width": "1.4" }];
  const paint = { full: whole, eye: whole, pale, seed: pale, open: none, dot: none }[fill];
  const middle = { dot: {}, seed: {}, eye: { class: "eye" } }[fill];
  const parts = [svgElement("path", { d: path, ...paint }), ...(middle ? [svgElement("circle", { cx: 7, cy: 7, r: 1.6, "stroke-width": 0, ...middle })] : [])];
  return svgElement("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, ...parts);
}
