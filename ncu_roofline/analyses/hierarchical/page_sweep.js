/* Sweeps: lines through the dots of a kernel, step by step.  FMA mixes: the ceiling that a kernel's share of fused instructions allows. */

const MOST_MIXES = 3; // more marks than this are clutter; table and tooltip have every kernel's
const MIX_REACH = 0.12; // decades that a mark goes beyond the dots it is for

/** Rows of a sweep by kernel and precision, each in the order of its steps. */
function sweeps(rows) {
  const found = Map.groupBy(rows.filter((row) => row.kernel.step >= 0), (row) => JSON.stringify([row.kernel.kernel, row.precision]));
  const ordered = [...found.values()].map((steps) => steps.sort((a, b) => a.kernel.step - b.kernel.step));
  const name = state.isolated === null ? null : KERNELS[state.isolated].kernel;
  return ordered.filter((steps) => steps.length > 1 && (name === null || steps[0].kernel.kernel === name));
}

/** One line with arrow heads per kernel, precision and level. */
function sweepTraces({ rows, points }) {
  const visible = new Set(points);
  const found = [];
  for (const steps of sweeps(rows)) {
    for (const level of LEVELS.values()) {
      const dots = steps.map((row) => row.levels.get(level.id)).filter((point) => visible.has(point));
      if (dots.length < 2) continue;
      const color = levelColour(level.id);
      found.push(symbols(dots.map(placeOf), {
        mode: "lines+markers", meta: "sweep", customdata: dots.map((p) => p.index), hoverinfo: "skip", name: plotlyText(steps[0].kernel.kernel),
        line: { color, width: 1.2 }, marker: { symbol: "arrow", angleref: "previous", size: 9, standoff: 5, color },
      }));
    }
  }
  return found;
}

/** The label of each step beside one of its dots, as far as there is room: at the level whose dots are furthest apart, else at another. */
function stepLabels(chosen, floor, pixel, projection, colours) {
  const visible = new Set(chosen.points);
  const found = [];
  const groups = sweeps(chosen.rows);
  for (const steps of groups.length <= 8 ? groups : []) {
    const order = [...LEVELS.keys()].sort((a, b) => spread(steps, b, pixel) - spread(steps, a, pixel));
    const ends = [steps[0], steps.at(-1)]; // they matter most where room is short
    for (const row of groups.length <= 3 ? [...ends, ...steps.slice(1, -1)] : ends) {
      const text = shorten(row.kernel.label, 24);
      for (const point of order.map((level) => row.levels.get(level)).filter((each) => visible.has(each))) {
        const place = stepLabel(text, pixel(point), floor);
        if (!place) continue;
        found.push(annotation(place, text, colours.text, projection, "rgba(0,0,0,0)"));
        break;
      }
    }
  }
  return found;
}

function spread(steps, level, pixel) {
  const places = steps.map((row) => row.levels.get(level)).filter(Boolean).map(pixel);
  if (places.length < steps.length) return 0;
  return Math.min(...places.slice(1).map(([x, y], i) => Math.hypot(x - places[i][0], y - places[i][1])));
}

/** Above a dot, below it or to its right; not to its left, where the step before it stands. */
function stepLabel(text, [x, y], floor) {
  const width = textWidth(text);
  const [above, below, beside] = [y - 15, y + 15, x + width / 2];
  const places = [[x, above, 0], [x, below, 0.4], [beside, above, 0.2], [beside, below, 0.6], [beside + 9, above, 0.7], [beside + 9, below, 0.8], [beside + 17, y, 0.3]];
  const best = cheapest(places.map(([at, height, far]) => ({ x: at, y: height, far })), width, floor, ({ far }) => far);
  return best.cost < 6 ? taken(best, floor) : null;
}

/** Does a row's mix limit it: is its ceiling below what its traffic allows at each level? */
function mixLimits(row) {
  const value = row.first.mix_roof;
  return known(value) && [...row.levels.values()].every((point) => !known(point.bandwidth_roof) || value <= point.intensity * point.bandwidth_roof);
}

/** The FMA-mix ceilings that limit kernels on the chart, near ones together; those that a compute roof draws already are left out. */
function mixes({ selection: chosen, shown }) {
  const peaks = ofKind(shown, "compute").map((roof) => roof.value);
  const visible = new Set(chosen.points);
  const near = (a, b, part) => Math.abs(a - b) <= part * Math.max(a, b);
  const groups = [];
  const rows = chosen.rows.filter((row) => (state.isolated === null || row.kernel.index === state.isolated) && mixLimits(row));
  for (const row of rows.sort((a, b) => b.first.mix_roof - a.first.mix_roof)) {
    const dots = [...row.levels.values()].filter((point) => visible.has(point));
    const drawn = row.first.fma_share > 0.99 || (known(row.first.fma_share) && row.first.fma_share < 0.01); // by a compute roof, at whatever clock
    if (!dots.length || drawn || peaks.some((peak) => near(peak, row.first.mix_roof, 0.01))) continue;
    const last = groups.at(-1);
    if (!last || !near(last.rows[0].first.mix_roof, row.first.mix_roof, 0.12)) groups.push({ rows: [], xs: [] });
    groups.at(-1).rows.push(row);
    groups.at(-1).xs.push(Math.log10(Math.max(...dots.map((point) => point.intensity))));
  }
  const steepest = Math.max(...ofKind(shown, "bandwidth").map((roof) => roof.value));
  return groups.map((group) => mixMark(group, steepest, near));
}

