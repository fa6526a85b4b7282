/* The first look: the stretch of the axes that the verdicts need, and arrows at the edge for dots that it leaves out. */

const REACH = 1; // decades beyond what carries verdicts that other dots of the same kernels may stretch the axes
const RIM = 0.12; // decades between such a dot and the edge
const MATTER = { kernels: 20, share: 0.01 }; // those of some time, else those that rank first, decide
const MOST_EDGES = 12;

/** Ridge points: every bandwidth with the highest compute roof of each precision. */
function ridges(roofs) {
  const pipes = Map.groupBy(ofKind(roofs, "compute"), (roof) => `${roof.precision} ${roof.origin}`);
  const highest = [...pipes.values()].map((same) => same.reduce((a, b) => (a.value < b.value ? b : a)));
  return highest.flatMap((compute) =>
    ofKind(roofs, "bandwidth")
      .filter((bandwidth) => bandwidth.origin === compute.origin)
      .map((bandwidth) => ({ x: compute.value / bandwidth.value, y: compute.value, compute, bandwidth })),
  );
}

/** The dot of a row that carries its verdict: at the level that limits it; where none does, the one nearest to a bandwidth of the chain. */
function leading(row) {
  const binding = [row.kernel.limit, row.first.binds].find((id) => row.levels.has(id));
  if (binding) return row.levels.get(binding);
  const chain = [...row.levels.values()].filter((point) => LEVELS.get(point.level).chain && drawable(point));
  return chain.length ? chain.reduce((a, b) => (b.intensity < a.intensity ? b : a)) : row.first;
}

/** The kernels whose dots decide how far the axes reach. */
function mattering(kernels) {
  const long = kernels.filter((kernel) => kernel.time_share >= MATTER.share);
  return new Set(long.length ? long : kernels.slice(0, MATTER.kernels));
}

/** From the lowest to the highest of `values` with `air` around them, and on to those of `others` that are not far beyond; null of nothing. */
function stretch(values, others, air) {
  const span = (list) => list.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  if (!values.length && !others.length) return null;
  const [low, high] = span(values.length ? values : others);
  const near = others.filter((value) => value >= low - REACH && value <= high + REACH);
  return span([low - air[0], high + air[1], ...near.flatMap((value) => [value - RIM, value + RIM])]);
}

/** The ranges of the first look, in decades: the dots that carry the verdicts of kernels that matter, the roofs, some air. */
function homeRanges(roofs) {
  const kernels = ORDER.filter((kernel) => onStage(kernel));
  const main = kernels.map(mainRow).filter(Boolean);
  const those = mattering(main.map((row) => row.kernel));
  const parts = ROWS.filter((row) => PARTS.has(row.precision) && state.precisions.has(row.precision)); // the walls are for them
  const matter = [...main, ...parts].filter((row) => those.has(row.kernel));
  const leaders = matter.map(leading).filter(drawable);
  const points = (leaders.length ? matter : main).flatMap((row) => [...row.levels.values()]).filter(drawable);
  const corners = ridges(roofs);
  const decades = (values) => values.map(Math.log10);
  const walls = ofKind(roofs, "wall").map((roof) => roof.value);
  const tops = ofKind(roofs, "compute").map((roof) => (roof.wide ? roof.value_max : roof.value));
  const x = stretch(decades([...leaders.map((p) => p.intensity), ...corners.map((ridge) => ridge.x), ...walls]), decades(points.map((p) => p.intensity)), [0.85, 0.95]) || [-2, 3];
  const y = stretch(decades([...leaders.map((p) => p.performance), ...tops]), decades(points.map((p) => p.performance)), [points.length ? 0.45 : 3, 0.35]) || [9, 14];
  return { x: x[1] - x[0] < 2.5 ? [x[0] - 0.8, x[1] + 0.6] : x, y: y[1] - y[0] < 2 ? [y[0] - 0.8, y[1]] : y };
}

/** Dots beyond the first look, those of the kernels that rank first: where their arrows stand, and their value there. */
function edges({ selection: chosen, projection }) {
  if (state.view) return [];
  const found = chosen.points.flatMap((point) => {
    const [x, y] = pixelOf(point, projection);
    const [left, right] = [x < 0, x > projection.width];
    if (!left && !right && y >= 0 && y <= projection.height) return [];
    const at = [Math.min(Math.max(x, 9), projection.width - 9), Math.min(Math.max(y, 9), projection.height - 9)];
    const symbol = left ? "triangle-left" : right ? "triangle-right" : y < 0 ? "triangle-up" : "triangle-down";
    const unit = PAGE.counted[point.unit]?.unit || PAGE.counted[PAGE.unit].unit;
    const text = left || right ? `${plainNumber(point.intensity)} ${PAGE.units[unit][0]}` : formatColumn("performance", point);
    return [{ point, at, symbol, text }];
  });
  // One arrow for those that stand together.
  const groups = [...Map.groupBy(found, ({ symbol, at }) => [symbol, ...at.map((one) => Math.round(one / 14))].join(" ")).values()];
  return groups.slice(0, MOST_EDGES).map(([edge, ...others]) => ({ ...edge, text: others.length ? `${others.length + 1} dots, ${edge.text}` : edge.text }));
}

function edgeTraces(drawn) {
  const found = edges(drawn);
  if (!found.length) return [];
  const places = found.map((edge) => drawn.projection.data(...edge.at).map((at) => 10 ** at));
  const marker = { symbol: found.map((edge) => edge.symbol), color: found.map((edge) => levelColour(edge.point.level)), size: 11 };
  return [symbols(places, { meta: "edge", customdata: found.map((edge) => edge.point.index), marker })];
}

function edgeLabels(drawn, floor, colours) {
  return edges(drawn).flatMap((edge) => {
    floor.mark(floor.dots, ...edge.at, 6);
    const place = nameLabel(edge.text, [edge.at], floor, { leaders: false, limit: 3 * CLEAR });
    return place ? [annotation(place, edge.text, colours.muted, drawn.projection, "rgba(0,0,0,0)")] : [];
  });
}
