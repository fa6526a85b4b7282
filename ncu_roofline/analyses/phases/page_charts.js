/* The two charts of a launch as plotly traces: bands over time, and the path of its slices under the roofs. */

const LAST_COLOUR = 0.95; // of the scale: its end is too pale on white
const PILE = 4; // slices on each other whose number is said
const LOW_AXIS = 16; // times below the peak that the axis of performance reaches at least

function hue(colours, theme) {
  return colours ? tone(...colours) : theme.neutral;
}

function sliceText(launch, slice) {
  return `${formatValue(launch.edges[slice], "second", 3)} to ${formatValue(launch.edges[slice + 1], "second", 3)}`;
}

/** One row of bars per band above each other, on one axis of time. */
function bandsChart(launch, theme, chosen) {
  const widths = launch.edges.slice(1).map((end, slice) => end - launch.edges[slice]);
  const middles = widths.map((width, slice) => launch.edges[slice] + width / 2);
  const count = launch.bands.length;
  const time = { range: [0, launch.seconds], title: { text: "Time", font: { size: 12 }, standoff: 6 }, tickformat: "~s", ticksuffix: "s", color: theme.muted, showgrid: false, zeroline: false,
      linecolor: theme.line, showline: true, ticks: "outside", ticklen: 4, anchor: `y${count > 1 ? count : ""}` };
  const layout = layoutOf(time, undefined, theme, { margin: { l: 92, r: 26, t: 8, b: 40 }, bargap: 0 });
  const traces = launch.bands.map((band, row) => {
    const name = row ? String(row + 1) : "";
    const most = Math.max(1, ...band.values.filter(known));
    layout[`yaxis${name}`] = { domain: [1 - (row + 0.92) / count, 1 - row / count], range: [0, most], fixedrange: true, tickvals: [0.5 * most], ticktext: [plotlyText(band.label)], ticks: "",
      color: theme.text, gridcolor: theme.line, zeroline: false, showline: true, linecolor: theme.line, mirror: true };
    const opacity = band.values.map((_, slice) => (chosen === null || chosen === slice ? 1 : 0.35));
    const hovertext = band.values.map((value, slice) => `${plotlyText(band.label)} ${formatPercent(value)}<br>${sliceText(launch, slice)}`);
    return { type: "bar", x: middles, y: band.values, width: widths, yaxis: `y${name}`, marker: { color: hue(band.colours, theme), opacity, line: { width: 0 } }, hoverinfo: "text", hovertext,
      customdata: band.values.map((_, slice) => slice), meta: "band" };
  });
  const end = launch.edges[launch.edges.length - 1];
  if (launch.cut) {
    layout.shapes = [{ type: "rect", xref: "x", yref: "paper", x0: end, x1: launch.seconds, y0: 0, y1: 1, fillcolor: theme.line, opacity: 0.6, line: { width: 0 } }];
    layout.annotations = [{ xref: "x", yref: "paper", x: (end + launch.seconds) / 2, y: 0.5, text: "not sampled", showarrow: false, textangle: -90, font: { color: theme.muted, size: 12 } }];
  }
  return { traces, layout };
}

/** Limits of both axes in decades: all dots, and the ridge where there is one. */
function pathRange(path) {
  const ridge = positive(path.compute_roof, path.bandwidth_roof) ? path.compute_roof / path.bandwidth_roof : null;
  const xs = [...path.intensity, ...(ridge ? [ridge, ridge / 4] : [])].map(Math.log10);
  const tops = [...path.performance, ...(positive(path.compute_roof) ? [path.compute_roof] : [])].map(Math.log10);
  const top = Math.max(...tops);
  const low = Math.min(Math.min(...path.performance.map(Math.log10)) - 0.4, top - Math.log10(LOW_AXIS));
  return { x: [Math.min(...xs) - 0.3, Math.max(...xs) + 0.6], y: [low, top + 0.35] };
}

