/* The chart: roofs, ridge points and dots as plotly traces; rings and guides over it. */

const chart = byId("chart");
const overlay = byId("overlay");
const MOST_NAMES = 12;
const FOG = "99"; // how far the ground of a label hides the lines below
const FIRST_NAMES = 3; // kernels whose names matter more than labels of roofs, which have room elsewhere
let current = null; // what is drawn: {selection, roofs, those of them that are shown, ranges, size, projection}

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

function ofKind(roofs, kind) {
  return roofs.filter((roof) => roof.kind === kind);
}

/** One line; many points along it, since plotly's hover knows points only. */
function roofTrace(roof, roofs, ranges, colours) {
  const [from, to] = spanOf(roof, roofs);
  const level = Math.log10(roof.value);
  const [low, high] = roof.kind === "wall" ? [ranges.y[0] - 1, ranges.y[1] + 1] : [ranges.x[0] - 1, ranges.x[1] + 1];
  const inside = Array.from({ length: 121 }, (_, i) => low + (i / 120) * (high - low));
  const steps = [from, ...inside.filter((step) => step > from && step < to), to];
  const x = steps.map((step) => 10 ** (roof.kind === "wall" ? level : step));
  const y = steps.map((step) => 10 ** (roof.kind === "bandwidth" ? step + level : roof.kind === "compute" ? level : step));
  const dashed = roof.kind === "wall" ? "dot" : roof.origin === "theoretical" && ORIGINS.includes("measured") ? "6px,4px" : "solid";
  const look = { width: dashed === "solid" ? 1.8 : 1.4, dash: dashed };
  return line(x, y, roofColour(roof, colours), { ...look, meta: "roof", customdata: steps.map(() => roof.key), hoverinfo: "none", name: plotlyText(roof.label) });
}

/** The band of a roof between the lowest and the highest of its launches. */
function bandTrace(roof, roofs, ranges, colours) {
  const ends = (value) => {
    const [from, to] = spanOf({ ...roof, value }, roofs);
    return [[Math.max(from, ranges.x[0] - 1), value], [Math.min(to, ranges.x[1] + 1), value]];
  };
  const corners = [...ends(roof.value_max), ...ends(roof.value_min).reverse()];
  const y = corners.map(([x, value]) => (roof.kind === "bandwidth" ? 10 ** x * value : value));
  const colour = roofColour(roof, colours);
  return line(corners.map(([x]) => 10 ** x), y, colour, { width: 0, meta: "band", fill: "toself", opacity: 0.16, fillcolor: colour });
}

function ridgeTrace(roofs, colours) {
  const places = ridges(roofs).map(({ x, y }) => [x, y]);
  const marker = { symbol: "circle", size: 6, color: colours.card, line: { color: colours.neutral, width: 1.2 } };
  return symbols(places, { meta: "ridge", customdata: places.map((_, index) => index), marker });
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
  return line(x, y, colours.muted, { meta: "link", opacity: 0.55 });
}

function linkedRows(rows) {
  return rows.length <= 60 || state.isolated !== null ? rows : [];
}

/** Labels of steps, names of the kernels that rank first, labels of roofs, then more names, where there is room. */
function labels(drawn, colours) {
  const { selection: chosen, shown, projection } = drawn;
  const floor = new Floor(projection.width, projection.height);
  const pixel = (point) => pixelOf(point, projection);
  const bright = state.isolated === null ? chosen.points : chosen.points.filter((point) => point.owner === state.isolated);
  for (const point of bright) floor.mark(floor.dots, ...pixel(point), 5);
  for (const { x, y } of ridges(shown)) floor.mark(floor.dots, ...projection.pixel(Math.log10(x), Math.log10(y)), 4);
  const { x: links, y: heights } = linkTrace(linkedRows(chosen.rows), chosen.points, colours);
  const ends = links.map((x, index) => (x === null ? null : projection.pixel(Math.log10(x), Math.log10(heights[index]))));
  ends.forEach((end, index) => markLine(floor, end && ends[index + 1] && [...end, ...ends[index + 1]]));
  markRoofs(shown, projection, floor);
  markMixes(drawn, floor);
  const found = stepLabels(chosen, floor, pixel, projection, colours); // first: a roof has room elsewhere
  const named = new Set();
  found.push(...nameLabels(chosen, named, FIRST_NAMES, floor, pixel, projection, colours));
  found.push(...mixLabels(drawn, floor, colours));
  const rank = { compute: 0, bandwidth: 1, wall: 2 };
  const ranked = [...shown].sort((a, b) => rank[a.kind] - rank[b.kind] || b.value - a.value);
  found.push(...roofPlaces(ranked, roofTexts, projection, floor).map((place) => annotation(place, place.text, roofColour(place.roof, colours), projection, `${colours.card}${FOG}`)));
  found.push(...edgeLabels(drawn, floor, colours));
  return [...found, ...nameLabels(chosen, named, projection.width < 500 ? 5 : MOST_NAMES, floor, pixel, projection, colours)];
}

