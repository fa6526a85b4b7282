/* The controls: they change the state and ask for a new drawing. */

function chip(label, pressed, toggle, extra = {}) {
  const { colour, ...attributes } = extra;
  const dot = colour ? element("span", { class: "dot", colour }) : null;
  return element("button", { type: "button", class: "chip", "aria-pressed": String(pressed), onclick: toggle, ...attributes }, dot, label);
}

/** Add to a set or take away; the last one of a set stays, since nothing would be left to see. */
function flip(set, value) {
  if (!set.has(value)) set.add(value);
  else if (set.size > 1) set.delete(value);
}

function drawPrecisions() {
  const group = byId("precisions");
  const ids = [...PRECISIONS.keys()];
  group.hidden = !ids.length;
  const plain = plainPrecisions();
  const choose = (wanted) => change(() => { state.precisions = new Set(wanted); state.view = null; });
  const all = plain.length > 1 && plain.every((id) => state.precisions.has(id));
  const help = "Click: this precision alone.  Ctrl or Shift with click: add or remove.";
  const chips = ids.map((id) =>
    chip(PRECISIONS.get(id), state.precisions.has(id) && (!all || id === "mixed"), (event) => {
      if (!(event.ctrlKey || event.metaKey || event.shiftKey)) return choose([id]);
      const next = new Set(state.precisions);
      flip(next, id);
      return choose(next);
    }, { "data-precision": id, title: ids.length > 1 ? help : null }));
  const every = plain.length > 1 ? [chip("All", all, () => choose(plain), { "data-precision": "all" })] : [];
  fill(group, [element("span", { class: "label" }, PAGE.unit === "inst" ? "Instructions" : "Precision"), ...every, ...chips]);
}

/** A group of chips that each turn one of a set on or off; hidden where there are fewer than `least`. */
function drawChips(id, label, ids, set, least, textOf, extra) {
  byId(id).hidden = ids.length < least;
  fill(byId(id), [element("span", { class: "label" }, label), ...ids.map((one) => chip(textOf(one), set.has(one), () => change(() => flip(set, one)), extra(one)))]);
}

function drawLevels() {
  drawChips("levels", "Level", [...LEVELS.keys()], state.levels, 1, levelLabel, (id) => ({ colour: levelColour(id), "data-level": id }));
}

/** Choices that only some reports offer: GPU, report; beside the provenance, what dots were counted from. */
function drawChoices() {
  const group = byId("choices");
  const reports = distinct(ORDER.filter((kernel) => kernel.device === state.device).map((kernel) => kernel.report));
  const parts = [];
  if (DEVICES.length > 1) {
    parts.push(picker("GPU", DEVICES.map((name) => [name, name || "unknown"]), state.device, (device) => Object.assign(state, onGpu(device))));
  }
  if (reports.length > 1) {
    const pick = (report) => Object.assign(state, { report, view: null, isolated: null });
    parts.push(picker("Report", [["", `all ${reports.length}`], ...reports.map((name) => [name, name])], state.report, pick));
  }
  group.hidden = !parts.length;
  fill(group, parts);
  drawChips("counted", "Dots", SOURCES, state.sources, 2, (source) => SOURCE_TEXTS[source] || source, (source) => ({ "data-source": source }));
}

function roofLine(roof, colours) {
  const toggle = (event) => change(() => state.roofs.set(roof.key, event.target.checked));
  const dash = roof.kind === "wall" ? "2 2" : roof.origin === "theoretical" && ORIGINS.includes("measured") ? "5 3" : null;
  return lineSwitch(roof.shown, { "data-roof": roof.roof, "data-origin": roof.origin, onchange: toggle }, roofColour(roof, colours), dash, roof.label || roof.roof, ` ${roofValue(roof)}`);
}

