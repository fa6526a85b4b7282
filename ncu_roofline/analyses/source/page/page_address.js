/* The reader's choices as the address has them. */

const CHOICES = {
  kernel: { of: "launch", read: launchOf },
  by: { of: "by", read: (text) => measuresOf(view.launch).find((measure) => measure.id === text)?.id },
  file: { of: "file", write: (file) => (file === null ? "" : fileName(file)), read: (text, { by }) => filesOf(by).map(([file]) => file).find((file) => fileName(file) === text) },
  loop: chosenBy(({ loop }) => loop, (text) => [...view.loops.keys()].filter((id) => String(id) === text).map((loop) => ({ loop }))),
  line: chosenBy(({ file, line, of }) => (line === undefined ? undefined : lineAddress({ file, line, of })), (text, { file }) =>
    [...view.lines.values()].filter((line) => lineAddress(line) === text && (line.line < 0 || line.file === file)).map(targetOf)),
  at: chosenBy(({ row }) => (row === undefined ? undefined : addressOf(row)), (text) =>
    Array.from({ length: view.count }, (_, row) => ({ row })).filter(({ row }) => addressOf(row) === text)),
  theme: THEME,
};

/** One kind of place that may be chosen: what an address says of it, and the places that this may mean. */
function chosenBy(write, read) {
  return { of: "chosen", write: (chosen) => String((chosen && write(chosen)) ?? ""), read: (text, made) => read(text, made)[0] };
}

/** The place of the launch that an address names. */
function launchOf(text) {
  return /^\d{1,6}$/.test(text) && PAGE.launches[Number(text)] ? Number(text) : 0;
}

/** A line as its number, that of code without one with the number of its function. */
function lineAddress({ line, of }) {
  return line < 0 ? `${line}.${functionNumber(of)}` : String(line);
}

function functionNumber(place) {
  return view.launch.functions.findIndex((one) => one.function === place);
}

/** An instruction as number of its function and offset in it, or as address where the function is not known. */
function addressOf(row) {
  const { function: functions, offset, address } = view.instructions;
  if (offset[row] < 0) return address[row];
  return `${functionNumber(functions[row])}.${offset[row].toString(16)}`;
}

/** Of the launch in sight; with a `link` that of the launch that it names comes into sight. */
function freshState(link = null) {
  if (link && PAGE.launches.length) view = viewOf(PAGE.launches[launchOf(link.get("kernel"))]);
  const by = view && (measuresOf(view.launch)[0] || PAGE.measures[0]).id;
  return { launch: 0, file: view && (filesOf(by)[0]?.[0] ?? null), by, chosen: null, theme: "" };
}
