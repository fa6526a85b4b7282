/* The chart: roofs, ridge points and dots as plotly traces; rings and guides over it. */

const chart = document.getElementById("chart");
const overlay = document.getElementById("overlay");
const MOST_NAMES = 12;
let current = null; // what is drawn: {selection, roofs, ranges, size}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function palette() {
  return {
    card: style("--card"), text: style("--text"), muted: style("--muted"), grid: style("--grid"), line: style("--line"),
    neutral: style("--neutral"), accent: style("--accent"),
  };
}

function margins(width) {
  return width < 600 ? { l: 58, r: 10, t: 10, b: 48 } : { l: 76, r: 16, t: 12, b: 54 };
}

/** The value of a roof with its unit, or the range over the launches' clocks. */
function roofValue(roof, digits = 4) {
  return roof.wide ? formatRange(roof.value_min, roof.value_max, roof.unit, digits) : formatValue(roof.value, roof.unit, digits);
}

/** Texts for a roof's label, the fullest first; the shorter ones are for short lines. */
function roofTexts(roof) {
  const origin = ORIGINS.length > 1 ? ` (${originName(roof.origin)})` : "";
  const name = shorten(roof.label || roof.roof, 40);
  if (roof.kind === "wall") return [name, name.split(":")[0]]; // the label says where it stands
  return [`${name}: ${roofValue(roof)}${origin}`, `${name}: ${roofValue(roof, 3)}`, name];
}

function roofColour(roof, colours) {
  return (roof.kind === "bandwidth" && LEVELS.has(roof.level) && levelColour(roof.level)) || colours.neutral;
}

function shownOf(roofs, kind) {
  return roofs.filter((roof) => roof.shown && roof.kind === kind);
}

/** From where to where (decades of intensity) a roof holds: diagonals end at the highest compute roof, compute roofs start at a ridge. */
function spanOf(roof, roofs) {
  const compute = shownOf(roofs, "compute").map((other) => other.value);
  const bandwidth = shownOf(roofs, "bandwidth").map((other) => other.value);
  if (roof.kind === "bandwidth") return { from: -30, to: compute.length ? Math.log10(Math.max(...compute) / roof.value) : 30 };
  if (roof.kind === "compute") return { from: bandwidth.length ? Math.log10(roof.value / Math.max(...bandwidth)) : -30, to: 30 };
  return { from: -30, to: 30 };
}

/** Ridge points: every bandwidth with the highest compute roof of each precision. */
function ridges(roofs) {
  const highest = new Map();
  for (const roof of shownOf(roofs, "compute")) {
    const pipe = `${roof.precision} ${roof.origin}`;
    if (!highest.has(pipe) || highest.get(pipe).value < roof.value) highest.set(pipe, roof);
  }
  return [...highest.values()].flatMap((compute) =>
    shownOf(roofs, "bandwidth")
      .filter((bandwidth) => bandwidth.origin === compute.origin)
      .map((bandwidth) => ({ x: compute.value / bandwidth.value, y: compute.value, compute, bandwidth })),
  );
}

/** The ranges of the first look, in decades: all dots of the chosen precisions and all ridge points, with some air. */
function homeRanges(roofs) {
  const points = POINTS.filter((p) => drawable(p) && onStage(p) && state.precisions.has(p.precision));
  const corners = ridges(roofs);
  const walls = shownOf(roofs, "wall").map((roof) => roof.value);
  const xs = [...points.map((p) => p.intensity), ...corners.map((ridge) => ridge.x), ...walls].map(Math.log10);
  const tops = shownOf(roofs, "compute").map((roof) => (roof.wide ? roof.value_max : roof.value));
  const ys = [...points.map((p) => p.performance), ...tops].map(Math.log10);
  const bounds = (values, below, above, fallback) => {
    if (!values.length) return fallback;
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    return [low - below, high + above];
  };
  const x = bounds(xs, 0.85, 0.95, [-2, 3]);
  const y = bounds(ys, points.length ? 0.45 : 3, 0.35, [9, 14]);
  return { x: x[1] - x[0] < 2.5 ? [x[0] - 0.8, x[1] + 0.6] : x, y: y[1] - y[0] < 2 ? [y[0] - 0.8, y[1]] : y };
}

