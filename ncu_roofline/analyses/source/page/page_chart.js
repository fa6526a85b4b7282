/* The roofline of the launch as SVG: the kernel's dots at its levels, and the loops that have a performance. */

const EDGES = { left: 62, right: 14, top: 10, bottom: 46 };
const TARGET = 11; // radius of what is hit
const DISC = 5.5;
const RIM = 2.5; // of a disc beneath another
const MOST = 24; // radius of a dot beneath others
const DECADES = 9; // more would leave nothing to see of the roofs

function loopDots() {
  return [...view.loops.values()].filter((loop) => loop.loop >= 0 && loop.performance > 0 && loop.intensity > 0);
}

/** Loops that have an intensity and no performance: ticks at the lower edge. */
function loopTicks() {
  return [...view.loops.values()].filter((loop) => loop.loop >= 0 && !(loop.performance > 0) && loop.intensity > 0);
}

/** Ranges in decades that show all dots, the ridge points, and room for labels above the roofs. */
function chartRanges({ dots, roofs }) {
  const loops = loopDots();
  const points = [...dots, ...loops];
  const [peaks, slopes] = ["compute", "bandwidth"].map((kind) => roofs.filter((roof) => roof.kind === kind).map((roof) => roof.value));
  const top = Math.max(...peaks, ...points.map((point) => point.performance)) || 1e12;
  const ridges = peaks.flatMap((peak) => slopes.map((slope) => peak / slope));
  const right = Math.max(...ridges, ...points.map((point) => point.intensity), 0) * 5 || 100;
  const left = Math.max(Math.min(...ridges.map((ridge) => ridge / 4), ...points.map((point) => point.intensity), right / 100) / 3, right / 10 ** DECADES);
  const low = Math.max(Math.min(top / 16, ...peaks.map((peak) => peak / 8), ...points.map((point) => point.performance / 3)), top / 10 ** DECADES);
  return { x: [left, right].map(Math.log10), y: [low, top * Math.max(2.2, (top / low) ** 0.08)].map(Math.log10) };
}

function hueOf(hues) {
  return hues ? tone(...hues.slice(1)) : "var(--neutral)";
}

function drawChart() {
  if (!view) return;
  const { chart } = view.launch;
  const [box, width] = [byId("chart"), byId("chart").clientWidth];
  const empty = !chart.roofs.length && !chart.dots.length;
  byId("chart").parentElement.hidden = empty;
  if (empty || !width) return;
  const height = Math.round(Math.min(Math.max(0.68 * width, 300), 460));
  const [inner, tall] = [width - EDGES.left - EDGES.right, height - EDGES.top - EDGES.bottom];
  const projection = new Projection(chartRanges(chart), inner, tall);
  const plot = svgElement("g", { transform: `translate(${EDGES.left},${EDGES.top})` });
  const roofs = chart.roofs.flatMap((roof) => {
    const segment = visibleSegment(roof, chart.roofs, projection);
    return segment ? [line(...segment, { class: "roof", stroke: hueOf(roof.hues) })] : [];
  });
  plot.append(...axes(chart, projection), ...roofs, ...dotLinks(chart, projection), ...intensityTicks(projection));
  const focused = document.activeElement?.dataset?.dot;
  const floor = new Floor(inner, tall);
  const [kernel, loops] = [chart.dots, loopDots()].map((points) => points.filter((point) => isInside(point, projection)));
  const marks = marksOf(kernel, loops, projection);
  for (const { place, size } of marks) floor.mark(floor.dots, ...place, size);
  plot.append(...labelsOf(chart, projection, floor), ...marks.map((mark) => drawnMark(mark, marks)).reverse());
  const [names, unnamed] = namesOfLoops(loops, projection, floor);
  plot.append(...names);
  box.replaceChildren(svgElement("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, plot));
  if (focused) box.querySelector(`[data-dot="${focused}"]`)?.focus();
  drawKey(chart, unnamed, chart.dots.length + loopDots().length - marks.length);
}

function isInside({ intensity, performance }, { x0, x1, y0, y1 }) {
  const [x, y] = [intensity, performance].map(Math.log10);
  return x >= x0 && x <= x1 && y >= y0 && y <= y1;
}

function line(x1, y1, x2, y2, more = {}) {
  return svgElement("line", { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), ...more });
}

function label(x, y, words, more = {}) {
  return svgElement("text", { x: x.toFixed(1), y: y.toFixed(1), ...more }, words);
}

/** Whole decades of a range: every second or third where more than `most` would touch. */
function decades(low, high, most) {
  const step = Math.max(1, Math.ceil((high - low) / most));
  return Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, index) => Math.ceil(low) + index).filter((at) => at % step === 0);
}

