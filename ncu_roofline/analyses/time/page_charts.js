/* The three charts as plotly traces. */

const CHARTS = ["complexity", "time", "both"];
const NEAR_BALANCE = 0.4; // decades
const OFF = 40; // decades: beyond every axis
const WIDE_MARGIN = { ...MARGIN, r: 70, t: 46 }; // with second axes

/** Limits in decades around some values and the corners that are near. */
function limits(values, corners) {
  const logs = values.map(Math.log10);
  const low = Math.min(...logs);
  const near = corners.map(Math.log10).filter((at) => at >= low - 3);
  const from = Math.min(low, ...near.map((at) => at - 0.3)) - 0.4;
  const to = Math.max(...logs, ...near) + 0.4;
  const lack = Math.max(1.3 - (to - from), 0) / 2;
  return [from - lack, to + lack];
}

/** What launching costs the symbols with the fewest and with the most launches. */
function overheadCorners(points, machine) {
  if (!machine || !positive(machine.latency) || !points.length) return [];
  const counts = points.map((point) => point.invocations);
  return distinct([Math.min(...counts), Math.max(...counts)]).map((count) => ({ count, seconds: count * machine.latency }));
}

/** What is below and left of a corner, and its name at the corner. */
function overheadTraces(corners, place, range) {
  const colour = boundColour("overhead");
  return corners.flatMap((corner) => {
    const [x, y] = place(corner.seconds);
    if (Math.log10(x) < range.x[0] || Math.log10(y) < range.y[0]) return [];
    const [left, bottom] = [10 ** (range.x[0] - 3), 10 ** (range.y[0] - 3)];
    const text = `overhead of ${corner.count} launch${corner.count === 1 ? "" : "es"}: ${formatValue(corner.seconds, "second", 3)}`;
    return [
      line([left, x, x, left, left], [y, y, bottom, bottom, y], colour, { dash: "dash", fill: "toself", fillcolor: `${colour}1a`, meta: "overhead" }),
      textsAt([[x, y]], [text], "top left", colour, "overhead-text"),
    ];
  });
}

/** Whole numbers between two, every second or third of many. */
function powers(from, to) {
  const all = Array.from({ length: Math.max(0, Math.floor(to) - Math.ceil(from) + 1) }, (_, i) => Math.ceil(from) + i);
  const every = Math.ceil(all.length / 9) || 1;
  return all.filter((power) => power % every === 0);
}

/** Diagonals of equal intensity and the machine balances. */
function intensityTraces(range, all, colours) {
  const found = [];
  for (const power of powers(range.y[0] - range.x[1], range.y[1] - range.x[0])) {
    const end = Math.min(range.x[1], range.y[1] - power) - 0.05;
    found.push(line([10 ** (end - OFF), 10 ** (end + OFF)], [10 ** (end - OFF + power), 10 ** (end + OFF + power)], colours.line, { meta: "iso" }));
    if (all.some((one) => positive(one.balance) && Math.abs(Math.log10(one.balance) - power) < NEAR_BALANCE)) continue; // it would seem to be the balance's
    found.push(textsAt([[10 ** end, 10 ** (end + power)]], [`${Number((10 ** power).toPrecision(3))}`], "bottom left", colours.muted, "iso-text", 10));
  }
  for (const machine of all.filter((one) => positive(one.balance))) {
    const name = `machine balance ${formatValue(machine.balance, `${POINTS.find(({ precision }) => precision === machine.precision)?.unit || "flop"}/byte`, 3)} (${PAGE.precisions[machine.precision]})`;
    const steps = Array.from({ length: 60 }, (_, i) => range.x[0] - 1 + (i / 59) * (range.x[1] - range.x[0] + 2));
    found.push(line(steps.map((x) => 10 ** x), steps.map((x) => 10 ** x * machine.balance), colours.neutral,
      { width: 2, meta: "balance", hoverinfo: "text", hovertext: name }));
  }
  return found;
}

