/* What the reader has chosen of a run, its bars and tables, and the start. */

const OPERATORS = unpack(PAGE.operators);
const [BARS, LEAST] = [15, 0.0005]; // operators with a bar, share of the time that is told
const ALL_COLUMNS = Object.keys(PAGE.columns).filter((name) => OPERATORS.some((row) => row[name] !== "" && row[name] !== null)).map(columnOf);
const SHOWN = ["operator", "shapes", "direction", "group", "share", "recoverable", "fraction", "roof", "seconds", "calls", "flops", "bytes", "intensity", "performance", "bandwidth", "why"];
const COLUMNS = SHOWN.flatMap((name) => ALL_COLUMNS.find((column) => column.id === name) || []);

function columnOf(name) {
  const [unit, title, label] = PAGE.columns[name];
  if (typeof OPERATORS.find((row) => row[name] !== null)?.[name] !== "string") {
    return numberColumn(name, label, (row) => row[name], (row) => (known(row[name]) ? (unit ? formatColumn(name, row) : String(row[name])) : ""), { title, unit });
  }
  const said = name === "operator" ? (row) => row.operator || row.group || "(no operator)" : name === "roof" ? (row) => PAGE.roof_labels[row.roof] || "" : (row) => row[name];
  return { ...textColumn(name, label, (row) => row[name], { title, wide: ["shapes", "group", "why"].includes(name) }), show: (row) => (said(row) ? element("span", { title: said(row) }, shorten(said(row), 60)) : "") };
}

function freshState() {
  return { place: 0, query: "", chosen: null, sort: { column: "recoverable", descending: true }, rows: FIRST_ROWS, theme: "" };
}

function choices() {
  const found = { run: state.place || null, q: state.query || null, sort: sortWord(freshState().sort), operator: state.chosen, theme: state.theme || null };
  return Object.entries(found).filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]);
}

function stateOf(link) {
  const [fresh, get] = [freshState(), (name) => link.get(name) || ""];
  const place = Math.max(PAGE.runs.findIndex((run, index) => String(index) === get("run")), 0);
  const chosen = OPERATORS.find((row) => String(row.index) === get("operator") && row.place === place);
  const theme = ["light", "dark"].includes(get("theme")) ? get("theme") : "";
  return { ...fresh, place, query: get("q").slice(0, 500), sort: sortOf(COLUMNS, get("sort"), fresh.sort), chosen: chosen ? chosen.index : null, theme };
}

function choose(index) {
  change(() => { state.chosen = state.chosen === index ? null : index; });
}

function shownRows() {
  const words = state.query.trim().toLowerCase();
  return OPERATORS.filter((row) => row.place === state.place && (!words || `${row.operator} ${row.name} ${row.group}`.toLowerCase().includes(words)));
}

/** The parts of some operators' time: [kind, share of the kernels' time]. */
function partsOf(rows) {
  const sum = (kind, value) => rows.filter((row) => row.kind === kind).reduce((total, row) => total + value(row), 0);
  const found = Object.keys(PAGE.hues).map((kind) => [kind, sum(kind, (row) => row.share - (row.recoverable || 0))]);
  return [...found.filter(([kind]) => kind !== "could save"), ["could save", rows.reduce((total, row) => total + (row.recoverable || 0), 0)]].filter(([, share]) => share > 0);
}

function bar(name, parts, scale, end, share, more = {}) {
  const track = parts.map(([kind, part]) => element("i", { style: `width: ${(100 * part) / scale}%`, colour: kind === "busy" ? style("--neutral") : hueOf(kind === "late" ? "overhead" : kind) }));
  const head = element("span", { class: "head" }, element("span", { class: "what" }, name), element("span", { class: "muted" }, end));
  return element("button", { type: "button", ...more }, head, element("span", { class: "track" }, ...track), element("span", { class: "share" }, share));
}

