/* A table as a CSV file: the units of SI, every digit, texts that no spreadsheet takes for a formula. */

/** A text as a cell; one that a spreadsheet would take for a formula gets an apostrophe before it. */
function csvText(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

function csvCell(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? (Number.isFinite(value) ? String(value) : "") : csvText(value);
}

/** Headers and rows of numbers and texts, as a file that the browser saves. */
function downloadCsv(name, headers, rows) {
  const text = [headers, ...rows].map((cells) => `${cells.map(csvCell).join(",")}\n`).join("");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: url, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The title of the page as the name of a file. */
function fileName() {
  return PAGE.title.replace(/[^A-Za-z0-9._]+/g, "-").replace(/^[-.]+|-$/g, "").slice(0, 80) || "roofline";
}
