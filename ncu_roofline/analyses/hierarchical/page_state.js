/* What the page knows (kernels, points, roofs) and what the reader has chosen; everything else is drawn from these two. */

const MANY_KERNELS = 300; // more than this and the page starts with the longest ones: nobody can tell so many dots apart

const KERNELS = unpack(PAGE.kernels);
PAGE.strips.forEach((strip, index) => { // of a row of one launch only what was sampled of that
  if (strip && [-1, strip.launch].includes(KERNELS[index].launch)) KERNELS[index].strip = { ...strip, bands: strip.bands.filter(({ values }) => values.some(known)) };
});
const POINTS = unpack(PAGE.points, (owner) => KERNELS[owner]); // what a point doesn't say is its kernel's
const ROOFS = unpack(PAGE.roofs);
const SWEPT = KERNELS.some((kernel) => kernel.step >= 0);
const JUDGED = KERNELS.some((kernel) => kernel.verdict);
const OTHER = "other"; // what an embedded chart gives without saying of what
const LEVELS = new Map(PAGE.levels.map((level) => [level.id, { ...level, label: level.label || OTHER }]));
/** A level's colour on the ground of the theme. */
function levelColour(id) {
  return tone(LEVELS.get(id).light, LEVELS.get(id).dark);
}

const PRECISIONS = new Map(PAGE.precisions.map((precision) => [precision.id, precision.label || OTHER]));
const APART = new Set(PAGE.precisions.filter((precision) => precision.apart).map((precision) => precision.id)); // of other transactions than the rest
const PARTS = new Set(PAGE.precisions.filter((precision) => precision.part).map((precision) => precision.id)); // some kind of instruction alone

/** Precisions shown at first: what goes on one pair of axes. */
function plainPrecisions() {
  return [...PRECISIONS.keys()].filter((id) => id !== "mixed" && !APART.has(id));
}
// How the symbols of each precision are filled; a kind of instruction that is a part of another is always open.
const FREE = PARTS.size ? FILLS.filter((fill) => fill !== "open") : FILLS;
const WHOLE = [...PRECISIONS.keys()].filter((id) => !PARTS.has(id));
const FILL_OF = new Map([...PRECISIONS.keys()].map((id) => [id, PARTS.has(id) ? "open" : FREE[WHOLE.indexOf(id) % FREE.length]]));

// One row per kernel and precision: its points by level.
const ROWS = [...Map.groupBy(POINTS, (point) => `${point.owner}/${point.precision}`).values()].map((points, index) => (
  { index, kernel: KERNELS[points[0].owner], precision: points[0].precision, first: points[0], levels: new Map(points.map((point) => [point.level, point])) }
));
const ROWS_OF = Map.groupBy(ROWS, (row) => row.kernel.index);

// Kernels that have points, those that could save most time first; each gets the marker of its name.
const ORDER = PAGE.order.filter((index) => ROWS_OF.has(index)).map((index) => KERNELS[index]);
const SHAPE_OF = new Map(distinct(ORDER.map((kernel) => kernel.kernel)).map((name, index) => [name, index]));
ORDER.forEach((kernel, rank) => Object.assign(kernel, { rank, shape: SHAPE_OF.get(kernel.kernel) }));

function drawable(point) {
  return known(point.intensity) && point.intensity > 0 && known(point.performance) && point.performance > 0;
}

/** The row of a kernel that carries its verdict, among the chosen precisions: that of the pipe that limits it, else the one with most work. */
function mainRow(kernel) {
  const rows = ROWS_OF.get(kernel.index).filter((row) => state.precisions.has(row.precision));
  const single = rows.filter((row) => row.precision !== "mixed");
  const among = single.length ? single : rows;
  const limiting = among.filter((row) => kernel.limit === row.precision || kernel.limit.startsWith(`${row.precision}.`));
  return (limiting.length ? limiting : among).reduce((a, b) => (a && !(b.first.work > a.first.work) ? a : b), null);
}

/** Does another chosen precision say the same of the kernel under a shorter name, as "tensor.fp16" of "tensor.fp16.acc16"? */
function saidByAnother(row) {
  const near = (a, b) => Math.abs(a - b) <= 1e-3 * Math.abs(b);
  return ROWS_OF.get(row.kernel.index).some(({ precision, first }) => state.precisions.has(precision) && row.precision.startsWith(`${precision}.`)
    && near(first.performance, row.first.performance) && (first.binding_fraction === row.first.binding_fraction || near(first.binding_fraction, row.first.binding_fraction)));
}

const RANKED = [...POINTS].sort((a, b) => KERNELS[a.owner].rank - KERNELS[b.owner].rank);
const TOPS = [0, 5, 10, 25, 50, 100, 300, 1000].filter((size) => size < ORDER.length); // 0: all
const DEVICES = distinct([...ORDER.map((kernel) => kernel.device), ...ROOFS.map((roof) => roof.device), ...PAGE.devices]);
const SOURCES = distinct(POINTS.map((point) => point.source));
const ORIGINS = distinct(ROOFS.map((roof) => roof.origin)).sort(); // measured before theoretical