function axes(chart, projection) {
  const found = [svgElement("rect", { class: "frame", width: projection.width, height: projection.height })];
  const [across, , upward] = chart.axes;
  for (const at of decades(projection.x0, projection.x1, projection.width / 42)) {
    const [x] = projection.pixel(at, 0);
    found.push(line(x, 0, x, projection.height, { class: "grid" }), label(x, projection.height + 15, String(Number((10 ** at).toPrecision(3))), { "text-anchor": "middle" }));
  }
  for (const at of decades(projection.y0, projection.y1, projection.height / 20)) {
    const [, y] = projection.pixel(0, at);
    found.push(line(0, y, projection.width, y, { class: "grid" }), label(-6, y + 4, formatValue(10 ** at, "count", 3), { "text-anchor": "end" }));
  }
  found.push(label(projection.width / 2, projection.height + 36, across, { "text-anchor": "middle", class: "title" }));
  const title = label(0, 0, `Performance [${PAGE.units[upward][0]}]`, { "text-anchor": "middle", class: "title" });
  title.setAttribute("transform", `translate(${-EDGES.left + 14},${projection.height / 2}) rotate(-90)`);
  return [...found, title];
}

/** A thin line between the levels of the kernel, and what the chosen loop could reach. */
function dotLinks(chart, projection) {
  const found = [];
  const places = chart.dots.map((dot) => projection.pixel(Math.log10(dot.intensity), Math.log10(dot.performance)));
  if (places.length > 1) found.push(svgElement("polyline", { class: "link-line", points: places.map((place) => place.map((at) => at.toFixed(1)).join(",")).join(" ") }));
  const loop = state.chosen && loopDots().find(isChosenLoop);
  if (loop && loop.attainable > 0) {
    const [x, y] = projection.pixel(Math.log10(loop.intensity), Math.log10(loop.performance));
    found.push(line(x, y, x, projection.pixel(0, Math.log10(loop.attainable))[1], { class: "reach" }));
  }
  return found;
}

function intensityTicks(projection) {
  return loopTicks().map((loop) => {
    const [x] = projection.pixel(Math.log10(loop.intensity), 0);
    const told = `Loop ${numberedLoop(loop)}: ${formatValue(loop.intensity, view.launch.chart.axes[1], 3)} at L1; ${loop.notes}`;
    if (x < 0 || x > projection.width) return "";
    const how = { class: `tick${isChosenLoop(loop) ? " chosen" : ""}`, "data-loop": loop.loop, onclick: () => choose({ loop: loop.loop }) };
    return svgElement("g", how, line(x, projection.height - 9, x, projection.height), svgElement("title", {}, told));
  });
}

function pixelOf({ intensity, performance }, projection) {
  return projection.pixel(Math.log10(intensity), Math.log10(performance));
}

function kernelTold(dot) {
  const { chart, kernel } = view.launch;
  const part = known(dot.fraction) ? `, ${formatPercent(dot.fraction)} of attainable` : "";
  return `${kernel}, ${chart.levels[dot.level][0]}: ${formatValue(dot.intensity, chart.axes[1], 3)}, ${formatValue(dot.performance, chart.axes[2], 3)}${part}`;
}

function loopTold(loop) {
  const share = `${formatPercent(loop.shares[0])} of the samples`;
  return `Loop ${numberedLoop(loop)}: ${share}, ${formatValue(loop.intensity, view.launch.chart.axes[1], 3)} at L1, ${rateText(loop)}`;
}

/** Discs of the kernel, on top, and diamonds of the loops, the larger the more samples; around what lies on it a rim of each is seen. */
function marksOf(kernel, loops, projection) {
  const { levels, nearest } = view.launch.chart;
  const discs = kernel.map((dot, index) => ({ dot, key: `k${index}`, told: kernelTold(dot), least: DISC, rim: RIM, hue: hueOf(levels[dot.level]) }));
  const diamonds = loops.map((loop) => ({ dot: loop, loop, key: `l${loop.loop}`, told: loopTold(loop), least: 5 + 5 * Math.sqrt(Math.min(loop.shares[0] || 0, 1)), rim: 4, hue: hueOf(levels[nearest]) }));
  const marks = [...discs, ...diamonds.reverse()];
  marks.forEach((mark, index) => {
    mark.place = pixelOf(mark.dot, projection);
    mark.size = Math.max(mark.least, ...pileAt(mark, marks.slice(0, index)).map(({ size }) => Math.min(size + mark.rim, MOST)));
  });
  return marks;
}

/** Those of some marks that a click on one may mean. */
function pileAt({ place: [x, y] }, marks) {
  return marks.filter(({ place: [left, top] }) => Math.hypot(left - x, top - y) < TARGET);
}