/** A box that shows and hides lines, with a piece of one and its name. */
function lineSwitch(shown, attributes, stroke, dash, name, more) {
  const piece = svgElement("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke, "stroke-width": 2.5, "stroke-dasharray": dash });
  return element("label", { class: shown ? "roof" : "roof off" }, element("input", { type: "checkbox", checked: shown, ...attributes }),
    svgElement("svg", { viewBox: "0 0 24 10" }, piece), element("span", {}, name, element("span", { class: "value" }, more)));
}

/** A chip for all roofs of an origin at once. */
function originChip(origin, roofs) {
  const mine = roofs.filter((roof) => roof.origin === origin);
  const on = mine.some((roof) => roof.shown);
  const toggle = () => change(() => mine.forEach((roof) => state.roofs.set(roof.key, !on && (origin === "unused" || isDefault(roof, roofs)))));
  return chip(originName(origin), on, toggle, { "data-origins": origin });
}

function drawRoofs(roofs) {
  const colours = palette();
  const parts = [];
  if (ORIGINS.length > 1) {
    const chips = ORIGINS.map((origin) => originChip(origin, roofs));
    parts.push(element("div", { class: "group", role: "group", "aria-label": "Origin of the roofs" }, ...chips));
  }
  for (const [kind, title] of [["compute", "Compute"], ["bandwidth", "Bandwidth"], ["wall", "Walls"]]) {
    for (const origin of ORIGINS) {
      const mine = roofs.filter((roof) => roof.kind === kind && roof.origin === origin).sort((a, b) => b.value - a.value);
      const heading = ORIGINS.length > 1 ? `${title}, ${originName(origin)}` : title;
      if (mine.length) parts.push(element("h3", {}, heading), ...mine.map((roof) => roofLine(roof, colours)));
    }
  }
  if (!roofs.length) parts.push(element("p", { class: "muted" }, "No roofs are known for this GPU."));
  parts.push(...mixControl(colours));
  const box = byId("roofs");
  const focused = document.activeElement && box.contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  box.replaceChildren(...parts);
  if (focused) [...box.querySelectorAll("input, button")].find((node) => JSON.stringify({ ...node.dataset }) === JSON.stringify(focused))?.focus();
}

function drawTop() {
  const select = byId("top");
  const options = [...TOPS.slice(1).map((size) => [size, String(size)]), [0, `all ${ORDER.length}`]];
  select.replaceChildren(...options.map(([size, text]) => element("option", { value: size, selected: size === state.top }, text)));
}

function drawQuery() {
  const box = byId("query");
  const wrong = nameTest() === null;
  box.setAttribute("aria-invalid", String(wrong));
  const offer = state.offered ? "press .* to read it as a regular expression" : "";
  byId("query-error").textContent = wrong ? "not a regular expression" : offer;
  byId("regex").setAttribute("aria-pressed", String(state.regex));
  showQuery();
}

/** What symbols and fills stand for; nothing where all dots are of one kernel and one precision. */
function drawKey({ kernels, points }) {
  const fills = filledPrecisions(points).map((id) => element("span", {}, fillIcon(id), PRECISIONS.get(id)));
  const several = distinct(kernels.map((kernel) => kernel.kernel)).length > 1 && !SWEPT;
  const said = [fills.length && "filled by precision", several && "symbol: kernel, as in the table", LEVELS.size > 1 && "colour: memory level"].filter(Boolean);
  const box = byId("key");
  box.hidden = !fills.length && !several;
  box.replaceChildren(...fills, element("span", {}, said.join("; ")));
}

function drawStatus({ kernels, of, points, hidden }) {
  if (!POINTS.length) return;
  const known = kernels.filter((kernel) => kernel.seconds !== null);
  const time = known.length ? `, ${formatValue(known.reduce((sum, kernel) => sum + kernel.seconds, 0), "second")}` : "";
  const all = SWEPT ? `${counted(ORDER.length, "step")} of ${counted(SHAPE_OF.size, "kernel")}` : counted(ORDER.length, "kernel");
  const parts = [`${kernels.length} of ${all}, ${counted(points.length, "dot")}${time}`];
  if (of > kernels.length) parts.push(`the first ${kernels.length} of ${of}, ranked by the time that could be saved: raise Top to see more`);
  if (points.length > MOST_DOTS) parts.push("of dots on top of each other one is drawn: zoom in for the others");
  if (hidden) parts.push(`${hidden} points without work or traffic have no place on a logarithmic chart`);
  if (state.isolated !== null) parts.push("one kernel isolated: Esc shows all");
  if (state.view) parts.push("zoomed: double click shows all");
  byId("status").textContent = parts.join(" \u00b7 ");
  const blank = byId("blank");
  blank.hidden = points.length > 0 || !POINTS.length;
  blank.textContent = kernels.length ? "No dot is left: turn on a level or a source." : ORDER.some(onStage) ? "No kernel matches the filters." : "No kernel of this GPU has a dot.";
}
