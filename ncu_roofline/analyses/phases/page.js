/* The reader's choices (launch, path, slice, theme), the table of slices, and the start. */

const LAUNCHES = PAGE.launches;
const CHOICES = {
  launch: oneOf("launch", LAUNCHES.map((_, index) => index)),
  path: { of: "path", read: (text, { launch }) => indexOf(text, LAUNCHES[launch].paths.length) },
  slice: { of: "chosen", read: (text, { launch }) => indexOf(text, LAUNCHES[launch].edges.length - 1) },
  theme: THEME,
};
let COLUMNS = []; // of the launch

/** A whole number of the address below `end`. */
function indexOf(text, end) {
  return /^\d{1,6}$/.test(text) && Number(text) < end ? Number(text) : undefined;
}

function freshState() {
  return { launch: 0, path: 0, chosen: null, sort: { column: "", descending: false }, rows: FIRST_ROWS, theme: "" };
}

function update() {
  const [launch, theme] = [LAUNCHES[state.launch], palette()];
  const path = launch.paths[state.path];
  byId("path-card").hidden = !path;
  byId("charts").classList.toggle("one", !path);
  drawPlot("bands", bandsChart(launch, theme, state.chosen));
  if (path) drawPlot("path", pathChart(launch, path, theme, state.chosen));
  byId("bands-title").textContent = `Utilisation over time: ${launch.cut ? "the beginning of " : ""}${formatValue(launch.seconds, "second", 3)} in ${counted(launch.edges.length - 1, "slice")}`;
  byId("path-title").textContent = path ? `${path.name} at ${path.level}` : "";
  byId("notes").replaceChildren(...launch.notes.map((note) => element("li", {}, note)));
  drawChoices(launch);
  COLUMNS = columnsOf(launch, path);
  drawRows(slices(), chosenRow);
}

function launchName(one) {
  const again = LAUNCHES.some((other) => other !== one && other.name === one.name);
  return `${one.name}${again ? `, launch ${one.launch}` : ""}, ${formatValue(one.seconds, "second", 3)}`;
}

function drawChoices(launch) {
  const parts = [picker("Kernel", LAUNCHES.map((one, index) => [index, launchName(one)]), state.launch, (index) => Object.assign(state, { launch: Number(index), path: 0, chosen: null }))];
  if (launch.paths.length > 1) {
    parts.push(picker("Path of", launch.paths.map((path, index) => [index, `${path.name} at ${path.level}`]), state.path, (index) => Object.assign(state, { path: Number(index) })));
  }
  fill(byId("choices"), parts);
}

/** A row per slice, which is its number. */
function slices() {
  return sortedRows(LAUNCHES[state.launch].edges.slice(1).map((_, index) => ({ index })));
}

function columnsOf({ edges, bands }, path) {
  const column = (id, unit, values, show = (value) => formatValue(value, unit, 3)) => numberColumn(id, id, ({ index }) => values(index) ?? null, ({ index }) => show(values(index)), { unit });
  const onPath = (name) => (slice) => path[name][path.slices.indexOf(slice)];
  return [
    numberColumn("slice", "slice", ({ index }) => index + 1, ({ index }) => String(index + 1)),
    column("from", "second", (slice) => edges[slice]), column("to", "second", (slice) => edges[slice + 1]),
    ...bands.map((band) => column(band.label, "ratio", (slice) => band.values[slice], formatPercent)),
    ...(path ? [column("intensity", `${path.unit}/byte`, onPath("intensity")), column("performance", `${path.unit}/s`, onPath("performance"))] : []),
  ];
}

function wire() {
  wireRows(toggleChosen);
  wireMenu({ rows: slices });
  wirePlots(["bands", "path"], ["band", "slices"]);
}

function redraw(onPaper) {
  paper = onPaper ? { bands: [700, 380], path: [700, 380] } : null;
  if (LAUNCHES.length) update();
}

startPage(LAUNCHES.length > 0, redraw, wire);
