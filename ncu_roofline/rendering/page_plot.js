/* What planes of symbols on logarithmic axes share as plotly traces: lines, axes, names beside the symbols. */

const CONFIG = {
  displaylogo: false, responsive: true, typesetMath: false, showTips: false, plotlyServerURL: "",
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]], toImageButtonOptions: { format: "svg", filename: downloadName() },
};
const MOST_LABELS = 8; // names of kernels in a chart
const FAR = 9; // decades beyond every axis
const MARGIN = { l: 62, r: 18, t: 10, b: 44 };
let paper = null; // while printing: charts -> [width, height] in pixels

function line(x, y, color, more = {}) {
  const { width = 1, dash = "solid", ...rest } = more;
  return { type: "scatter", mode: "lines", x, y, line: { color, width, dash }, hoverinfo: "skip", showlegend: false, ...rest };
}

/** Symbols at some places [x, y], or texts with `mode: "text"`. */
function symbols(places, more) {
  return { type: "scatter", mode: "markers", x: places.map(([x]) => x), y: places.map(([, y]) => y), hoverinfo: "none", showlegend: false, ...more };
}

/** Small texts at some places, which say nothing else. */
function textsAt(places, text, textposition, color, meta, size = 11) {
  return symbols(places, { mode: "text", text, textposition, textfont: { color, size }, hoverinfo: "skip", meta });
}

/** What a row of the table is: its key, whether it is chosen. */
function chosenRow({ index }) {
  return { key: index, chosen: state.chosen === index, kind: state.chosen === index ? "chosen" : "" };
}

/** A chart as it is made, {traces, layout}, on paper in a size that fits. */
function drawPlot(id, { traces, layout }) {
  if (paper) Object.assign(layout, { width: paper[id][0], height: paper[id][1], autosize: false });
  Plotly.react(byId(id), traces, layout, CONFIG);
}

/** A click on one of some traces chooses its row, Escape shows all again. */
function wirePlots(ids, metas) {
  for (const id of ids) {
    if (!byId(id).on) Plotly.newPlot(byId(id), [], {}, CONFIG); // so that it has events before there is something to draw
    byId(id).on("plotly_click", ({ points: [hit] }) => { if (metas.includes(hit.data.meta)) toggleChosen(hit.customdata); });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.chosen !== null) toggleChosen(null); });
}

/** Roofs, {kind, value, colour, texts}, as lines. */
function roofTraces(roofs, range) {
  return roofs.map((roof) => {
    const [from, to] = spanOf(roof, roofs);
    const ends = [Math.max(from, range.x[0] - FAR), Math.min(to, range.x[1] + FAR)].map((at) => 10 ** at);
    return line(ends, ends.map((x) => (roof.kind === "bandwidth" ? x * roof.value : roof.value)), roof.colour, { width: 2, meta: "roof" });
  });
}

/** Their labels, as nameAnnotations takes them. */
function roofAnnotations(roofs, colours) {
  return (projection, floor) => {
    markRoofs(roofs, projection, floor);
    return roofPlaces(roofs, ({ texts }) => texts, projection, floor).map((place) => annotation(place, place.text, place.roof.colour, projection, colours.card));
  };
}

/** Every column of a chosen row; nothing where none is chosen. */
function drawFacts(row, columns, all) {
  const card = byId("details");
  card.hidden = !row;
  if (!row) return;
  const close = element("button", { type: "button", class: "button no-print", title: "Esc", onclick: () => toggleChosen(null) }, `Show all ${all}`);
  const facts = columns.map(({ label, title, value, show, number }) => [label, title, number ? show(row) : value(row)]).filter(([, , text]) => text);
  const spans = facts.map(([label, title, text]) => element("span", { title }, element("span", { class: "muted" }, `${label} `), text));
  card.replaceChildren(element("div", { class: "head" }, element("h2", {}, shorten(row.name, 200)), close), element("div", { class: "facts" }, ...spans));
}

/** Width and height of a chart in pixels. */
function sizeOf(id) {
  const box = document.getElementById(id);
  return paper ? paper[id] : [box.clientWidth, box.clientHeight];
}

/** A chart {traces, layout} in which names stand beside the `named` rows: `titles` of its axes, `place(row)` of a symbol, those to `avoid`. */
function planeOf(id, { traces, titles, range, named, place, avoid, first, margin = MARGIN, axes = {}, ...more }, colours) {
  const annotations = nameAnnotations(id, named, place, range, margin, avoid, colours, first);
  const [across, up] = titles.map((title, index) => axis(title, index ? range.y : range.x, colours, axes));
  return { traces, layout: layoutOf(across, up, colours, { margin, annotations, ...more }) };
}

/** Names beside the symbols of the kernels with most time; they stay there when the reader zooms.  `first` takes room before them. */
function nameAnnotations(id, points, place, range, margin, avoid, colours, first = () => []) {
  const [width, height] = sizeOf(id);
  const projection = new Projection(range, width - margin.l - margin.r, height - margin.t - margin.b);
  const floor = new Floor(projection.width, projection.height);
  const pixel = ([x, y]) => projection.pixel(Math.log10(x), Math.log10(y));
  for (const at of avoid) floor.mark(floor.dots, ...pixel(at), 7);
  const order = [...points].filter((point) => !(point.step >= 0)).sort((a, b) => (b.seconds || 0) - (a.seconds || 0));
  const texts = shortenApart(order.map((point) => point.name), 24);
  const [found, named] = [first(projection, floor), new Set()];
  for (const point of order) {
    if (named.has(point.name) || named.size >= MOST_LABELS) continue;
    const at = pixel(place(point));
    const label = nameLabel(texts.get(point.name), [at], floor, { others: avoid.map(pixel).filter(([x, y]) => Math.hypot(x - at[0], y - at[1]) > 1) });
    if (!label) continue;
    named.add(point.name);
    const [x, y] = place(point).map(Math.log10);
    const [across, down] = [label.x - at[0], label.y - at[1]];
    const offset = label.leader ? { showarrow: true, ax: across, ay: down, arrowhead: 0, arrowwidth: 0.8, arrowcolor: colours.muted, standoff: 6 } : { showarrow: false, xshift: across, yshift: -down };
    found.push({ x, y, ...offset, text: plotlyText(texts.get(point.name)), xanchor: "center", yanchor: "middle",
      font: { size: LABEL_SIZE, family: FONT, color: colours.text } });
  }
  return found;
}

function axis(title, range, colours, more = {}) {
  const span = range[1] - range[0];
  return { type: "log", range, title: { text: title, font: { size: 12 }, standoff: 6 }, color: colours.muted, showgrid: false, zeroline: false, showline: true,
    linecolor: colours.line, tickcolor: colours.line, ticks: "outside", ticklen: 4, dtick: span > 12 ? 2 : span > 2 ? 1 : "D2", tickformat: "~s", ...more };
}

function layoutOf(x, y, colours, more = {}) {
  return { margin: MARGIN, autosize: true, showlegend: false, paper_bgcolor: colours.card, plot_bgcolor: colours.card, hovermode: "closest",
    font: { family: FONT, size: 12, color: colours.text }, hoverlabel: { align: "left", bgcolor: colours.card, font: { color: colours.text, size: 12 } }, xaxis: x, yaxis: y, ...more };
}
