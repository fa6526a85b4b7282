/* What the reader sees: one launch with its indices, a file, what the heat bars show, and what is chosen. */

PAGE.units.count = ["", true];
const OUTSIDE = "outside of the report\u2019s code";
const NO_LINE = -1; // lines of code of the report without source line, and of what is outside of its code
const BEYOND = -2;
// The state is {launch, file, by, chosen, theme}; chosen: null, {loop}, {file, line} or {row}.
let view = null; // of the launch: what is looked up again and again

const text = (place) => PAGE.texts[place];
const fileName = (file) => PAGE.files[file].label;
const keyOf = (file, line, of = 0) => (line < 0 ? `${line} of ${of}` : `${file}:${line}`); // of: the function of what has no line
const hex = (offset) => `0x${offset.toString(16)}`;

/** The launch with its indices: lines by file and line, instructions by line, loops by id, stalls by instruction. */
function viewOf(launch) {
  const { instructions } = launch;
  const made = {
    launch, instructions, count: instructions.offset.length, lines: new Map(), own: new Map(), inlined: new Map(), loops: new Map(), stalls: new Map(), chains: new Map(), knows: {},
  };
  const nothing = PAGE.measures.map(() => null);
  for (const caller of launch.callers) made.lines.set(keyOf(caller.file, caller.line), { ...caller, shares: nothing });
  for (const line of launch.lines) made.lines.set(keyOf(line.file, line.line, line.of), line);
  for (const loop of launch.loops) made.loops.set(loop.loop, loop);
  for (let row = 0; row < made.count; row += 1) {
    const own = keyOf(instructions.file[row], instructions.offset[row] < 0 ? BEYOND : instructions.line[row], instructions.owner[row]);
    put(made.own, own, row);
    for (const [file, line] of instructions.inlined[row] || []) if (keyOf(file, line) !== own) put(made.inlined, keyOf(file, line), row);
  }
  launch.stalls.row.forEach((row, index) => put(made.stalls, row, [launch.stalls.reason[index], launch.stalls.samples[index]]));
  return made;
}

function put(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

/** Of what instructions were executed: of threads where nobody counted warps. */
function countedName() {
  return view.launch.counted === "threads" ? "thread instructions" : "warp instructions";
}

/** The loops around a place, innermost first. */
function chainOf(loop) {
  if (!view.chains.has(loop)) {
    const chain = [];
    for (let id = loop; view.loops.has(id) && id >= 0 && !chain.includes(id); id = view.loops.get(id).parent) chain.push(id);
    view.chains.set(loop, chain);
  }
  return view.chains.get(loop);
}

/** What a heat bar shows of an entry: its own share and that of code inlined there. */
function heatOf(entry, by = state.by) {
  const index = PAGE.measures.findIndex((measure) => measure.id === by);
  return { own: entry.shares[index], within: entry.within ? entry.within[index] : null };
}

function shareOfRow(row) {
  return view.instructions.shares[PAGE.measures.findIndex((measure) => measure.id === state.by)][row];
}

/** Measures of which anything is known in a launch. */
function measuresOf(launch) {
  return PAGE.measures.filter((_, index) => [...launch.lines, ...launch.loops, ...launch.functions].some((entry) => entry.shares[index] > 0));
}

/** Files with counts, the hottest first; 0 to n, without the code that has no line. */
function filesOf(by = state.by) {
  const lined = [...view.lines.values()].filter((line) => line.line > 0).sort((a, b) => a.file - b.file);
  return [...sumsBy(lined, (line) => line.file, (line) => heatOf(line, by).own)];
}

/** What is chosen of a line. */
function targetOf({ file, line, of }) {
  return line < 0 ? { file, line, of } : { file, line };
}

/** What is chosen as sets: instructions, lines. */
function lit() {
  const { chosen } = state;
  const [rows, lines] = [new Set(), new Set()];
  if (!chosen) return { rows, lines };
  const { file, line, inlined, loop } = view.instructions;
  if (chosen.file !== undefined) {
    const key = keyOf(chosen.file, chosen.line, chosen.of);
    [...(view.own.get(key) || []), ...(view.inlined.get(key) || [])].forEach((row) => rows.add(row));
    lines.add(key);
    return { rows, lines };
  }
  if (chosen.loop !== undefined) {
    for (let row = 0; row < view.count; row += 1) if (chainOf(loop[row]).includes(chosen.loop) || loop[row] === chosen.loop) rows.add(row);
  } else rows.add(chosen.row);
  for (const row of rows) {
    lines.add(keyOf(file[row], line[row]));
    (inlined[row] || []).forEach((place) => lines.add(keyOf(...place)));
  }
  return { rows, lines };
}

/** The row of a set in which most happened. */
function hottest(rows) {
  return [...rows].reduce((best, row) => (best === null || (shareOfRow(row) || 0) > (shareOfRow(best) || 0) ? row : best), null);
}

function loopName(loop) {
  if (loop.loop === -1) return "code in no loop";
  if (loop.loop < -1) return OUTSIDE;
  if (loop.first > 0) return `${fileName(loop.file)}:${loop.first}${loop.last > loop.first ? `\u2013${loop.last}` : ""}`;
  return `${hex(loop.header)}\u2013${hex(loop.end)}`;
}

/** Its lines alone, where all loops are of one file. */
function shortLoopName(loop) {
  const alone = new Set([...view.loops.values()].filter((other) => other.first > 0).map((other) => other.file)).size < 2;
  return alone && loop.loop >= 0 && loop.first > 0 ? `line${loop.last > loop.first ? "s" : ""} ${loopName(loop).slice(fileName(loop.file).length + 1)}` : loopName(loop);
}

/** A small number, such as an intensity or a number of lanes, without unit; nothing where it is not known. */
function plainNumber(value) {
  return known(value) ? String(Number(value.toPrecision(3))) : "";
}

/** A loop with its number, as findings, texts and tables name it. */
function numberedLoop(loop, name = loopName(loop)) {
  return loop.loop >= 0 ? `${loop.loop}: ${name}` : name;
}

/** The readable name of a function. */
function calledName(place) {
  return view.launch.functions.find((one) => one.function === place)?.name || text(place);
}

function lineName(file, line, of = 0) {
  if (line === NO_LINE) return `${calledName(of)}, without source line`;
  return line < 0 ? OUTSIDE : `${fileName(file)}:${line}`;
}