function hoverText(point) {
  const lines = [
    `<b>${plotlyText(shorten(point.name, 60))}</b>`,
    point.step >= 0 ? plotlyText(point.label) : "",
    `${PAGE.precisions[point.precision]}, ${PAGE.bounds[point.bound][0]}`,
    `time ${formatColumn("seconds", point)} (${formatPercent(point.time_share)}), ${point.invocations} launch${point.invocations === 1 ? "" : "es"}`,
    `work ${formatColumn("work", point)}, ${plotlyText(PAGE.level_label)} traffic ${formatColumn("traffic", point)}`,
    `intensity ${formatColumn("intensity", point)}, machine balance ${formatColumn("balance", point)}`,
    `compute time ${formatColumn("compute_seconds", point)}, bandwidth time ${formatColumn("bandwidth_seconds", point)}`,
    known(point.overhead_seconds) ? `launch overhead ${formatColumn("overhead_seconds", point)}` : "",
    `at the roofline ${formatColumn("roofline_seconds", point)}: inefficiency ${formatFactor(point.inefficiency)}`,
  ];
  return lines.filter(Boolean).join("<br>");
}

function formatFactor(value) {
  return known(value) ? `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}x` : MISSING;
}

/** Symbols at `place`; those beside a chosen one are faint. */
function symbolTrace(points, place, open, colours) {
  const colour = points.map((point) => boundColour(point.bound));
  const symbol = points.map((point) => shapeOf(SHAPE_OF.get(point.name) % SHAPES.length).symbol + (open || !point.bound ? "-open" : ""));
  const opacity = points.map((point) => (state.chosen === null || state.chosen === point.index ? 1 : 0.2));
  return symbols(points.map(place), {
    customdata: points.map((point) => point.index), meta: open ? "open" : "symbols", hoverinfo: "text", hovertext: points.map(hoverText),
    marker: { symbol, color: colour, size: open ? 14 : 9, opacity, line: { color: open ? colour : colours.card, width: open ? 1.6 : 0.6 } },
  });
}

/** Lines through the steps of each kernel. */
function sweepTrace(points, place, dash, colours) {
  const [x, y] = [[], []];
  for (const name of new Set(points.map((point) => point.name))) {
    const steps = points.filter((point) => point.name === name && point.step >= 0).sort((a, b) => a.step - b.step);
    if (steps.length < 2) continue;
    for (const [px, py] of steps.map(place)) { x.push(px); y.push(py); }
    x.push(null);
    y.push(null);
  }
  return line(x, y, colours.muted, { dash, width: 1.2, meta: "sweep" });
}

function stepLabels(points, place, colours, side = "right") {
  const steps = points.filter((point) => point.step >= 0 && point.label);
  return textsAt(steps.map(place), steps.map((point) => `  ${plotlyText(shorten(point.label, 20))}  `), `middle ${side}`, colours.text, "steps");
}

function workUnit(points) {
  return distinct(points.map((point) => (point.unit === "op" ? "OP" : "FLOP"))).join(" or ") || "FLOP";
}

function complexityChart(points, colours) {
  const place = (point) => [point.traffic, point.work];
  const shown = points.filter((point) => positive(...place(point)));
  const all = machines();
  const scale = all.find((one) => positive(one.peak, one.bandwidth));
  const corners = scale ? overheadCorners(shown, scale) : [];
  const at = (seconds) => [seconds * scale.bandwidth, seconds * scale.peak];
  const range = ranges(shown.map(place), corners.map(({ seconds }) => at(seconds)));
  const single = all.filter((one) => one.precision !== "mixed");
  const traces = [...overheadTraces(corners, at, range), ...intensityTraces(range, single.length ? single : all, colours),
    sweepTrace(shown, place, "solid", colours), symbolTrace(shown, place, false, colours), stepLabels(shown, place, colours)];
  return planeOf("complexity", { traces, titles: complexityTitles(shown), range, named: shown, place, avoid: shown.map(place) }, colours);
}