function drawTimes(rows) {
  const run = PAGE.runs[state.place];
  const of = ["busy", "late"].map((kind) => [kind, (run[kind] || 0) / run.wall]);
  const found = positive(run.wall) ? [bar(`${run.name} busy${of[1][1] >= LEAST ? `, ${formatPercent(of[1][1])} launch-bound` : ""}`, of, 1, `of ${formatValue(run.wall, "second", 3)}`, formatPercent(run.busy / run.wall), { disabled: true })] : [];
  const longest = [...rows].sort((a, b) => b.seconds - a.seconds);
  const groups = [...longest.slice(0, BARS).map((row) => [row]), ...(longest.length > BARS ? [longest.slice(BARS)] : [])];
  const total = (group) => group.reduce((sum, row) => sum + row.share, 0);
  const scale = Math.max(...groups.map(total));
  for (const group of groups) {
    const [row, gone] = [group[0], group.reduce((sum, each) => sum + (each.recoverable || 0), 0)];
    const end = gone >= LEAST ? `${formatPercent(gone)} could be saved` : group.length === 1 ? row.why : "";
    const more = group.length === 1 ? { title: row.name, "aria-pressed": String(state.chosen === row.index), onclick: () => choose(row.index) } : { disabled: true };
    found.push(bar(group.length === 1 ? row.name : `and ${group.length} more`, partsOf(group), scale, end, formatPercent(total(group)), more));
  }
  fill(byId("times"), found);
  const told = { memory: "at the DRAM roof", compute: "at a compute roof" };
  byId("key").replaceChildren(...partsOf(rows).filter(([, share]) => share >= LEAST).map(([kind]) => element("span", { colour: hueOf(kind) }, element("i"), told[kind] || kind)));
  byId("status").textContent = `${rows.length} of ${counted(OPERATORS.filter((row) => row.place === state.place).length, "operator")}, ${formatPercent(total(rows))} of the kernels' time${state.chosen === null ? "" : " \u00b7 one chosen: Esc shows all"}`;
}

function update() {
  const [rows, colours] = [shownRows(), palette()];
  const dotted = OPERATORS.some((row) => row.place === state.place && drawable(row));
  byId("roofline-card").hidden = !dotted;
  byId("planes").classList.toggle("one", !dotted);
  drawTimes(rows);
  if (dotted) {
    const made = rooflineChart(rows.some(drawable) ? rows : [], colours);
    if (paper) Object.assign(made.layout, { width: 700, height: 380, autosize: false });
    Plotly.react(byId("roofline"), made.traces, made.layout, CONFIG);
    byId("undrawn").textContent = made.beyond ? `${counted(made.beyond, "dot")} beyond the axes: zoom out shows them.` : "";
  }
  drawRows(COLUMNS, sortedRows(COLUMNS, rows, (a, b) => b.share - a.share), (row) => ({ key: row.index, chosen: state.chosen === row.index, kind: state.chosen === row.index ? "chosen" : "" }));
  drawFacts(OPERATORS[state.chosen], ALL_COLUMNS.filter(({ id }) => id !== "operator" && id !== "shapes"), "operators");
  const pick = (place) => Object.assign(state, { place: Number(place), chosen: null });
  byId("choices").hidden = PAGE.runs.length < 2;
  fill(byId("choices"), PAGE.runs.length < 2 ? [] : [picker("GPU", PAGE.runs.map((run, index) => [index, run.name]), state.place, pick)]);
  showQuery();
}

function redraw(onPaper) {
  paper = onPaper ? { roofline: [700, 380] } : null;
  if (OPERATORS.length) update();
}

function wire() {
  if (byId("roofline").on) byId("roofline").on("plotly_click", ({ points: [hit] }) => { if (hit.data.meta === "operators") choose(hit.customdata); });
  wireRows(COLUMNS, choose);
  wireMenu({ columns: COLUMNS, rows: () => sortedRows(COLUMNS, shownRows()), saved: ALL_COLUMNS });
  wireSentences(OPERATORS, ({ operator, shapes }) => `${operator} ${shapes}`.trim(), ({ place }) => PAGE.runs[place].name, ({ place, index }) => { Object.assign(state, { place, query: "" }); choose(index); });
  wireQuery();
  byId("reset").addEventListener("click", () => change(() => { state = { ...freshState(), theme: state.theme }; }));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.chosen !== null) choose(state.chosen); });
}

if (OPERATORS.some(drawable)) Plotly.newPlot(byId("roofline"), [], {}, CONFIG); // so that it has events before a run with dots is chosen
byId("reset").disabled = !OPERATORS.length;
startPage(OPERATORS.length > 0, redraw, wire);
