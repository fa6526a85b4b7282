/* The reader's choices (launch, path, slice, theme), the table of slices, and the start. */

const LAUNCHES = PAGE.launches;

function freshState() {
  return { launch: 0, path: 0, slice: null, theme: "" };
}

function choices() {
  const found = { launch: state.launch || null, path: state.path || null, slice: state.slice, theme: state.theme || null };
  return Object.entries(found).filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]);
}

/** A whole number of the address below `end`, else null. */
function numberOf(link, name, end) {
  const text = link.get(name) || "";
  return /^\d{1,6}$/.test(text) && Number(text) < end ? Number(text) : null;
}

function stateOf(link) {
  const launch = numberOf(link, "launch", LAUNCHES.length) || 0;
  const one = LAUNCHES[launch] || { paths: [], edges: [0] };
  const theme = ["light", "dark"].includes(link.get("theme")) ? link.get("theme") : "";
  return { ...freshState(), launch, path: numberOf(link, "path", one.paths.length) || 0, slice: numberOf(link, "slice", one.edges.length - 1), theme };
}

function choose(slice) {
  change(() => { state.slice = state.slice === slice ? null : slice; });
}

function update() {
  const [launch, theme] = [LAUNCHES[state.launch], palette()];
  const path = launch.paths[state.path];
  byId("path-card").hidden = !path;
  byId("charts").classList.toggle("two", Boolean(path));
  draw("bands", bandsChart(launch, theme, state.slice));
  if (path) draw("path", pathChart(launch, path, theme, state.slice));
  byId("bands-title").textContent = `Utilisation over time: ${launch.cut ? "the beginning of " : ""}${formatValue(launch.seconds, "second", 3)} in ${counted(launch.edges.length - 1, "slice")}`;
  byId("path-title").textContent = path ? `${path.name} at ${path.level}` : "";
  byId("notes").replaceChildren(...launch.notes.map((note) => element("li", {}, note)));
  drawChoices(launch);
  drawTable(launch, path);
}

function draw(id, made) {
  if (paper) Object.assign(made.layout, { width: paper[0], height: paper[1], autosize: false });
  Plotly.react(byId(id), made.traces, made.layout, CONFIG);
}

function launchName(one) {
  const again = LAUNCHES.some((other) => other !== one && other.name === one.name);
  return `${one.name}${again ? `, launch ${one.launch}` : ""}, ${formatValue(one.seconds, "second", 3)}`;
}

function drawChoices(launch) {
  const parts = [picker("Kernel", LAUNCHES.map((one, index) => [index, launchName(one)]), state.launch, (index) => Object.assign(state, { launch: Number(index), path: 0, slice: null }))];
  if (launch.paths.length > 1) {
    parts.push(picker("Path of", launch.paths.map((path, index) => [index, `${path.name} at ${path.level}`]), state.path, (index) => Object.assign(state, { path: Number(index) })));
  }
  fill(byId("choices"), parts);
}

function drawTable(launch, path) {
  const heads = ["slice", "from", "to", ...launch.bands.map((band) => band.label), ...(path ? ["intensity", "performance"] : [])];
  const rows = launch.edges.slice(1).map((end, slice) => {
    const at = path ? path.slices.indexOf(slice) : -1;
    const reached = path ? [at < 0 ? MISSING : formatValue(path.intensity[at], `${path.unit}/byte`, 3), at < 0 ? MISSING : formatValue(path.performance[at], `${path.unit}/s`, 3)] : [];
    const cells = [formatValue(launch.edges[slice], "second", 3), formatValue(end, "second", 3), ...launch.bands.map((band) => formatPercent(band.values[slice])), ...reached];
    return element("tr", { "data-slice": slice, tabindex: 0, class: state.slice === slice ? "chosen" : null }, element("th", { scope: "row", class: "num" }, String(slice + 1)),
      ...cells.map((text) => element("td", { class: "num" }, text)));
  });
  const head = element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col", class: "num" }, text))));
  const focused = document.activeElement?.dataset?.slice;
  const place = byId("table-scroll");
  place.replaceChildren(element("table", {}, head, element("tbody", {}, ...rows)));
  if (focused) place.querySelector(`[data-slice="${Number(focused)}"]`)?.focus({ preventScroll: true });
}

function wire() {
  wireMenu();
  for (const id of ["bands", "path"]) {
    const node = byId(id);
    if (node.on) node.on("plotly_click", (event) => { if (known(event.points[0].customdata)) choose(event.points[0].customdata); });
  }
  const rowOf = (event) => event.target.closest?.("[data-slice]");
  const table = byId("table-scroll");
  table.addEventListener("click", (event) => { if (rowOf(event)) choose(Number(rowOf(event).dataset.slice)); });
  table.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key) || !rowOf(event)) return;
    event.preventDefault();
    choose(Number(rowOf(event).dataset.slice));
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape" && state.slice !== null) choose(state.slice); });
}

function redraw(onPaper) {
  paper = onPaper ? [700, 380] : null;
  if (LAUNCHES.length) update();
}

const [first] = LAUNCHES.map((one) => one.paths).filter((paths) => paths.length);
if (first) Plotly.newPlot(byId("path"), [], {}, CONFIG); // so that it has events before a launch with a path is chosen
startPage(LAUNCHES.length > 0, redraw, wire);
