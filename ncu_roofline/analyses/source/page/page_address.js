/* The reader's choices as names and values of the address, and back: what is not known here is passed over. */

function choices() {
  const { chosen } = state;
  const found = {
    kernel: state.launch ? String(state.launch) : "",
    by: state.by === measuresOf(view.launch)[0]?.id ? "" : state.by,
    file: state.file === (filesOf()[0] || [null])[0] ? "" : fileName(state.file),
    loop: chosen?.loop === undefined ? "" : String(chosen.loop),
    line: chosen?.line === undefined ? "" : lineAddress(chosen),
    at: chosen?.row === undefined ? "" : addressOf(chosen.row),
    theme: state.theme,
  };
  return Object.entries(found).filter(([, value]) => value);
}

/** A line as its number, that of code without one with the number of its function. */
function lineAddress({ line, of }) {
  return line < 0 ? `${line}.${functionNumber(of)}` : String(line);
}

function functionNumber(place) {
  return view.launch.functions.findIndex((one) => one.function === place);
}

/** An instruction as number of its function and offset in it, or as address where the function is not known. */
function addressOf(row) {
  const { function: functions, offset, address } = view.instructions;
  if (offset[row] < 0) return address[row];
  return `${functionNumber(functions[row])}.${offset[row].toString(16)}`;
}

/** The state that an address describes; sets the view of its launch. */
function stateOf(link) {
  const get = (name) => link.get(name) || "";
  const theme = ["light", "dark"].includes(get("theme")) ? get("theme") : "";
  if (!PAGE.launches.length) return { theme };
  const launch = /^\d{1,6}$/.test(get("kernel")) && PAGE.launches[Number(get("kernel"))] ? Number(get("kernel")) : 0;
  state = { ...freshState(), launch, theme };
  view = viewOf(PAGE.launches[launch]);
  const measures = measuresOf(view.launch);
  state.by = (measures.find((measure) => measure.id === get("by")) || measures[0] || PAGE.measures[0]).id;
  const files = filesOf().map(([file]) => file);
  state.file = files.find((file) => fileName(file) === get("file")) ?? files[0] ?? null;
  state.chosen = chosenOf(get);
  return state;
}

function chosenOf(get) {
  const loop = [...view.loops.keys()].find((id) => String(id) === get("loop"));
  if (loop !== undefined) return { loop };
  const row = get("at") ? Array.from({ length: view.count }, (_, index) => index).find((index) => addressOf(index) === get("at")) : undefined;
  if (row !== undefined) return { row };
  const known = get("line") && [...view.lines.values()].find((line) => lineAddress(line) === get("line") && (line.line < 0 || line.file === state.file));
  return known ? targetOf(known) : null;
}
