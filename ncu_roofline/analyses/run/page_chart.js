/* The roofline of the operators of a run as plotly traces. */

const NAMED = 8; // operators with their names
const [SMALLEST, WHOLE] = [6, 46]; // pixels across the dot of no and of all the time, by area
const MATTERS = 0.005; // share of the time from which on the axes reach to a dot

function drawable(row) {
  return positive(row.intensity, row.performance);
}

function hueOf(kind) {
  return tone(...PAGE.hues[kind]);
}

/** The roof of memory, and those of what these operators do. */
function roofsOf(rows, colours) {
  const wanted = new Set(rows.map((row) => row.precision));
  const mine = PAGE.roofs.filter((roof) => roof.place === state.place && positive(roof.value) && (roof.kind === "bandwidth" || wanted.has(roof.id)));
  return mine.map((roof) => ({ ...roof, colour: roof.kind === "bandwidth" ? hueOf("memory") : colours.neutral, texts: [`${roof.label} ${formatValue(roof.value, roof.unit, 3)}`, roof.label] }));
}

function hoverText(row) {
  const lines = [
    `<b>${plotlyText(shorten(row.name, 70))}</b>`,
    `${formatPercent(row.share)} of the kernels' time: ${formatColumn("seconds", row)} in ${counted(row.calls, "call")}`,
    `needs ${formatColumn("flops", row)}${row.precision ? ` ${PAGE.roof_labels[row.precision]}` : ""} and ${formatColumn("bytes", row)}`,
    `${formatColumn("intensity", row)}, ${formatColumn("performance", row)}, ${formatColumn("bandwidth", row)}`,
    row.roof ? `${formatPercent(row.fraction)} of the ${PAGE.roof_labels[row.roof]} roof, ${formatColumn("least", row)} at it` : plotlyText(row.why),
    known(row.recoverable) ? `${formatPercent(row.recoverable)} could be saved` : "",
  ];
  return lines.filter(Boolean).join("<br>");
}

function rooflineChart(rows, colours) {
  const dots = rows.filter(drawable);
  const weighty = dots.filter((row) => row.share >= MATTERS);
  const main = weighty.length ? weighty : dots;
  const roofs = roofsOf(main, colours);
  const values = (kind) => roofs.filter((roof) => roof.kind === kind).map((roof) => Math.log10(roof.value));
  const [xs, ys] = ["intensity", "performance"].map((name) => main.map((row) => Math.log10(row[name])));
  for (const memory of values("bandwidth")) xs.push(...values("compute").map((value) => value - memory + 0.8)); // room for its value
  const range = { x: [Math.min(...xs) - 0.4, Math.max(...xs) + 0.7], y: [Math.min(...ys) - 0.4, Math.max(...ys, ...values("compute")) + 0.35] };
  const share = dots.map((row) => Math.max(SMALLEST, WHOLE * Math.sqrt(row.share || 0)));
  const place = (row) => [row.intensity, row.performance];
  const opacity = dots.map((row) => (state.chosen === null || state.chosen === row.index ? 0.9 : 0.2));
  const marks = symbols(dots.map(place), {
    customdata: dots.map((row) => row.index), meta: "operators", hoverinfo: "text", hovertext: dots.map(hoverText),
    marker: { color: dots.map((row) => hueOf(row.kind)), size: share, line: { color: colours.card, width: 1 }, opacity },
  });
  const named = [...dots].sort((a, b) => (b.recoverable || 0) - (a.recoverable || 0) || b.share - a.share).slice(0, NAMED);
  const beyond = dots.filter((row) => Math.log10(row.intensity) < range.x[0] || Math.log10(row.performance) < range.y[0]).length;
  const [traces, titles] = [[...roofTraces(roofs, range), marks], ["Arithmetic intensity: needed FLOP / needed byte", "Performance [FLOP/s]"]];
  return { ...planeOf("roofline", { traces, titles, range, named, place, avoid: dots.map(place), first: roofAnnotations(roofs, colours) }, colours), beyond };
}