/** A mark that can be clicked and reached by keys; clicks choose one loop of a pile after the other, on the kernel's then none. */
function drawnMark(mark, marks) {
  const { loop, place, size, key, told, hue } = mark;
  const [chosen, pile] = [Boolean(loop) && isChosenLoop(loop), pileAt(mark, marks)];
  const loops = pile.flatMap((one) => one.loop || []);
  const target = (one) => choose(one ? { loop: one.loop } : null);
  const keys = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); target(chosen ? null : loop); } };
  const click = () => {
    const at = loops.findIndex(isChosenLoop);
    const next = loops[at + 1] || (loop && loops.length > 1 ? loops[0] : null);
    target(at < 0 ? loop || loops[0] : next);
  };
  const attributes = { class: "dot", tabindex: 0, role: "button", "aria-label": told, onclick: click, onkeydown: keys, "data-dot": key };
  const ofLoop = loop ? { "data-loop": loop.loop, "aria-pressed": String(chosen) } : {};
  const shape = loop ? svgElement("path", { d: `M0,${-size}L${size},0L0,${size}L${-size},0Z`, class: "diamond", fill: hue }) : svgElement("circle", { r: size, class: "disc", fill: hue });
  const all = pile.length > 1 ? [`${pile.length} dots lie here; each click chooses the next loop:`, ...pile.map((one) => one.told)].join("\n") : told;
  return svgElement("g", { ...attributes, ...ofLoop, transform: `translate(${place.map((at) => at.toFixed(1)).join(",")})` },
    svgElement("circle", { r: Math.max(size, TARGET), class: "target" }), shape, svgElement("title", {}, all));
}

/** Labels of the roofs where they cover nothing. */
function labelsOf({ roofs, axes: [, , unit] }, projection, floor) {
  const textsOf = (roof) => {
    const name = shorten(roof.label, 40);
    const brief = roof.kind === "compute" ? roof.text.replace(PAGE.units[unit][0], "").trim() : roof.text; // the axis says the unit
    return [`${name}: ${roof.text}${roof.origin === "measured" ? " (measured)" : ""}`, `${name}: ${roof.text}`, `${name}: ${brief}`, name];
  };
  markRoofs(roofs, projection, floor);
  return roofPlaces(roofs, textsOf, projection, floor).map((place) => turned(place, place.text, hueOf(place.roof.hues)));
}

function turned(place, words, fill) {
  const node = label(0, 4, words, { "text-anchor": "middle", class: "name", fill });
  node.setAttribute("transform", `translate(${place.x.toFixed(1)},${place.y.toFixed(1)}) rotate(${place.angle.toFixed(2)})`);
  return node;
}

/** Number and place beside each loop, the hottest first, the number alone where both have no room; and the loops that got none. */
function namesOfLoops(loops, projection, floor) {
  const [names, unnamed] = [[], []];
  for (const loop of [...loops].sort((a, b) => (b.shares[0] || 0) - (a.shares[0] || 0))) {
    const [full, number] = [shorten(numberedLoop(loop, shortLoopName(loop)), 36), String(loop.loop)];
    let place = null;
    let words = "";
    for (const [text, how] of [[full, {}], [number, {}], [number, { limit: Infinity }]]) {
      words = text;
      place = nameLabel(text, [pixelOf(loop, projection)], floor, how);
      if (place) break;
    }
    if (place?.leader) names.push(line(...place.leader.flat(), { class: "leader" }));
    if (place) names.push(turned(place, words, "var(--text)"));
    else unnamed.push(loop);
  }
  return [names, unnamed];
}

function drawKey(chart, unnamed, beyond) {
  const sign = (path, style) => svgElement("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, svgElement("path", { d: path, style }));
  const filled = (hue) => `fill:${hue};stroke:none`;
  const entries = chart.dots.map((dot) => [sign(SHAPES[0][1], filled(hueOf(chart.levels[dot.level]))), `kernel at ${chart.levels[dot.level][0]}`]);
  if (loopDots().length) entries.push([sign("M7,1L13,7L7,13L1,7Z", filled(hueOf(chart.levels[chart.nearest]))), "loop with its number, by its traffic at L1"]);
  if (unnamed.length) entries.push([`no room for the number${unnamed.length > 1 ? "s" : ""} `, ...unnamed.flatMap((loop, index) => [index ? ", " : "", link(String(loop.loop), () => choose({ loop: loop.loop }))])]);
  if (loopTicks().length) entries.push([sign("M7,4V14", "stroke-width:2"), "intensity of a loop without performance"]);
  if (beyond) entries.push([`${counted(beyond, "dot")} too far away to be shown`]);
  const of = chart.label ? [element("span", {}, `Work: ${chart.label}`)] : [];
  byId("key").replaceChildren(...of, ...entries.map((entry) => element("span", {}, ...entry)));
}
