/* What the page knows (symbols, machines) and what the reader has chosen. */

const MACHINES = unpack(PAGE.machines);
const POINTS = unpack(PAGE.points);
const DEVICES = [...new Set(POINTS.map((point) => point.device))];
const SHAPE_OF = shapesByTime();

/** Kernel name -> number of its marker, the kernel with the longest time first. */
function shapesByTime() {
  const seconds = new Map();
  for (const point of POINTS) seconds.set(point.name, (seconds.get(point.name) || 0) + (point.seconds || 0));
  const names = [...seconds.keys()].sort((a, b) => seconds.get(b) - seconds.get(a));
  return new Map(names.map((name, index) => [name, index]));
}

function freshState() {
  return { device: DEVICES[0], precision: "", query: "", chosen: null, sort: { column: "seconds", descending: true }, rows: FIRST_ROWS, theme: "" };
}

/** Symbols of the chosen GPU that pass the filter. */
function shownPoints() {
  return POINTS.filter((point) => point.device === state.device && passesQuery(point.name));
}

/** The machine of each precision of the chosen GPU at the level of the view, the one with the most time first. */
function machines() {
  const seconds = new Map();
  for (const point of POINTS.filter((each) => each.device === state.device)) {
    seconds.set(point.precision, (seconds.get(point.precision) || 0) + (point.seconds || 0));
  }
  const mine = MACHINES.filter((one) => one.device === state.device && one.level === PAGE.level && seconds.has(one.precision));
  return mine.sort((a, b) => seconds.get(b.precision) - seconds.get(a.precision));
}

/** The machine that the 4D chart is scaled by; undefined where no roof is known. */
function scaledBy() {
  const all = machines().filter((one) => positive(one.peak, one.bandwidth));
  return all.find((one) => one.precision === state.precision) || all[0];
}

function boundColour(bound) {
  return tone(...PAGE.bounds[bound].slice(1));
}

/** Where the open symbol stands on the primary axes: what the times would do at the kernel's own roofs. */
function timeAtRoofs(point) {
  return [point.bandwidth_seconds * point.bandwidth_roof, point.compute_seconds * point.compute_roof];
}

/** Fewest and most launches of a symbol. */
function launchCounts(points) {
  const counts = points.map((point) => point.invocations);
  return counts.length ? [...new Set([Math.min(...counts), Math.max(...counts)])] : [];
}

const CHOICES = {
  gpu: oneOf("device", DEVICES),
  precision: oneOf("precision", Object.keys(PAGE.precisions)),
  q: QUERY,
  sort: SORT,
  symbol: { of: "chosen", read: (text, { device }) => POINTS.find((point) => String(point.index) === text && point.device === device)?.index },
  theme: THEME,
};