function mixMark({ rows, xs }, steepest, near) {
  const [high, low] = [rows[0].first, rows.at(-1).first];
  const from = Math.max(Math.min(...xs) - MIX_REACH, Math.log10(high.mix_roof / steepest));
  const to = Math.max(Math.max(...xs), from) + MIX_REACH;
  const share = (point) => Number((50 * (1 + point.fma_share)).toPrecision(3));
  const value = (point) => formatValue(point.mix_roof, `${point.unit}/s`, 3);
  const texts = (shares, values) => [`FMA mix ${shares} % ${values}`, `FMA mix ${shares} %`, `mix ${shares} %`];
  if (near(high.mix_roof, low.mix_roof, 0.01)) return { from, to, values: [high.mix_roof], texts: texts(share(high), value(high)) };
  return { from, to, values: [low.mix_roof, high.mix_roof], texts: texts(`${share(low)} to ${share(high)}`, `${value(low)} to ${value(high)}`) };
}

/** Those to draw: none where the reader has turned them off or where they are many. */
function shownMixes(drawn) {
  const found = state.mixes ? mixes(drawn) : [];
  return found.length <= MOST_MIXES ? found : [];
}

function mixTraces(drawn, colours) {
  const look = { width: 1.6, dash: "3px,2px", meta: "mix" };
  return shownMixes(drawn).flatMap(({ from, to, values, texts: [name] }) =>
    values.map((value) => line([10 ** from, 10 ** to], [value, value], colours.neutral, { ...look, name: plotlyText(name) })));
}

/** From where to where and at which height a mix stands, in pixels. */
function mixLine({ from, to }, value, projection) {
  const [[left, y], [right]] = [from, to].map((at) => projection.pixel(at, Math.log10(value)));
  return [left, right, y];
}

/** The lines of the mixes are short: a text over one would hide it. */
function markMixes(drawn, floor) {
  for (const mix of shownMixes(drawn)) {
    for (const [left, right, y] of mix.values.map((value) => mixLine(mix, value, drawn.projection))) {
      for (const [x] of along((left + right) / 2, y, right - left, 0)) floor.mark(floor.dots, x, y, 1);
    }
  }
}

/** Where a text of some width may stand beside a mark from `left` to `right`: behind it, along it, before it, and a little further away. */
function mixPlaces([left, right, y], width) {
  const [behind, before] = [right + 5 + width / 2, left - 5 - width / 2];
  const off = [4, -4, 14, -14].flatMap((down) => [[behind + 12, y + down], [before - 12, y + down]]);
  const places = [[behind, y], [right - width / 2, y - 9], [right - width / 2, y + 10], [before, y], [left + width / 2, y - 12], [left + width / 2, y + 12], ...off];
  return places.map(([x, height], index) => ({ x, y: height, far: index / 4 }));
}

function mixLabels(drawn, floor, colours) {
  return shownMixes(drawn).flatMap((mix) => {
    const at = mixLine(mix, mix.values.at(-1), drawn.projection);
    const found = mix.texts.map((text, shorter) => ({ text, ...cheapest(mixPlaces(at, textWidth(text)), textWidth(text), floor, ({ far }) => far + 2 * shorter) }));
    const best = found.reduce((a, b) => (b.cost < a.cost ? b : a));
    return best.cost === Infinity ? [] : [annotation(taken(best, floor), best.text, colours.neutral, drawn.projection, `${colours.card}${FOG}`)];
  });
}

/** The switch beside the roofs; it says why nothing is drawn where the ceilings are many. */
function mixControl(colours) {
  const count = mixes(current).length;
  if (!count) return [];
  const many = count > MOST_MIXES;
  const box = { disabled: many, "data-mix": "all", onchange: (event) => change(() => { state.mixes = event.target.checked; }) };
  const more = many ? ` ${count} differ: choose a kernel` : " of the kernels";
  return [element("h3", {}, "Kernels' ceilings"), lineSwitch(state.mixes && !many, box, colours.neutral, "4 2", "FMA mix", more)];
}

/** Table columns: the share of fused instructions, and performance over the ceiling it allows. */
function mixColumns() {
  const ratio = (row) => (known(row.first.mix_roof) && row.first.mix_roof > 0 ? row.first.performance / row.first.mix_roof : null);
  const blank = (value) => (known(value) ? formatPercent(value) : "");
  return [
    numberColumn("fma_share", "FMA", (row) => row.first.fma_share, (row) => blank(row.first.fma_share), { title: PAGE.columns.fma_share[1] }),
    numberColumn("mix_fraction", "% of mix", ratio, (row) => blank(ratio(row)), { title: `performance over the ${PAGE.columns.mix_roof[1]}` }),
  ];
}