/** Names of up to `most` of the kernels that rank first and are not `named` yet, which grows: at the dots that carry their verdict. */
function nameLabels(chosen, named, most, floor, pixel, projection, colours) {
  const visible = new Set(chosen.points);
  const kernels = state.isolated === null ? chosen.kernels.slice(0, 3 * most) : [KERNELS[state.isolated]];
  const texts = shortenApart(kernels.map((kernel) => kernel.kernel), projection.width < 500 ? 18 : 30);
  const inside = ([x, y]) => x >= 0 && y >= 0 && x <= projection.width && y <= projection.height;
  const bright = chosen.points.filter((point) => state.isolated === null || point.owner === state.isolated).slice(0, MOST_DOTS);
  const found = [];
  for (const kernel of kernels) {
    if (named.size >= most) break;
    const row = mainRow(kernel);
    if (!row || named.has(kernel.kernel)) continue;
    const own = new Set([...row.levels.values()].filter((point) => visible.has(point)));
    const places = [...own].map(pixel).filter(inside);
    const others = bright.filter((point) => !own.has(point)).map(pixel);
    const text = texts.get(kernel.kernel);
    const first = [leading(row)].filter((point) => own.has(point)).map(pixel).filter(inside);
    const place = (first.length ? nameLabel(text, first, floor, { others, leaders: false, limit: CLEAR / 2 }) : null) || (places.length ? nameLabel(text, places, floor, { others }) : null);
    if (!place) continue;
    found.push(annotation(place, text, colours.text, projection, "rgba(0,0,0,0)"));
    if (place.leader) found.push(leader(place.leader, projection, colours.muted));
    named.add(kernel.kernel);
  }
  return found;
}

/** A thin line from a name to the dot it belongs to. */
function leader([from, to], projection, colour) {
  const [[x, y], [ax, ay]] = [projection.data(...to), projection.data(...from)];
  return { x, y, ax, ay, xref: "x", yref: "y", axref: "x", ayref: "y", text: "", showarrow: true, arrowhead: 0, arrowwidth: 0.8, arrowcolor: colour, standoff: 5 };
}

/** Decades only in a wide view, 1-2-5 in a narrow one, plotly's choice within a decade. */
function ticks(range) {
  const span = range[1] - range[0];
  return { dtick: span > 2.2 ? (span > 14 ? 2 : 1) : span > 0.9 ? "D2" : null, tickmode: span > 0.9 ? "linear" : "auto" };
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
  const framed = (range) => ({ showgrid: true, gridcolor: colours.grid, mirror: true, automargin: false, ...ticks(range) });
  const across = axis(intensityTitle(chosen.points), ranges.x, colours, { ...framed(ranges.x), tickformat: "", exponentformat: ranges.x[0] < -4.5 ? "power" : "none" });
  return layoutOf(across, axis(performanceTitle(chosen.points), ranges.y, colours, framed(ranges.y)), colours, {
    width: size.width, height: size.height, margin: { ...margins(size.width), pad: 0 }, autosize: false, hoverdistance: 14,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", annotations: labels(drawn, colours),
  });
}

// As of the other pages, but for a chart that this script sizes and whose double click it follows.
const OPTIONS = { ...CONFIG, responsive: false, doubleClick: false, modeBarButtons: [["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d"]] };

function chartSize() {
  const box = chart.parentElement.getBoundingClientRect();
  return { width: Math.max(280, Math.floor(box.width)), height: Math.max(260, Math.floor(box.height)) };
}

function plan(size) {
  const roofs = currentRoofs();
  const shown = roofs.filter((roof) => roof.shown);
  const ranges = state.view || homeRanges(shown);
  return { selection: selection(), roofs, shown, ranges, size, projection: projectionOf(ranges, size) };
}

function projectionOf(ranges, size) {
  const { l, r, t, b } = margins(size.width);
  return new Projection(ranges, size.width - l - r, size.height - t - b);
}

function traces(drawn, colours, legend = false) {
  const { selection: chosen, shown, ranges } = drawn;
  return [
    ...shown.filter((roof) => roof.wide && roof.kind !== "wall").map((roof) => bandTrace(roof, shown, ranges, colours)),
    ...shown.map((roof) => roofTrace(roof, shown, ranges, colours)),
    ridgeTrace(shown, colours),
    linkTrace(linkedRows(chosen.rows), chosen.points, colours),
    ...mixTraces(drawn, colours),
    ...sweepTraces(chosen),
    ...dotTraces(drawn, colours, legend),
    ...(legend ? fillLegend(chosen.points, colours) : []),
    ...edgeTraces(drawn),
  ];
}

/** Draw everything anew from the state. */
function drawChart(size = chartSize()) {
  const colours = palette();
  current = plan(size);
  highlight(null);
  return Plotly.react(chart, traces(current, colours), layout(current, colours), OPTIONS);
}

/** After a zoom only the labels move, unless of many dots others can be seen. */
function moveLabels() {
  if (current.selection.points.length > MOST_DOTS) return drawChart();
  current.ranges = state.view || homeRanges(current.shown);
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
    const [x, y] = pixelOf(point, projection);
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
function picture(format) {
  const colours = palette();
  const figure = layout(current, colours);
  const extra = 58;
  figure.margin = { ...figure.margin, t: figure.margin.t + extra };
  Object.assign(figure, { height: figure.height + extra, showlegend: true });
  figure.title = { text: plotlyText(shorten(PAGE.title, 110)), x: 0.02, xanchor: "left", y: 1, yanchor: "top", yref: "container", pad: { t: 14 }, font: { size: 16 } };
  figure.legend = { orientation: "h", bgcolor: "rgba(0,0,0,0)", x: 1, xanchor: "right", y: 1, yanchor: "bottom" };
  const options = { format, scale: format === "png" ? 2 : 1, width: figure.width, height: figure.height, filename: downloadName() };
  return Plotly.downloadImage({ data: traces(current, colours, true), layout: figure, config: OPTIONS }, options);
}