/* The tables beside the listings: findings, loops, functions, and how sums fit the counters. */

const FIRST = { findings: 3, loops: 25, functions: 40 };
const all = { findings: false, loops: false, functions: false };

function drawTables() {
  drawFindings();
  drawLoops();
  drawFunctions();
  drawTotals();
}

/** The button that shows the rest of a table. */
function offerAll(table, shown, count) {
  byId(`all-${table}`).hidden = shown === count;
  byId(`all-${table}`).textContent = `Show all ${count} ${table}`;
}

function drawFindings() {
  const { findings } = view.launch;
  byId("findings").hidden = !findings.length;
  const shown = all.findings ? findings : findings.slice(0, FIRST.findings);
  const told = new Set(); // advice is given once
  byId("finding-list").replaceChildren(...shown.map((one) => {
    const advice = told.has(one.advice) ? "" : one.advice;
    told.add(one.advice);
    return findingItem(one, advice);
  }));
  offerAll("findings", shown.length, findings.length);
}

/** A finding: a link to its line, else to its instruction or its loop. */
function findingItem(one, advice) {
  const [place, target] = placeOf(one);
  const share = known(one.share) ? `${formatPercent(one.share)} of ${one.of}` : one.kind;
  const name = target ? link(place, () => choose(target)) : element("b", {}, place);
  return element("li", {}, name, ...withLoop(one, messageOf(one, place)), " ", element("span", { class: "tag" }, share), " ", element("span", { class: "muted" }, advice));
}

/** What is said of a place with a link to the loop of a finding: where that is named, else before it. */
function withLoop({ loop }, message) {
  if (!view.loops.has(loop) || loop < 0) return [message];
  const named = link(`loop ${loop}`, () => choose({ loop }));
  const at = message.match(new RegExp(`\\bloop ${loop}\\b`, "i"))?.index;
  if (at === undefined) return [" (", named, ")", message];
  return [message.slice(0, at), named, message.slice(at + `loop ${loop}`.length)];
}

function placeOf(one) {
  if (one.line > 0 && view.lines.has(keyOf(one.file, one.line))) return [lineName(one.file, one.line), { file: one.file, line: one.line }];
  if (one.at >= 0) return [hex(view.instructions.offset[one.at]), { row: one.at }];
  return one.loop >= 0 && view.loops.has(one.loop) ? [`loop ${numberedLoop(view.loops.get(one.loop))}`, { loop: one.loop }] : [one.kind, null];
}

/** What follows the place that stands before it: more of the place where the message has some, then a colon and what is found. */
function messageOf({ message }, place) {
  const named = [place, place.split("/").pop()].find((name) => message.startsWith(name) && /^[: ,]/.test(message.slice(name.length)));
  return named ? message.slice(named.length) : `: ${message}`;
}

function drawLoops() {
  const loops = [...view.loops.values()];
  byId("loops").hidden = !loops.some((loop) => loop.loop >= 0);
  const heat = (loop) => heatOf(loop).own || 0;
  const hot = [...loops].sort((a, b) => heat(b) - heat(a)).slice(0, FIRST.loops);
  const kept = new Set(hot.flatMap((loop) => [loop.loop, ...chainOf(loop.loop)]));
  const shown = all.loops ? loops : loops.filter((loop) => kept.has(loop.loop) || isChosenLoop(loop));
  const headings = [
    heading("Loop", "number and place"), heading(""), ...loopMeasures().map((measure) => measureHeading(measure, "num")),
    heading(intensityHeading(), "operations per byte requested from L1, of global and local memory", "num"), ...(knowsTrips() ? [heading("Trips", "iterations per entry and warp", "num")] : []),
  ];
  const most = Math.max(...loops.filter((loop) => loop.loop >= 0).map(heat), 0);
  byId("loop-table").replaceChildren(tableOf(headings, [...kernelRow(headings.length), ...shown.flatMap((loop) => loopRows(loop, most, headings.length))]));
  offerAll("loops", shown.length, loops.length);
}

/** The header of a column of shares; what these are of is its hint. */
function measureHeading({ label, meaning }, kind) {
  return heading(label, meaning, kind);
}

/** Shares that loops have columns of: one of which nothing is known takes no room. */
function loopMeasures() {
  const there = measuresOf(view.launch);
  return ["samples", view.launch.works, "traffic", "local"].flatMap((id) => there.find((measure) => measure.id === id) || []);
}

function knowsTrips() {
  return view.launch.loops.some((loop) => known(loop.trips));
}

/** The unit of intensities, those of integer work are in operations. */
function intensityHeading() {
  return PAGE.units[view.launch.chart.axes[1]][0];
}

/** The kernel beside its loops, by its own counters. */
function kernelRow(columns) {
  const dot = view.launch.chart.dots.find((one) => one.level === view.launch.chart.nearest);
  if (!dot) return [];
  const before = Array.from({ length: loopMeasures().length + 1 }, () => cell(""));
  const cells = [...before, cell(plainNumber(dot.intensity), "num"), ...(knowsTrips() ? [cell("")] : [])];
  return [element("tr", {}, element("th", { scope: "row" }, "whole kernel"), ...cells), belowRow(`Performance ${rateText(dot)}`, columns, "")];
}

