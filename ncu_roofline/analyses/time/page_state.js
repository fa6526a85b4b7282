/* What the page knows (symbols, machines) and what the reader has chosen. */

const MACHINES = unpack(PAGE.machines);
const POINTS = unpack(PAGE.points);
const DEVICES = distinct(POINTS.map((point) => point.device));
// Kernel name -> number of its marker, the kernel with the longest time first.
const SHAPE_OF = new Map([...sumsBy(POINTS, (point) => point.name, (point) => point.seconds).keys()].map((name, index) => [name, index]));

function freshState() {
  return { device: DEVICES[0], precision: "", query: "", chosen: null, sort: { column: "seconds", descending: true }, rows: FIRST_ROWS, theme: "" };
}

/** Symbols of the chosen GPU that pass the filter. */
function shownPoints() {
  return POINTS.filter((point) => point.device === state.device && passesQuery(point.name));
}

/** The machine of each precision of the chosen GPU at the level of the view, the one with the most time first. */
function machines() {
  const here = ({ device }) => device === state.device;
  const times = sumsBy(POINTS.filter(here), (point) => point.precision, (point) => point.seconds);
  return [...times.keys()].flatMap((precision) => MACHINES.filter((one) => here(one) && one.level === PAGE.level && one.precision === precision));
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

const CHOICES = {
  gpu: oneOf("device", DEVICES),
  precision: oneOf("precision", Object.keys(PAGE.precisions)),
  q: QUERY,
  sort: SORT,
  symbol: { of: "chosen", read: (text, { device }) => POINTS.find((point) => String(point.index) === text && point.device === device)?.index },
  theme: THEME,
};
