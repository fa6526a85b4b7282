/* The tooltip: a few numbers beside the pointer.  Pinned by a click it stays, opens to all numbers, and its text can be selected. */

const tooltip = document.getElementById("tooltip");
let pinned = null; // where the focus goes when the pinned tooltip is closed

function definitions(entries) {
  return element("dl", {}, ...entries.flatMap(([label, value, origin]) => [element("dt", {}, label), element("dd", {}, value), element("dd", { class: "origin" }, origin || "")]));
}

function note(label, text) {
  return text ? [element("p", {}, `${label}: ${shorten(text, 320)}`)] : [];
}

/** What a look at a dot is for: where it stands, what limits the kernel, its headroom. */
function pointTip(point) {
  const [level, kernel] = [LEVELS.get(point.level), KERNELS[point.owner]];
  const step = kernel.step >= 0 ? `${kernel.label} \u00b7 ` : "";
  const where = kernel.launch >= 0 ? `launch ${kernel.launch}` : counted(kernel.launches, "launch");
  const entries = ["performance", "intensity", "binding_fraction"].filter((column) => known(point[column])).map((column) => [columnLabel(column), formatColumn(column, point)]);
  if (known(kernel.seconds)) entries.push(["time", [formatValue(kernel.seconds, "second"), known(kernel.time_share) ? formatPercent(kernel.time_share) : ""].filter(Boolean).join(", ")]);
  const facts = JUDGED ? usageFacts(kernel).filter(([label]) => ["verdict", "headroom", "to compute roof"].includes(label)) : [["binds", point.binds && bindsLabel(point.binds)]];
  entries.push(...facts.filter(([, value]) => value));
  return [
    element("div", { class: "title" }, shorten(kernel.kernel, 120)),
    element("div", { class: "lead" }, element("i", { colour: levelColour(level.id) }), `${level.label} \u00b7 ${PRECISIONS.get(point.precision)} \u00b7 ${step}${where}`),
    definitions(entries),
  ];
}

/** The same with the reason, and every number with its unit and where it comes from. */
function pointFacts(point) {
  const kernel = KERNELS[point.owner];
  const entries = NUMBERS.filter((column) => column !== "coverage" || point.coverage !== 1)
    .filter((column) => known(point[column]) || column === "fraction")
    .map((column) => [columnLabel(column), formatColumn(column, point), originOf(column, point)]);
  const more = JUDGED ? usageFacts(kernel).filter(([label, value]) => value && ["busiest", "occupancy"].includes(label)) : [];
  entries.push(...more.map(([label, value]) => [label, value, ""]));
  const all = element("details", {}, element("summary", {}, "All numbers"), definitions(entries), ...note("metrics", point.metrics),
    ...note("notes", [point.notes, kernel.notes].filter(Boolean).join("; ")));
  return [...pointTip(point), ...note("reason", kernel.reason), all];
}

function roofTip(roof) {
  const entries = [["value", roofValue(roof), originName(roof.origin)]];
  if (roof.wide) entries.push(["range", "over launches", roof.merged > 1 ? `of ${roof.merged} reports` : "their clocks differ"]);
  if (known(roof.clock)) entries.push(["clock", formatValue(roof.clock, "hertz"), roof.clock_basis]);
  entries.push(["source", roof.source, ""]);
  return [element("div", { class: "title" }, roof.label || roof.roof), definitions(entries), ...note("from", roof.metrics), ...note("notes", roof.notes)];
}

function ridgeTip(ridge) {
  const names = `${ridge.bandwidth.label} and ${ridge.compute.label} (${ridge.compute.origin})`;
  const { unit } = PAGE.counted[ridge.compute.unit.split("/")[0]];
  return [
    element("div", { class: "title" }, "Ridge point"), element("div", { class: "lead" }, names),
    definitions([["intensity", formatValue(ridge.x, unit), "machine balance"], ["performance", formatValue(ridge.y, ridge.compute.unit), ridge.compute.origin]]),
  ];
}

/** Show the tooltip beside a place of the window, inside it; a pinned one stays. */
function showTip(children, x, y) {
  if (pinned) return;
  tooltip.replaceChildren(...children);
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + 18 + width < innerWidth ? x + 18 : x - 18 - width;
  tooltip.style.left = `${Math.max(6, left)}px`;
  tooltip.style.top = `${Math.max(6, Math.min(y - height / 3, innerHeight - height - 6))}px`;
}

function hideTip() {
  if (!pinned) tooltip.hidden = true;
}

/** Pin the tooltip. */
function pinTip(children, x, y) {
  unpinTip();
  const close = element("button", { type: "button", class: "button close", "aria-label": "Close", title: "Esc", onclick: unpinTip }, "\u00d7");
  tooltip.classList.add("pinned");
  tooltip.setAttribute("role", "dialog");
  tooltip.setAttribute("aria-label", "Pinned numbers");
  showTip([close, ...children], x, y);
  pinned = document.activeElement || document.body;
  tooltip.focus({ preventScroll: true });
}

/** Close a pinned tooltip: true if there was one. */
function unpinTip() {
  if (!pinned) return false;
  const back = tooltip.contains(document.activeElement) ? pinned : null;
  pinned = null;
  tooltip.classList.remove("pinned");
  tooltip.setAttribute("role", "tooltip");
  tooltip.removeAttribute("aria-label");
  tooltip.hidden = true;
  if (back?.isConnected) back.focus({ preventScroll: true });
  return true;
}