/** A row with what belongs to the one above and needs its whole width. */
function belowRow(words, columns, kind, indent = 0) {
  const below = element("td", { colspan: columns }, words);
  below.style.paddingLeft = `${0.4 + indent}rem`;
  return element("tr", { class: `below ${kind}` }, below);
}

/** A loop, and in a row below it its performance or why it has none. */
function loopRows(loop, most, columns) {
  const name = link(numberedLoop(loop, shortLoopName(loop)), () => choose(isChosenLoop(loop) ? null : { loop: loop.loop }));
  const head = element("th", { scope: "row" }, loop.loop >= 0 ? name : loopName(loop));
  const indent = 0.9 * Math.max(Math.min(loop.depth, 12) - 1, 0);
  head.style.paddingLeft = `${0.4 + indent}rem`;
  const trips = known(loop.trips) ? formatValue(loop.trips, "count", 3) : "";
  const kind = isChosenLoop(loop) ? "chosen" : "";
  const row = element(
    "tr", { class: kind || null, "data-loop": loop.loop }, head, cell(heatBar({ own: heatOf(loop).own, within: null }, most)),
    ...loopMeasures().map((measure) => cell(shareText(loop.shares[PAGE.measures.indexOf(measure)]), "num")), cell(plainNumber(loop.intensity), "num"), ...(knowsTrips() ? [cell(trips, "num")] : []),
  );
  return loop.loop < 0 ? [row] : [row, belowRow(loopRate(loop), columns, kind, indent)];
}

/** Performance and how much of what is attainable that is. */
function rateText({ performance, attainable }) {
  const part = attainable > 0 ? `, ${formatPercent(performance / attainable)} of roof at L1` : "";
  return `${formatValue(performance, view.launch.chart.axes[2], 3)}${part}`;
}

/** The performance of a loop, or why it has none. */
function loopRate(loop) {
  return known(loop.performance) ? `Performance ${rateText(loop)}` : `No performance: ${loop.notes}`;
}

function isChosenLoop(loop) {
  return Boolean(state.chosen) && state.chosen.loop === loop.loop;
}

function drawFunctions() {
  const { functions } = view.launch;
  byId("functions").hidden = functions.length < 2;
  const measures = measuresOf(view.launch).map((measure) => measureHeading(measure, "num"));
  const headings = [heading("Function"), heading("Role"), heading(""), ...measures, heading("In code", "instructions of its code", "num")];
  const heat = (one) => heatOf(one).own || 0;
  const most = functions.reduce((best, one) => Math.max(best, heat(one)), 0);
  const hot = new Set([...functions].sort((a, b) => heat(b) - heat(a)).slice(0, FIRST.functions));
  const shown = all.functions ? functions : functions.filter((one) => hot.has(one));
  byId("function-table").replaceChildren(tableOf(headings, shown.map((one) => functionRow(one, most))));
  offerAll("functions", shown.length, functions.length);
}

function functionRow(one, most) {
  const first = view.instructions.function.indexOf(one.function);
  const called = text(one.function) || one.role === "inlined" ? one.name : OUTSIDE;
  const name = one.line > 0 ? `${called} (${lineName(one.file, one.line)})` : called;
  const head = element("th", { scope: "row", class: "wrap" }, first >= 0 ? link(name, () => choose({ row: first })) : name);
  const shares = one.shares.filter((_, index) => measuresOf(view.launch).includes(PAGE.measures[index])).map((share) => cell(shareText(share), "num"));
  return element("tr", {}, head, cell(one.role), cell(heatBar({ own: heatOf(one).own, within: null }, most)), ...shares, cell(String(one.instructions), "num"));
}

function unitOf({ unit }) {
  return unit in PAGE.units ? unit : "count";
}

function drawTotals() {
  const totals = view.launch.totals.filter((one) => one.sum || known(one.counter));
  byId("totals").hidden = !totals.length;
  const titles = ["Quantity", "Sum of instructions", "Counter of the kernel", "Ratio", "Without line", "Outside of the code", "Notes"];
  const rows = totals.map((one) => {
    const values = [one.sum, one.counter].map((value) => formatValue(value, unitOf(one)));
    const ratio = known(one.ratio) ? String(Number(one.ratio.toPrecision(4))) : "";
    const parts = [one.unlined, one.outside].map((value) => (known(value) && one.sum ? shareText(value / one.sum) : ""));
    const head = element("th", { scope: "row", class: "wrap" }, one.quantity);
    return element("tr", {}, head, ...[...values, ratio, ...parts].map((value) => cell(value, "num")), cell(one.notes, "wrap", one.metrics));
  });
  byId("total-table").replaceChildren(tableOf(titles.map((title, index) => heading(title, "", index && index < 6 ? "num" : "")), rows));
}
