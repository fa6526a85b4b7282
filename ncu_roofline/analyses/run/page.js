/* What the reader has chosen of a run, its bars and tables, and the start. */

const OPERATORS = unpack(PAGE.operators);
const [BARS, LEAST] = [15, 0.0005]; // operators with a bar, share of the time that is told
const SHOWN = ["operator", "shapes", "direction", "group", "share", "recoverable", "fraction", "roof", "seconds", "calls", "flops", "bytes", "intensity", "performance", "bandwidth", "why"];
const ALL_COLUMNS = declaredColumns(OPERATORS, {
  operator: { show: cut((row) => row.operator || row.group || "(no operator)") },
  roof: { show: cut((row) => PAGE.roof_labels[row.roof] || "") },
  ...Object.fromEntries(["shapes", "group", "why"].map((name) => [name, { wide: true, show: cut((row) => row[name]) }])),
});
const COLUMNS = SHOWN.flatMap((name) => ALL_COLUMNS.find((column) => column.id === name) || []);
const CHOICES = {
  run: oneOf("place", PAGE.runs.map((_, index) => index)),
  q: QUERY,
  sort: SORT,
  operator: { of: "chosen", read: (text, { place }) => OPERATORS.find((row) => String(row.index) === text && row.place === place)?.index },
  theme: THEME,
};

/** A text cut to the room of a cell, with all of it as its hint. */
function cut(said) {
  return (row) => (said(row) ? element("span", { title: said(row) }, shorten(said(row), 60)) : "");
}

function freshState() {
  return { place: 0, query: "", chosen: null, sort: { column: "recoverable", descending: true }, rows: FIRST_ROWS, theme: "" };
}

function shownRows() {
  return OPERATORS.filter((row) => row.place === state.place && passesQuery(`${row.operator} ${row.name} ${row.group}`));
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
    const more = group.length === 1 ? { title: row.name, "aria-pressed": String(state.chosen === row.index), onclick: () => toggleChosen(row.index) } : { disabled: true };
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
    drawPlot("roofline", made);
    byId("undrawn").textContent = made.beyond ? `${counted(made.beyond, "dot")} beyond the axes: zoom out shows them.` : "";
  }
  drawRows(sortedRows(rows, (a, b) => b.share - a.share), chosenRow);
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
  wirePlots(OPERATORS.some(drawable) ? ["roofline"] : [], ["operators"]);
  wireRows(toggleChosen);
  wireMenu({ rows: () => sortedRows(shownRows()), saved: () => ALL_COLUMNS });
  wireSentences(OPERATORS, ({ operator, shapes }) => `${operator} ${shapes}`.trim(), ({ place }) => PAGE.runs[place].name, ({ place, index }) => { Object.assign(state, { place, query: "" }); toggleChosen(index); });
  wireQuery();
}

startPage(OPERATORS.length > 0, redraw, wire);