/** One line; many points along it, since plotly's hover knows points only. */
function roofTrace(roof, roofs, ranges, colours) {
  const { from, to } = spanOf(roof, roofs);
  const level = Math.log10(roof.value);
  const [low, high] = roof.kind === "wall" ? [ranges.y[0] - 1, ranges.y[1] + 1] : [ranges.x[0] - 1, ranges.x[1] + 1];
  const inside = Array.from({ length: 121 }, (_, i) => low + (i / 120) * (high - low));
  const steps = [from, ...inside.filter((step) => step > from && step < to), to];
  const x = steps.map((step) => 10 ** (roof.kind === "wall" ? level : step));
  const y = steps.map((step) => 10 ** (roof.kind === "bandwidth" ? step + level : roof.kind === "compute" ? level : step));
  const dashed = roof.kind === "wall" ? "dot" : roof.origin === "theoretical" && ORIGINS.includes("measured") ? "6px,4px" : "solid";
  return {
    type: "scatter", mode: "lines", x, y, meta: "roof", customdata: steps.map(() => roof.key), hoverinfo: "none", showlegend: false,
    name: plotlyText(roof.label), line: { color: roofColour(roof, colours), width: dashed === "solid" ? 1.8 : 1.4, dash: dashed },
  };
}

/** The band of a roof between the lowest and the highest of its launches. */
function bandTrace(roof, roofs, ranges, colours) {
  const { from, to } = spanOf({ ...roof, value: roof.value_max }, roofs);
  const slow = spanOf({ ...roof, value: roof.value_min }, roofs);
  const [left, right] = [ranges.x[0] - 1, ranges.x[1] + 1];
  const corners = [
    [Math.max(from, left), roof.value_max], [Math.min(to, right), roof.value_max], [Math.min(slow.to, right), roof.value_min], [Math.max(slow.from, left), roof.value_min],
  ];
  const y = corners.map(([x, value]) => (roof.kind === "bandwidth" ? 10 ** x * value : value));
  return {
    type: "scatter", mode: "lines", x: corners.map(([x]) => 10 ** x), y, meta: "band", fill: "toself", opacity: 0.16, hoverinfo: "skip", showlegend: false,
    fillcolor: roofColour(roof, colours), line: { width: 0 },
  };
}

function ridgeTrace(roofs, colours) {
  const corners = ridges(roofs);
  return {
    type: "scatter", mode: "markers", x: corners.map((ridge) => ridge.x), y: corners.map((ridge) => ridge.y), meta: "ridge",
    customdata: corners.map((_, index) => index), hoverinfo: "none", showlegend: false,
    marker: { symbol: "circle", size: 6, color: colours.card, line: { color: colours.neutral, width: 1.2 } },
  };
}

/** Thin lines between the levels of a kernel: their gaps are what the caches catch. */
function linkTrace(rows, points, colours) {
  const visible = new Set(points);
  const [x, y] = [[], []];
  for (const row of rows) {
    if (state.isolated !== null && row.kernel.index !== state.isolated) continue;
    if (row.kernel.step >= 0) continue; // in a sweep lines join the steps instead
    const ends = [...row.levels.values()].filter((point) => visible.has(point));
    if (ends.length < 2) continue;
    x.push(...ends.map((point) => point.intensity), null);
    y.push(...ends.map((point) => point.performance), null);
  }
  return {
    type: "scatter", mode: "lines", x, y, meta: "link", hoverinfo: "skip", showlegend: false, opacity: 0.55,
    line: { color: colours.muted, width: 1 },
  };
}

/** The dots of one level; `faded` ones are those beside an isolated kernel. */
function levelTrace(level, points, crowd, faded, colours, legend) {
  const mine = points.filter((point) => point.level === level.id);
  const size = crowd > 600 && (faded || state.isolated === null) ? 6 : crowd > 200 ? 8 : 10;
  const opacity = faded ? (crowd > 600 ? 0.06 : 0.15) : crowd > 600 && state.isolated === null ? 0.8 : 1;
  return {
    type: "scatter", mode: "markers", x: mine.map((p) => p.intensity), y: mine.map((p) => p.performance), meta: "dots",
    customdata: mine.map((p) => p.index), hoverinfo: "none", showlegend: legend, name: plotlyText(level.label),
    marker: {
      color: levelColour(level.id), size, opacity, symbol: mine.map((p) => shapeOf(KERNELS[p.owner].shape).symbol + (PARTS.has(p.precision) ? "-open" : "")),
      line: { color: colours.card, width: mine.map((p) => (PARTS.has(p.precision) ? 1.8 : size > 7 ? 0.8 : 0.4)) },
    },
  };
}

/** Faded dots below, the others above them. */
function dotTraces(points, colours, legend) {
  const isFaded = (point) => state.isolated !== null && point.owner !== state.isolated;
  const layers = state.isolated === null ? [false] : [true, false];
  return layers.flatMap((faded) => {
    const mine = points.filter((point) => isFaded(point) === faded);
    return [...LEVELS.values()].map((level) => levelTrace(level, mine, points.length, faded, colours, legend && !faded));
  });
}

function linkedRows(rows) {
  return rows.length <= 60 || state.isolated !== null ? rows : [];
}

