/* The reader's choices as names and values of the address, and back: what is not known here is passed over. */

/** Some of all ids; null where it is what a fresh page has. */
function chosenIds(set, fresh) {
  return set.size === fresh.size && [...set].every((id) => fresh.has(id)) ? null : [...set].join(",");
}

/** What differs from a fresh page. */
function choices() {
  const fresh = freshState();
  const kernel = state.isolated === null ? null : KERNELS[state.isolated];
  const found = {
    gpu: state.device === fresh.device ? null : state.device,
    report: state.report || null,
    precision: chosenIds(state.precisions, fresh.precisions),
    level: chosenIds(state.levels, fresh.levels),
    source: chosenIds(state.sources, fresh.sources),
    q: state.query || null,
    regex: state.regex || state.offered ? "1" : null,
    top: state.top === fresh.top ? null : String(state.top),
    sort: state.sort.column === fresh.sort.column && state.sort.descending === fresh.sort.descending ? null : (state.sort.descending ? "-" : "") + state.sort.column,
    mixes: state.mixes ? null : "0",
    view: state.view && [...state.view.x, ...state.view.y].map((at) => Number(at.toFixed(3))).join(","),
    kernel: kernel && kernel.kernel,
    nth: kernel && String(namesakes(kernel.kernel).indexOf(kernel)),
    theme: state.theme || null,
  };
  const roofs = [...state.roofs].map(([key, shown]) => [shown ? "with" : "without", key]);
  return [...Object.entries(found).filter(([name, value]) => value !== null && (name !== "nth" || value !== "0")), ...roofs];
}

function namesakes(name) {
  return ORDER.filter((kernel) => kernel.kernel === name);
}

/** The ids of a list that there are; those of a fresh page where none is. */
function knownIds(text, among, fresh) {
  const found = text === null ? [] : text.split(",").filter((id) => among.has(id));
  return found.length ? new Set(found) : fresh;
}

const LEAST_SPAN = 0.002; // decades: labels and ticks of less are all the same

function knownView(text) {
  const numbers = (text || "").split(",").map(Number);
  const wide = numbers[1] - numbers[0] >= LEAST_SPAN && numbers[3] - numbers[2] >= LEAST_SPAN;
  const fits = numbers.length === 4 && numbers.every((at) => Math.abs(at) <= 40) && wide;
  return fits ? { x: numbers.slice(0, 2), y: numbers.slice(2) } : null;
}

function knownSort(text, fresh) {
  const column = (text || "").replace(/^-/, "");
  return COLUMNS.some((each) => each.id === column) ? { column, descending: text.startsWith("-") } : fresh;
}

/** The state that an address describes. */
function stateOf(link) {
  const fresh = freshState();
  const get = (name) => link.get(name);
  const top = Number(get("top"));
  const kernel = namesakes(get("kernel"))[Number(get("nth") || 0)];
  const keys = new Set(ROOFS.map(roofKey));
  const shown = (name, value) => link.getAll(name).filter((key) => keys.has(key)).map((key) => [key, value]);
  return {
    ...fresh,
    device: DEVICES.includes(get("gpu")) ? get("gpu") : fresh.device,
    report: KERNELS.some((each) => each.report === get("report")) ? get("report") : "",
    precisions: knownIds(get("precision"), PRECISIONS, fresh.precisions),
    levels: knownIds(get("level"), LEVELS, fresh.levels),
    sources: knownIds(get("source"), new Set(SOURCES), fresh.sources),
    query: (get("q") || "").slice(0, 500),
    offered: get("regex") === "1", // one of a stranger may run for years: only the reader starts it
    top: link.has("top") && TOPS.includes(top) ? top : fresh.top,
    sort: knownSort(get("sort"), fresh.sort),
    mixes: get("mixes") !== "0",
    view: knownView(get("view")),
    isolated: kernel ? kernel.index : null,
    theme: ["light", "dark"].includes(get("theme")) ? get("theme") : "",
    roofs: new Map([...shown("with", true), ...shown("without", false)]),
  };
}
