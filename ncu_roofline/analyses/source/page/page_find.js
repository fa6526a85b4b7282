/* A search in source and instructions: of long listings the page holds only rows near what is seen, so the browser's own misses the others. */

const MARGIN = 40; // pixels right of what is found
let find = freshFind();

function freshFind(words = "") {
  return { words, of: view, places: [], at: -1 };
}

/** Places with some words: lines of the file that is shown, of the others, functions, instructions, then those where warps waited so. */
function placesWith(words) {
  const sought = words.toLowerCase();
  return sought ? [...linesWith(sought), ...functionsWith(sought), ...rowsWith(sought)] : [];
}

/** Lines by their text, by their number, or by the end of their file's name with it, as in F90:288. */
function linesWith(sought) {
  const [, ending, digits] = sought.match(/^(?:(.*):)?([1-9]\d{0,8})$/) || [];
  const files = filesOf().map(([file]) => file).sort((a, b) => (b === state.file) - (a === state.file));
  return files.flatMap((file) => {
    const found = PAGE.files[file].parts.flatMap(([first, texts]) => texts.flatMap((words, index) => (words.toLowerCase().includes(sought) ? [first + index] : [])));
    const named = digits && fileName(file).toLowerCase().endsWith(ending || "") && isLine(file, Number(digits)) ? [Number(digits)] : [];
    return [...new Set([...named, ...found])].map((line) => ({ file, line }));
  });
}

/** Whether the page shows a line. */
function isLine(file, line) {
  return view.lines.has(keyOf(file, line)) || PAGE.files[file].parts.some(([first, texts]) => line >= first && line < first + texts.length);
}

/** Functions by their names: the first instruction of each, or its line where all of it is inlined. */
function functionsWith(sought) {
  return view.launch.functions.filter((one) => text(one.function) && [one.name, text(one.function)].some((name) => name.toLowerCase().includes(sought))).flatMap((one) => {
    const row = view.instructions.function.indexOf(one.function);
    if (row >= 0) return [{ row, called: one.name }];
    return one.line > 0 ? [{ file: one.file, line: one.line, called: one.name }] : [];
  });
}

/** Instructions by text or offset, with or without 0x and leading zeros; then by why most warps were waiting there. */
function rowsWith(sought) {
  const { text: texts, offset, stall } = view.instructions;
  const every = Array.from({ length: view.count }, (_, row) => row);
  const at = /^(0x)?[0-9a-f]{1,12}$/.test(sought) ? parseInt(sought, 16) : NO_LINE;
  const waiting = sought.replace(/_/g, " ");
  const found = every.filter((row) => text(texts[row]).toLowerCase().includes(sought) || (offset[row] >= 0 && offset[row] === at));
  const there = new Set(found);
  return [...found, ...every.filter((row) => !there.has(row) && stallName(stall[row]).includes(waiting))].map((row) => ({ row }));
}

/** Look for what the field says, unless that was done. */
function lookFor() {
  const words = byId("find").value.trim();
  if (words !== find.words || find.of !== view) find = { ...freshFind(words), places: placesWith(words) };
}

function tellFound() {
  const { words, places, at } = find;
  const where = at < 0 ? "" : `: ${placeName(places[at])}`;
  const told = at < 0 ? `${counted(places.length, "place")}, Enter goes there` : `${at + 1} of ${places.length}${where}`;
  byId("finder").classList.toggle("going", at >= 0); // in a narrow window it then stays in sight
  byId("found").textContent = !words ? "" : places.length ? told : "not found";
}

function placeName({ file, line, row, called }) {
  const name = row === undefined ? lineName(file, line) : rowName(row);
  return called ? `${called} at ${name}` : name;
}

/** Choose the next place, or with -1 the one before, after the last the first. */
function goToFound(step) {
  lookFor();
  const count = find.places.length;
  if (count) {
    find.at = find.at < 0 && step < 0 ? count - 1 : (find.at + step + count) % count;
    const place = find.places[find.at];
    choose(place.row === undefined ? { file: place.file, line: place.line } : { row: place.row });
    tellFound();
    const pane = byId(place.row === undefined ? "source-pane" : "instruction-pane");
    pane.scrollIntoView({ block: "nearest" });
    showWords(pane, find.words.toLowerCase());
  } else tellFound();
}

/** Bring the words found into sight within their row, which may be wider than its pane, and mark them. */
function showWords(pane, sought) {
  CSS.highlights?.clear();
  const words = pane.querySelector("tr.chosen .words")?.firstChild;
  const at = words ? words.data.toLowerCase().indexOf(sought) : -1;
  pane.scrollLeft = 0;
  if (at < 0) return;
  const range = document.createRange();
  range.setStart(words, Math.min(at, words.length));
  range.setEnd(words, Math.min(at + sought.length, words.length));
  const [outer, inner] = [pane.getBoundingClientRect(), range.getBoundingClientRect()];
  pane.scrollLeft = Math.max(0, inner.right - outer.right + MARGIN);
  CSS.highlights?.set("found", new Highlight(range));
}

function wireFind() {
  byId("find").addEventListener("input", () => { lookFor(); tellFound(); });
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") goToFound(event.shiftKey ? -1 : 1);
  });
  byId("find-next").addEventListener("click", () => goToFound(1));
  byId("find-before").addEventListener("click", () => goToFound(-1));
}