/** Labels of steps and roofs, then names of the longest kernels, where there is room. */
function labels(drawn, colours) {
  const { selection: chosen, roofs, projection } = drawn;
  const floor = new Floor(projection.width, projection.height);
  const pixel = (point) => projection.pixel(Math.log10(point.intensity), Math.log10(point.performance));
  const bright = state.isolated === null ? chosen.points : chosen.points.filter((point) => point.owner === state.isolated);
  for (const point of bright) floor.mark(floor.dots, ...pixel(point), 5);
  for (const roof of roofs.filter((each) => each.shown)) markLine(floor, visibleSegment(roof, spanOf(roof, roofs), projection));
  const found = stepLabels(chosen, floor, pixel, projection, colours); // first: a roof has room elsewhere
  const rank = { compute: 0, bandwidth: 1, wall: 2 };
  for (const roof of roofs.filter((each) => each.shown).sort((a, b) => rank[a.kind] - rank[b.kind] || b.value - a.value)) {
    const segment = visibleSegment(roof, spanOf(roof, roofs), projection);
    const place = segment && roofLabel(roof, roofTexts(roof), segment, crowdedSides(roof, roofs, projection), floor);
    if (place) found.push(annotation(place, place.text, roofColour(roof, colours), projection, fogged(colours.card)));
  }
  found.push(...mixLabels(drawn, floor, colours));
  return [...found, ...nameLabels(chosen, floor, pixel, projection, colours)];
}

function nameLabels(chosen, floor, pixel, projection, colours) {
  const visible = new Set(chosen.points);
  const rows = chosen.rows.filter((row) => state.isolated === null || row.kernel.index === state.isolated);
  rows.sort((a, b) => (b.kernel.seconds || 0) - (a.kernel.seconds || 0));
  const [found, named] = [[], new Set()];
  for (const row of rows.slice(0, 3 * MOST_NAMES)) {
    if (state.isolated === null && named.has(row.kernel.kernel)) continue;
    const ends = [...row.levels.values()].filter((point) => visible.has(point)).map(pixel);
    const inside = ends.filter(([x, y]) => x >= 0 && y >= 0 && x <= projection.width && y <= projection.height);
    const text = shorten(row.kernel.kernel, projection.width < 500 ? 18 : 30);
    const place = inside.length ? nameLabel(text, inside, floor) : null;
    if (!place) continue;
    found.push(annotation(place, text, colours.text, projection, "rgba(0,0,0,0)"));
    named.add(row.kernel.kernel);
    if (found.length >= (projection.width < 500 ? 5 : MOST_NAMES)) break;
  }
  return found;
}

/** A colour #rrggbb with some transparency, to lift labels off lines. */
function fogged(colour) {
  return /^#[0-9a-f]{6}$/i.test(colour) ? `${colour}99`.replace(/^#(..)(..)(..)(..)$/, (_, ...hex) => rgba(hex)) : colour;
}

function rgba(hex) {
  const [red, green, blue, alpha] = hex.slice(0, 4).map((part) => parseInt(part, 16));
  return `rgba(${red},${green},${blue},${(alpha / 255).toFixed(2)})`;
}

/** Decades only in a wide view, 1-2-5 in a narrow one, plotly's choice within a decade. */
function ticks(range) {
  const span = range[1] - range[0];
  return { dtick: span > 2.2 ? (span > 14 ? 2 : 1) : span > 0.9 ? "D2" : null, tickmode: span > 0.9 ? "linear" : "auto" };
}

function axis(title, range, colours) {
  return {
    type: "log", range, title: { text: title, font: { size: 13 }, standoff: 8 }, gridcolor: colours.grid, linecolor: colours.line, zeroline: false,
    color: colours.muted, tickcolor: colours.line, ticks: "outside", ticklen: 4, showline: true, mirror: true, automargin: false,
    ...ticks(range),
  };
}

function intensityTitle(points) {
  const units = distinct(points.map((point) => point.unit)).filter((unit) => PAGE.counted[unit]);
  const [first, ...others] = units.length ? units : [PAGE.unit];
  const more = others.map((unit) => PAGE.units[PAGE.counted[unit].unit][0]);
  return PAGE.counted[first].intensity.replace("]", ["", ...more].join(", ") + "]");
}

function performanceTitle(points) {
  const units = distinct(points.map((point) => point.unit));
  const names = (units.length ? units : [PAGE.unit]).map((unit) => PAGE.counted[unit].of + PAGE.units[`${unit}/s`][0]);
  return `Performance [${distinct(names).join(", ")}]`;
}