function complexityTitles(points) {
  return [`Bandwidth complexity: ${plotlyText(PAGE.level_label)} traffic [B]`, `Computational complexity [${workUnit(points)}]`];
}

function timeTitles() {
  return [`Bandwidth time, ${plotlyText(PAGE.level_label)} [s]`, "Compute time [s]"];
}

/** Ranges of both axes, {x, y} in decades. */
function ranges(places, corners) {
  if (!places.length) return { x: [6, 9], y: [6, 9] };
  const side = (i) => limits(places.map((place) => place[i]), corners.map((corner) => corner[i]));
  return { x: side(0), y: side(1) };
}

function timeChart(points, colours) {
  const place = (point) => [point.bandwidth_seconds, point.compute_seconds];
  const shown = points.filter((point) => positive(...place(point)));
  const corners = overheadCorners(shown, machines()[0]);
  const values = shown.flatMap(place);
  const both = values.length ? limits(values, corners.map(({ seconds }) => seconds)) : [-6, 0];
  const range = { x: both, y: both };
  const traces = [...overheadTraces(corners, (seconds) => [seconds, seconds], range)];
  for (const power of powers(...both)) {
    const value = 10 ** power;
    traces.push(line([10 ** (both[0] - 3), value, value], [value, value, 10 ** (both[0] - 3)], colours.line, { meta: "iso" }));
  }
  traces.push(line([10 ** (both[0] - OFF), 10 ** (both[1] + OFF)], [10 ** (both[0] - OFF), 10 ** (both[1] + OFF)], colours.neutral, { width: 2, meta: "balance" }));
  traces.push(sweepTrace(shown, place, "solid", colours), symbolTrace(shown, place, false, colours), stepLabels(shown, place, colours));
  return planeOf("time", { traces, titles: timeTitles(), range, named: shown, place, avoid: shown.map(place) }, colours);
}

/** Upper and right axes: seconds at the roofs. */
function secondAxes(range, scale, colours) {
  const [across, upwards] = [Math.log10(scale.bandwidth), Math.log10(scale.peak)];
  const [below, left] = timeTitles();
  return {
    xaxis2: axis(below, range.x.map((at) => at - across), colours, { overlaying: "x", side: "top", fixedrange: true }),
    yaxis2: axis(left, range.y.map((at) => at - upwards), colours, { overlaying: "y", side: "right", fixedrange: true }),
  };
}

function bothChart(points, colours) {
  const scale = scaledBy();
  const place = (point) => [point.traffic, point.work];
  const shown = scale ? points.filter((one) => one.precision === scale.precision && positive(...place(one), ...timeAtRoofs(one))) : [];
  const corners = scale ? overheadCorners(shown, scale) : [];
  const at = (seconds) => [seconds * scale.bandwidth, seconds * scale.peak];
  const range = ranges([...shown.map(place), ...shown.map(timeAtRoofs)], corners.map(({ seconds }) => at(seconds)));
  const gaps = shown.flatMap((point) => [place(point), timeAtRoofs(point), [null, null]]);
  const traces = [
    ...overheadTraces(corners, at, range), ...intensityTraces(range, scale ? [scale] : [], colours),
    line(gaps.map(([x]) => x), gaps.map(([, y]) => y), colours.muted, { dash: "dot", width: 1.2, meta: "gap" }),
    sweepTrace(shown, place, "solid", colours), sweepTrace(shown, timeAtRoofs, "dash", colours),
    symbolTrace(shown, timeAtRoofs, true, colours), symbolTrace(shown, place, false, colours), stepLabels(shown, place, colours, "left"),
    { type: "scatter", x: [null], y: [null], xaxis: "x2", yaxis: "y2", hoverinfo: "skip", showlegend: false, meta: "second" },
  ];
  const avoid = shown.flatMap((point) => [place(point), timeAtRoofs(point)]);
  const second = scale ? secondAxes(range, scale, colours) : {};
  return planeOf("both", { traces, titles: complexityTitles(shown), range, named: shown, place, avoid, margin: WIDE_MARGIN, ...second }, colours);
}