/** What the roofs of an origin are called: what others published was not measured here. */
function originName(origin) {
  if (origin === "unused") return origin;
  const names = ROOFS.filter((roof) => roof.origin === origin).map((roof) => (roof.source === "published" ? "published" : origin));
  return distinct(names).sort().join(" or ");
}

function freshState() {
  const plain = plainPrecisions();
  return {
    device: DEVICES[0],
    report: "",
    precisions: new Set(plain.length ? plain : PRECISIONS.keys()),
    levels: new Set(LEVELS.keys()),
    sources: new Set(SOURCES),
    roofs: new Map(), // roof key -> shown, where the reader has said so
    mixes: true, // FMA-mix ceilings shown, as long as they are few
    query: "",
    regex: false,
    offered: false, // the address has the query as a regular expression
    top: ORDER.length > MANY_KERNELS ? 100 : 0,
    isolated: null, // position in KERNELS
    view: null, // zoomed ranges {x, y} in decades
    theme: "", // chosen by the reader
    sort: SWEPT ? { column: "step", descending: false } : { column: JUDGED ? "recoverable" : "seconds", descending: true },
    rows: FIRST_ROWS, // of the table, at most
  };
}

/** What another GPU changes of the state. */
function onGpu(device) {
  return { device, report: "", view: null, isolated: null, roofs: new Map() };
}

/** A test of names from the filter box; null where it is no regular expression. */
function nameTest() {
  const query = state.query.trim();
  if (!query) return () => true;
  if (!state.regex) {
    const words = query.toLowerCase();
    return (kernel) => [kernel.kernel, kernel.name, kernel.nvtx].some((text) => text.toLowerCase().includes(words));
  }
  try {
    const pattern = new RegExp(query, "i");
    return (kernel) => [kernel.kernel, kernel.name, kernel.nvtx].some((text) => pattern.test(text));
  } catch {
    return null;
  }
}

function onStage(row) {
  return row.device === state.device && (!state.report || row.report === state.report);
}

/** Kernels that pass the filters, ranked: {kernels, of}, where `of` counts those before the top-N cut. */
function chosenKernels() {
  const test = nameTest() || (() => true);
  const owners = new Set(ROWS.filter((row) => state.precisions.has(row.precision)).map((row) => row.kernel.index));
  const found = ORDER.filter((kernel) => onStage(kernel) && owners.has(kernel.index) && test(kernel));
  return { kernels: state.top ? found.slice(0, state.top) : found, of: found.length };
}

/** The same kernels as rows and points of the chosen precisions, levels and sources. */
function selection() {
  const { kernels, of } = chosenKernels();
  const owners = new Set(kernels.map((kernel) => kernel.index));
  const among = ROWS.filter((row) => owners.has(row.kernel.index) && state.precisions.has(row.precision));
  const again = new Set(among.filter((row) => row.precision.includes(".") && !PARTS.has(row.precision) && saidByAnother(row)));
  const rows = among.filter((row) => !again.has(row));
  const twice = new Set([...again].map((row) => `${row.kernel.index}/${row.precision}`));
  const points = RANKED.filter(
    (p) => !twice.has(`${p.owner}/${p.precision}`) && owners.has(p.owner) && state.precisions.has(p.precision) && state.levels.has(p.level) && state.sources.has(p.source),
  );
  return { kernels, of, rows, points: points.filter(drawable), hidden: points.filter((point) => !drawable(point)).length };
}

/** Do a point's precision and a roof's speak of the same pipe?  "tensor.fp16" covers "tensor.fp16.wgmma" and the reverse. */
function samePipe(a, b) {
  return a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
}

/** Precisions whose roofs matter now; a mixed dot brings those of its parts. */
function roofPrecisions() {
  const found = new Set(state.precisions);
  if (found.delete("mixed")) {
    const mixed = new Set(ROWS.filter((row) => row.precision === "mixed").map((row) => row.kernel.index));
    ROWS.filter((row) => mixed.has(row.kernel.index) && row.precision !== "mixed").forEach((row) => found.add(row.precision));
  }
  return found.size || POINTS.length ? [...found] : distinct(ROOFS.map((roof) => roof.precision));
}

/** Does a bandwidth or wall go with the chosen precisions?  One of its own goes with that alone, a wall with all instructions, too. */
function goesWith(roof, precisions) {
  if (precisions.some((p) => APART.has(p))) return precisions.includes(roof.precision) || (!roof.precision && !precisions.every((p) => APART.has(p)));
  return !roof.precision || precisions.includes(roof.precision) || (roof.kind === "wall" && !APART.has(roof.precision));
}

function roofKey(roof) {
  return [roof.kind, roof.roof, roof.origin, roof.clock_basis, roof.source].join("|");
}

