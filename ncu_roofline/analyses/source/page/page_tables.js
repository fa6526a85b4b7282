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
  const kept = new Set(hottestOf(loops, FIRST.loops).flatMap((loop) => [loop.loop, ...chainOf(loop.loop)]));
  const shown = all.loops ? loops : loops.filter((loop) => kept.has(loop.loop) || isChosenLoop(loop));
  const columns = loopColumns(loops.filter((loop) => loop.loop >= 0));
  byId("loop-table").replaceChildren(tableOf(columns, [...kernelRow(columns), ...shown.flatMap((loop) => loopRows(loop, columns))]));
  offerAll("loops", shown.length, loops.length);
}

/** Of some entries those in which most happened. */
function hottestOf(entries, count) {
  return [...entries].sort((a, b) => (heatOf(b).own || 0) - (heatOf(a).own || 0)).slice(0, count);
}

/** The header of a column of shares; what these are of is its hint. */
function measureHeading({ label, meaning }) {
  return heading(label, meaning, "num");
}

/** Shares that loops have columns of: one of which nothing is known takes no room. */
function loopMeasures() {
  const there = measuresOf(view.launch);
  return ["samples", view.launch.works, "traffic", "local"].flatMap((id) => there.find((measure) => measure.id === id) || []);
}

/** The unit of intensities, those of integer work are in operations. */
function intensityHeading() {
  return PAGE.units[view.launch.chart.axes[1]][0];
}

/** A heat bar, beside the longest of some entries, and some shares. */
function heatColumns(measures, entries) {
  const most = entries.reduce((longest, entry) => Math.max(longest, heatOf(entry).own || 0), 0);
  const shares = measures.map((measure) => [measureHeading(measure), (one) => cell(shareText(one.shares[PAGE.measures.indexOf(measure)]), "num")]);
  return [[heading(""), (one) => cell(heatBar({ own: heatOf(one).own, within: null }, most))], ...shares];
}

/** Columns of loops: their header and what makes a cell. */
function loopColumns(loops) {
  const trips = (loop) => (known(loop.trips) ? formatValue(loop.trips, "count", 3) : "");
  return [
    [heading("Loop", "number and place"), loopHead],
    ...heatColumns(loopMeasures(), loops),
    [heading(intensityHeading(), "operations per byte requested from L1, of global and local memory", "num"), (loop) => cell(plainNumber(loop.intensity), "num")],
    loops.some((loop) => known(loop.trips)) && [heading("Trips", "iterations per entry and warp", "num"), (loop) => cell(trips(loop), "num")],
  ].filter(Boolean);
}

function loopHead(loop) {
  if (loop.whole) return element("th", { scope: "row" }, "whole kernel");
  const name = link(numberedLoop(loop, shortLoopName(loop)), () => choose(isChosenLoop(loop) ? null : { loop: loop.loop }));
  const head = element("th", { scope: "row" }, loop.loop >= 0 ? name : loopName(loop));
  head.style.paddingLeft = `${0.4 + indentOf(loop)}rem`;
  return head;
}

function indentOf({ depth }) {
  return 0.9 * Math.max(Math.min(depth, 12) - 1, 0);
}

/** The kernel beside its loops, by its own counters. */
function kernelRow(columns) {
  const dot = view.launch.chart.dots.find((one) => one.level === view.launch.chart.nearest);
  return dot ? [rowOf(columns, { whole: true, shares: [], intensity: dot.intensity }), belowRow(`Performance ${rateText(dot)}`, columns.length, "")] : [];
}

/** A row with what belongs to the one above and needs its whole width. */
function belowRow(words, columns, kind, indent = 0) {
  const below = element("td", { colspan: columns }, words);
  below.style.paddingLeft = `${0.4 + indent}rem`;
  return element("tr", { class: `below ${kind}` }, below);
}

/** A loop, and in a row below it its performance or why it has none. */
function loopRows(loop, columns) {
  const kind = isChosenLoop(loop) ? "chosen" : "";
  const row = rowOf(columns, loop, { class: kind || null, "data-loop": loop.loop });
  const rate = known(loop.performance) ? `Performance ${rateText(loop)}` : `No performance: ${loop.notes}`;
  return loop.loop < 0 ? [row] : [row, belowRow(rate, columns.length, kind, indentOf(loop))];
}

/** Performance and how much of what is attainable that is. */
function rateText({ performance, attainable }) {
  const part = attainable > 0 ? `, ${formatPercent(performance / attainable)} of roof at L1` : "";
  return `${formatValue(performance, view.launch.chart.axes[2], 3)}${part}`;
}

function isChosenLoop(loop) {
  return Boolean(state.chosen) && state.chosen.loop === loop.loop;
}

function drawFunctions() {
  const { functions } = view.launch;
  byId("functions").hidden = functions.length < 2;
  const hot = new Set(hottestOf(functions, FIRST.functions));
  const shown = all.functions ? functions : functions.filter((one) => hot.has(one));
  const columns = [
    [heading("Function"), functionHead],
    [heading("Role"), (one) => cell(one.role)],
    ...heatColumns(measuresOf(view.launch), functions),
    [heading("In code", "instructions of its code", "num"), (one) => cell(String(one.instructions), "num")],
  ];
  byId("function-table").replaceChildren(tableOf(columns, shown.map((one) => rowOf(columns, one))));
  offerAll("functions", shown.length, functions.length);
}

function functionHead(one) {
  const first = view.instructions.function.indexOf(one.function);
  const called = text(one.function) || one.role === "inlined" ? one.name : OUTSIDE;
  const name = one.line > 0 ? `${called} (${lineName(one.file, one.line)})` : called;
  return element("th", { scope: "row", class: "wrap" }, first >= 0 ? link(name, () => choose({ row: first })) : name);
}

function drawTotals() {
  const totals = view.launch.totals.filter((one) => one.sum || known(one.counter));
  byId("totals").hidden = !totals.length;
  const value = (name) => (one) => cell(formatValue(one[name], one.unit in PAGE.units ? one.unit : "count"), "num");
  const part = (name) => (one) => cell(known(one[name]) && one.sum ? shareText(one[name] / one.sum) : "", "num");
  const columns = [
    [heading("Quantity"), (one) => element("th", { scope: "row", class: "wrap" }, one.quantity)],
    [heading("Sum of instructions", "", "num"), value("sum")], [heading("Counter of the kernel", "", "num"), value("counter")],
    [heading("Ratio", "", "num"), (one) => cell(known(one.ratio) ? String(Number(one.ratio.toPrecision(4))) : "", "num")],
    [heading("Without line", "", "num"), part("unlined")], [heading("Outside of the code", "", "num"), part("outside")],
    [heading("Notes"), (one) => cell(one.notes, "wrap", one.metrics)],
  ];
  byId("total-table").replaceChildren(tableOf(columns, totals.map((one) => rowOf(columns, one))));
}