/** The roofs of a path, as far as they are known. */
function roofsOf(path, theme) {
  const roofs = [
    { kind: "bandwidth", value: path.bandwidth_roof, colour: hue(path.colours, theme), name: path.level, unit: "byte/s" },
    { kind: "compute", value: path.compute_roof, colour: theme.neutral, name: path.name, unit: `${path.unit}/s` },
  ];
  return roofs.filter(({ value }) => positive(value)).map((roof) => ({ ...roof, texts: [`${roof.name} ${formatValue(roof.value, roof.unit, 3)}`, roof.name] }));
}

/** For each dot the dots that lie on it, itself too: those less than a hundredth of the axes from the first. */
function pilesOf(path, range) {
  const place = (values, i, [low, high]) => (100 * Math.log10(values[i])) / (high - low);
  const found = [];
  return path.slices.map((_, i) => {
    const at = [place(path.intensity, i, range.x), place(path.performance, i, range.y)];
    const there = found.find((one) => Math.hypot(one.at[0] - at[0], one.at[1] - at[1]) < 1);
    if (there) there.pile.push(i);
    else found.push({ at, pile: [i] });
    return (there || found[found.length - 1]).pile;
  });
}

/** Rings from the first slice, outside, to the last. */
function dotSize(pile, i) {
  const widest = 8 * Math.min(1 + 0.3 * Math.sqrt(pile.length - 1), 2.4);
  return widest - ((widest - 5) * pile.indexOf(i)) / Math.max(pile.length - 1, 1) * (pile.length > 1);
}

function pileText(launch, path, pile) {
  const [first, last] = [path.slices[pile[0]], path.slices[pile[pile.length - 1]]];
  return pile.length > 1 ? [`${pile.length} slices lie here, from ${formatValue(launch.edges[first], "second", 3)} to ${formatValue(launch.edges[last + 1], "second", 3)}; the last:`] : [];
}

function pathChart(launch, path, theme, chosen) {
  const range = pathRange(path);
  const last = Math.max(launch.edges.length - 2, 1);
  const places = path.slices.map((_, i) => [path.intensity[i], path.performance[i]]);
  const joined = places.flatMap((place, i) => (i > 0 && path.slices[i] !== path.slices[i - 1] + 1 ? [[null, null], place] : [place]));
  const piles = pilesOf(path, range);
  const hovertext = path.slices.map((slice, i) => [...pileText(launch, path, piles[i]), sliceText(launch, slice), formatValue(path.performance[i], `${path.unit}/s`, 3), formatValue(path.intensity[i], `${path.unit}/byte`, 3)].join("<br>"));
  const size = path.slices.map((slice, i) => (slice === chosen ? 14 : dotSize(piles[i], i)));
  const opacity = path.slices.map((slice) => (chosen === null || slice === chosen ? 1 : 0.45));
  const rims = { color: theme.muted, width: piles.map(([first], i) => (first === i ? 0.8 : 0)) };
  const high = distinct(piles).filter((pile) => pile.length >= PILE);
  const roofs = roofsOf(path, theme);
  const traces = [
    ...roofTraces(roofs, range), line(joined.map(([x]) => x), joined.map(([, y]) => y), theme.muted, { meta: "path" }),
    symbols(places, {
      customdata: path.slices, hoverinfo: "text", hovertext, meta: "slices",
      marker: { color: path.slices, colorscale: "Viridis", cmin: 0, cmax: last / LAST_COLOUR, size, opacity, line: rims },
    }),
    textsAt(high.map(([i]) => places[i]), high.map((pile) => `${pile.length} slices<br> `), "top center", theme.text, "pile"),
  ];
  const [intensity, performance] = ["byte", "s"].map((per) => PAGE.units[`${path.unit}/${per}`][0]);
  const titles = [`${plotlyText(path.level)}: arithmetic intensity [${intensity}]`, `Performance, ${plotlyText(path.name)} [${performance}]`];
  return planeOf("path", { traces, titles, range, named: [], avoid: places, first: roofAnnotations(roofs, theme), axes: { showgrid: true, gridcolor: theme.line } }, theme);
}