/** Roofs of the device and the chosen precisions, those of several reports merged; each says whether it is shown. */
function currentRoofs() {
  const precisions = roofPrecisions();
  const relevant = (roof) => (roof.kind === "compute" ? !roof.precision || precisions.some((p) => samePipe(p, roof.precision)) : goesWith(roof, precisions));
  const mine = ROOFS.filter((roof) => onStage(roof) && positive(roof.value) && relevant(roof));
  const merged = [...Map.groupBy(mine, roofKey)].map(([key, roofs]) => mergeRoofs(key, roofs));
  for (const roof of merged) {
    roof.shown = state.roofs.has(roof.key) ? state.roofs.get(roof.key) : isDefault(roof, merged) && !isOutdone(roof, merged);
  }
  return merged;
}

const WIDE = 1.01; // roofs whose launches differ by more are bands around their line

/** A roof of several reports: the median of its values, their range, and whether that is wide enough to be seen. */
function mergeRoofs(key, roofs) {
  const values = roofs.map((roof) => roof.value).sort((a, b) => a - b);
  const middle = values.length / 2;
  const low = Math.min(...roofs.map((roof) => (known(roof.value_min) ? roof.value_min : roof.value)));
  const high = Math.max(...roofs.map((roof) => (known(roof.value_max) ? roof.value_max : roof.value)));
  const wide = high > WIDE * low;
  return { ...roofs[0], key, value: (values[Math.ceil(middle - 1)] + values[Math.floor(middle)]) / 2, value_min: low, value_max: high, wide, merged: roofs.length };
}

/** The precisions that have compute roofs. */
function pipesOf(roofs) {
  return distinct(ofKind(roofs, "compute").map((roof) => roof.precision));
}

/** The same pipe's or level's roofs, of all origins. */
function rivalsOf(roof, all) {
  return all.filter((other) => other.kind === roof.kind && other.precision === roof.precision && other.level === roof.level);
}

/** Shown at first: the levels' bandwidths and, of each precision, all compute roofs; with several precisions only the highest; no unused one. */
function isDefault(roof, all) {
  if (roof.origin === "unused") return false;
  if (roof.kind === "bandwidth") return !roof.level || state.levels.has(roof.level);
  if (roof.kind === "wall" || pipesOf(all).length < 2) return true;
  return rivalsOf(roof, all).every((other) => other.origin !== roof.origin || other.value <= roof.value);
}

/** With many precisions a theoretical roof stays away at first where a measured one is known. */
function isOutdone(roof, all) {
  const crowded = pipesOf(all).length > 2 && roof.kind !== "wall";
  return crowded && roof.origin === "theoretical" && rivalsOf(roof, all).some((other) => other.origin === "measured");
}

/* The reader's choices as the address has them. */

const CHOICES = {
  gpu: oneOf("device", DEVICES),
  report: oneOf("report", distinct(KERNELS.map((kernel) => kernel.report))),
  precision: someOf("precisions", [...PRECISIONS.keys()]),
  level: someOf("levels", [...LEVELS.keys()]),
  source: someOf("sources", SOURCES),
  q: QUERY,
  regex: { of: "offered", write: (offered, { regex }) => (regex || offered ? "1" : ""), read: (text) => text === "1" }, // one of a stranger may run for years: only the reader starts it
  top: oneOf("top", TOPS),
  sort: SORT,
  mixes: { of: "mixes", write: (shown) => (shown ? "" : "0"), read: (text) => text !== "0" },
  view: { of: "view", write: (view) => (view ? [...view.x, ...view.y].map((at) => Number(at.toFixed(3))).join() : ""), read: knownView },
  kernel: { of: "isolated", write: (index) => (index === null ? "" : KERNELS[index].kernel), read: (name) => namesakes(name)[0]?.index },
  nth: {
    of: "isolated",
    write: (index) => (index === null ? "0" : String(namesakes(KERNELS[index].kernel).indexOf(KERNELS[index]))),
    read: (text, { isolated }) => (isolated === null ? null : namesakes(KERNELS[isolated].kernel)[Number(text)]?.index ?? null),
  },
  theme: THEME,
  with: roofsThat(true),
  without: roofsThat(false),
};

/** Some of all ids, in their order. */
function someOf(of, ids) {
  const read = (text) => {
    const found = text.split(",").filter((id) => ids.includes(id));
    return found.length ? new Set(found) : undefined;
  };
  return { of, read, write: (set) => ids.filter((id) => set.has(id)).join() };
}

/** The keys of roofs that the reader has turned on, or off. */
function roofsThat(shown) {
  return {
    of: "roofs",
    write: (roofs) => [...roofs].filter(([, on]) => on === shown).map(([key]) => key),
    read: (_, { roofs }, keys) => new Map([...roofs, ...keys.filter((key) => ROOFS.some((roof) => roofKey(roof) === key)).map((key) => [key, shown])]),
  };
}

function namesakes(name) {
  return ORDER.filter((kernel) => kernel.kernel === name);
}

const LEAST_SPAN = 0.002; // decades: labels and ticks of less are all the same

function knownView(text) {
  const numbers = text.split(",").map(Number);
  const wide = numbers[1] - numbers[0] >= LEAST_SPAN && numbers[3] - numbers[2] >= LEAST_SPAN;
  const fits = numbers.length === 4 && numbers.every((at) => Math.abs(at) <= 40) && wide;
  return fits ? { x: numbers.slice(0, 2), y: numbers.slice(2) } : null;
}