function layout(drawn, colours) {
  const { ranges, size, selection: chosen } = drawn;
  return {
    width: size.width, height: size.height, margin: { ...margins(size.width), pad: 0 }, autosize: false, showlegend: false,
    paper_bgcolor: colours.card, plot_bgcolor: colours.card, font: { family: FONT, size: 12, color: colours.text },
    hovermode: "closest", hoverdistance: 14, dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis(intensityTitle(chosen.points), ranges.x, colours), exponentformat: ranges.x[0] < -4.5 ? "power" : "none" },
    yaxis: { ...axis(performanceTitle(chosen.points), ranges.y, colours), tickformat: "~s" },
    annotations: labels(drawn, colours),
  };
}

// The buttons by name: some releases of plotly bring one that uploads the chart.
const CONFIG = {
  displaylogo: false, responsive: false, doubleClick: false, typesetMath: false, showTips: false, plotlyServerURL: "",
  modeBarButtons: [["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d"]],
};

function chartSize() {
  const box = chart.parentElement.getBoundingClientRect();
  return { width: Math.max(280, Math.floor(box.width)), height: Math.max(260, Math.floor(box.height)) };
}

function plan(size) {
  const roofs = currentRoofs();
  const ranges = state.view || homeRanges(roofs);
  return { selection: selection(), roofs, ranges, size, projection: projectionOf(ranges, size) };
}

function projectionOf(ranges, size) {
  const { l, r, t, b } = margins(size.width);
  return new Projection(ranges, size.width - l - r, size.height - t - b);
}

function traces(drawn, colours, legend = false) {
  const { selection: chosen, roofs, ranges } = drawn;
  return [
    ...roofs.filter((roof) => roof.shown && roof.wide && roof.kind !== "wall").map((roof) => bandTrace(roof, roofs, ranges, colours)),
    ...roofs.filter((roof) => roof.shown).map((roof) => roofTrace(roof, roofs, ranges, colours)),
    ridgeTrace(roofs, colours),
    linkTrace(linkedRows(chosen.rows), chosen.points, colours),
    ...mixTraces(drawn, colours),
    ...sweepTraces(chosen),
    ...dotTraces(chosen.points, colours, legend),
  ];
}

/** Draw everything anew from the state. */
function drawChart(size = chartSize()) {
  const colours = palette();
  current = plan(size);
  highlight(null);
  return Plotly.react(chart, traces(current, colours), layout(current, colours), CONFIG);
}

/** After a zoom only the labels move. */
function moveLabels() {
  current.ranges = state.view || homeRanges(current.roofs);
  current.projection = projectionOf(current.ranges, current.size);
  const colours = palette();
  const { xaxis, yaxis, annotations } = layout(current, colours);
  return Plotly.relayout(chart, { xaxis, yaxis, annotations });
}

/** Rings around the dots of a kernel (of one precision, if given) and guides up to what it could attain. */
function highlight(owner, precision = null) {
  overlay.replaceChildren();
  if (owner === null || !current) return;
  const { l, t } = margins(current.size.width);
  const { projection, selection: chosen } = current;
  const ink = style("--text");
  for (const point of chosen.points) {
    if (point.owner !== owner || (precision !== null && point.precision !== precision)) continue;
    const [x, y] = projection.pixel(Math.log10(point.intensity), Math.log10(point.performance));
    if (x < 0 || y < 0 || x > projection.width || y > projection.height) continue;
    overlay.append(svgElement("circle", { cx: x + l, cy: y + t, r: 10, fill: "none", stroke: ink, "stroke-width": 1.6 }));
    if (known(point.attainable) && point.attainable > point.performance) {
      const top = Math.max(0, projection.pixel(0, Math.log10(point.attainable))[1]) + t;
      const guide = { x1: x + l, x2: x + l, y1: Math.max(top, 0), y2: y + t - 10, stroke: levelColour(point.level), "stroke-dasharray": "3 3" };
      if (guide.y1 < guide.y2) overlay.append(svgElement("line", guide));
    }
  }
}

/** The picture with a legend and a title, as a file. */
function downloadSvg() {
  const colours = palette();
  const figure = layout(current, colours);
  const extra = 58;
  figure.margin = { ...figure.margin, t: figure.margin.t + extra };
  Object.assign(figure, { height: figure.height + extra, showlegend: true });
  figure.title = { text: plotlyText(shorten(PAGE.title, 110)), x: 0.02, xanchor: "left", y: 1, yanchor: "top", yref: "container", pad: { t: 14 }, font: { size: 16 } };
  figure.legend = { orientation: "h", bgcolor: "rgba(0,0,0,0)", x: 1, xanchor: "right", y: 1, yanchor: "bottom" };
  const options = { format: "svg", width: figure.width, height: figure.height, filename: fileName() };
  return Plotly.downloadImage({ data: traces(current, colours, true), layout: figure, config: CONFIG }, options);
}

function fileName() {
  return PAGE.title.replace(/[^A-Za-z0-9._]+/g, "-").replace(/^[-.]+|-$/g, "").slice(0, 80) || "roofline";
}
