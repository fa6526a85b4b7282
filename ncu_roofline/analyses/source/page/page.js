/* Wiring: choices, files, keys, theme, paper. */

/** Choose a loop, a line, an instruction or, with null, nothing; `from` is the pane in which that was done. */
function choose(chosen, from = "") {
  const file = fileOf(chosen);
  const other = file !== null && file !== state.file;
  if (other) state.file = file;
  state.chosen = chosen;
  if (other) {
    drawFiles();
    drawListings();
  }
  drawChosen(from);
  writeLink(choices());
}

/** The file to be shown for a choice: one with its line, if possible the one that is shown. */
function fileOf(chosen) {
  if (!chosen) return null;
  if (chosen.file !== undefined) return chosen.line > 0 ? chosen.file : null;
  if (chosen.loop !== undefined) return view.loops.get(chosen.loop).first > 0 ? view.loops.get(chosen.loop).file : null;
  const { file, line, inlined } = view.instructions;
  if (line[chosen.row] <= 0) return null;
  return (inlined[chosen.row] || []).some(([one]) => one === state.file) ? state.file : file[chosen.row];
}

function drawChosen(from) {
  markListings(from);
  drawDetails();
  drawLoops();
  drawChart();
}

/** Everything of the launch. */
function update() {
  const { launch } = view;
  byId("launch").value = String(state.launch);
  byId("facts").replaceChildren(...[shorten(launch.name, 200), ...launch.facts].map((fact) => element("span", {}, fact)));
  drawMeasures();
  drawFiles();
  drawListings();
  drawTables();
  const left = `${launch.left_out} more instructions are left out here: nothing or least was counted near them. The formats csv, json and parquet have all.`;
  byId("instruction-note").textContent = launch.left_out ? left : "";
  drawChosen("start");
  lookFor();
  tellFound();
}

function drawMeasures() {
  const chips = measuresOf(view.launch).map(({ id, label, meaning }) => element(
    "button", { type: "button", class: "chip", title: meaning, "data-by": id, "aria-pressed": String(id === state.by), onclick: () => change(() => { state.by = id; }) }, label,
  ));
  fill(byId("measures"), [element("span", { class: "label" }, "Heat"), ...chips]);
  byId("meaning").textContent = `Heat: ${measureNow().meaning}.`;
}

function drawFiles() {
  const files = filesOf();
  const tabs = files.map(([file, share]) => {
    const here = file === state.file;
    const how = { type: "button", class: "tab", role: "tab", "aria-selected": String(here), tabindex: here ? 0 : -1, onclick: () => openFile(file) };
    return element("button", how, fileName(file), element("span", { class: "muted" }, ` ${shareText(share)}`));
  });
  byId("files").replaceChildren(...tabs);
  byId("files").hidden = files.length < 2;
  byId("source-title").textContent = files.length === 1 ? fileName(files[0][0]) : "Source";
  const shown = state.file === null ? null : PAGE.files[state.file];
  const lacking = "The report holds no text of this file: collect with --import-source on, or say where the sources are with --source-folder.";
  const note = !shown || (shown.whole && shown.parts.length) ? "" : shown.parts.length ? "Only lines near counted ones are here: the file is long. " : `${lacking} `;
  byId("source-note").replaceChildren(note, ...unlined());
}

/** How much is in no line, as links to it: by function, then what lies outside. */
function unlined() {
  const found = [...view.lines.values()].filter((line) => line.line < 0 && heatOf(line).own > 0).sort((a, b) => b.line - a.line || heatOf(b).own - heatOf(a).own);
  const inside = found.filter((line) => line.line === NO_LINE);
  const sum = inside.reduce((sum, line) => sum + heatOf(line).own, 0);
  const lead = inside.length ? [`${shareText(sum)} is in code without source line: `] : [];
  const parts = found.flatMap((line, index) => {
    const name = line.line === NO_LINE ? `in ${calledName(line.of)}` : OUTSIDE;
    return [index ? ", " : "", `${shareText(heatOf(line).own)} `, link(name, () => choose(targetOf(line)))];
  });
  return found.length ? [`${measureNow().label}: `, ...lead, ...parts, "."] : [];
}

function openFile(file) {
  change(() => Object.assign(state, { file, chosen: null }));
  byId("files").querySelector('[aria-selected="true"]').focus();
}

function wireFiles() {
  byId("files").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const files = filesOf().map(([file]) => file);
    const next = files[files.indexOf(state.file) + (step || 0)];
    if (!step || next === undefined) return;
    event.preventDefault();
    openFile(next);
  });
}

function wirePane(pane, listing, from, choiceOf) {
  pane.addEventListener("click", (event) => {
    if (getSelection().toString()) return; // text is being copied
    const bracket = event.target.closest("[data-loop]");
    if (bracket) return void choose({ loop: Number(bracket.dataset.loop) }, from);
    const node = event.target.closest("tr[data-row]");
    const target = node && choiceOf(listing.rows[Number(node.dataset.row)]);
    if (target) choose(same(target, state.chosen) ? null : target, from);
  });
  pane.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = listing.rows.findIndex((row) => state.chosen && same(choiceOf(row), state.chosen));
    const next = nextRow(listing.rows, at < 0 && step < 0 ? listing.rows.length : at, step, (row) => choiceOf(row) !== null);
    if (next === null) return;
    choose(choiceOf(listing.rows[next]), from);
    listing.reveal(next);
  });
}

function same(a, b) {
  return Boolean(a && b) && a.row === b.row && a.loop === b.loop && a.file === b.file && a.line === b.line && a.of === b.of;
}

/** In other colours; on paper with all rows. */
function redraw(onPaper) {
  const changed = onPaper !== paper;
  paper = onPaper;
  if (!view) return;
  drawChart();
  if (changed) drawListings();
  if (paper) [source, code].forEach((listing) => listing.fillAll());
  else if (changed) markListings("");
}

function wire() {
  wireMenu();
  byId("launch").append(...PAGE.launches.map((launch, index) => element("option", { value: String(index) }, shorten(`${launch.kernel}, ${launch.facts.slice(1).join(", ")}`, 120))));
  byId("launch-group").hidden = PAGE.launches.length < 2;
  byId("launch").value = String(state.launch);
  byId("launch").addEventListener("change", ({ target }) => change(() => { state = stateOf(new URLSearchParams({ kernel: target.value, theme: state.theme })); }));
  byId("reset").addEventListener("click", () => { byId("find").value = ""; lookFor(); tellFound(); });
  for (const table of Object.keys(all)) byId(`all-${table}`).addEventListener("click", () => { all[table] = true; drawTables(); });
  wirePane(byId("source-pane"), source, "source", (row) => (row.gap || !row.entry ? null : { file: row.file, line: row.line }));
  wirePane(byId("instruction-pane"), code, "code", (one) => (one.row === undefined ? null : { row: one.row }));
  addEventListener("keydown", (event) => { if (event.key === "Escape" && state.chosen) choose(null); });
  wireFiles();
  wireFind();
  let wide = byId("chart").clientWidth;
  new ResizeObserver(() => {
    if (byId("chart").clientWidth === wide) return; // the height follows from the width
    wide = byId("chart").clientWidth;
    drawChart();
  }).observe(byId("chart"));
}

startPage(PAGE.launches.length > 0, redraw, wire, update);
