/* What a reader takes along: a menu; and the keys: a dialog. */

/** Text as Markdown that shows it literally; the same marks as `escape` of rendering/table.py. */
function markdownText(text) {
  const plain = text.replace(/\s+/g, " ").replace(/\p{C}/gu, "").trim().replace(/@(?=[\p{L}\p{N}_])/gu, "@\u200b");
  const entities = '<>&@$|`":.';
  return plain.replace(/[\\*_{}[\]()#!~^<>&@$|`"]|^[-+=]|:(?! )|(?<=[wW]{3})\./g, (mark) => (entities.includes(mark) ? `&#${mark.charCodeAt(0)};` : `\\${mark}`));
}

/** Title, sentences and the rows in sight, as Markdown for a comment. */
function pageMarkdown(rows) {
  const told = [...document.querySelectorAll("#answer p, #answer li, .headline")].filter((one) => one.checkVisibility()).map((one) => `- ${markdownText(one.textContent)}`);
  const text = (shown) => markdownText(String(shown?.textContent ?? shown ?? ""));
  const cell = (column, row) => text((column.number ? "" : column.value(row)) || column.show(row));
  const lines = [COLUMNS.map(({ label }) => markdownText(label)), COLUMNS.map(({ number }) => (number ? "--:" : ":--")), ...rows.slice(0, state.rows).map((row) => COLUMNS.map((column) => cell(column, row)))];
  const parts = [`## ${markdownText(PAGE.title)}`, told.join("\n"), lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n"), rows.length > state.rows && `and ${counted(rows.length - state.rows, "row")} more`];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** The menu: `rows()` of the table, which a file has with all columns that `saved()` gives; `picture` gives a file of a format. */
function wireMenu({ rows, saved = () => COLUMNS, picture } = {}) {
  const menu = byId("menu");
  const [summary, list] = menu.children;
  const copy = (text) => copyText(text, summary, () => {
    list.querySelector("textarea")?.remove();
    list.append(element("textarea", { readonly: true, rows: 5, "aria-label": "Copy this text" }, text));
    menu.open = true;
    list.lastElementChild.select();
  });
  const entries = [
    rows && ["copy-markdown", "Copy as Markdown", () => copy(pageMarkdown(rows()))],
    ["copy-link", "Copy link to this view", () => copy(new URL(`#${new URLSearchParams(choices())}`, location.href).href)],
    ...["png", "svg"].map((format) => picture && [`save-${format}`, `Download ${format.toUpperCase()}`, () => picture(format)]),
    rows && ["save", "Download CSV", () => saveRows(saved(), rows())],
  ].filter(Boolean);
  const close = () => { if (list.contains(document.activeElement)) summary.focus(); menu.open = false; };
  list.append(...entries.map(([id, text, act]) => element("button", { type: "button", id, onclick: () => { close(); act(); } }, text)));
  menu.hidden = false;
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape" && menu.open) { event.stopPropagation(); close(); } });
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
}

/** "?" shows the keys, "/" goes to the filter; not while a text is typed. */
function wireKeys() {
  const [keys, filter] = [byId("keys"), document.querySelector('input[type="search"]')];
  byId("help").hidden = false;
  byId("help").addEventListener("click", () => keys.showModal());
  keys.querySelector("button").addEventListener("click", () => keys.close());
  keys.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    if (event.key === "?") keys.showModal();
    else if (event.key === "/" && filter?.checkVisibility()) filter.focus();
    else return;
    event.preventDefault();
  });
}

/** Names with which sentences of the answer begin become buttons that `pick` their row: of those on the GPU the longest name, of namesakes that of the step or report told. */
function wireSentences(rows, name, device, pick) {
  for (const item of document.querySelectorAll("#answer li")) {
    const [text, where] = [item.textContent, item.closest("[data-device]")?.dataset.device];
    const rest = (row) => text.slice(name(row).length);
    const named = rows.filter((row) => name(row) && (where ?? device(row)) === device(row) && text.startsWith(name(row)) && /^[:,[ ]/.test(rest(row)));
    const longest = Math.max(...named.map((row) => name(row).length));
    const namesakes = named.filter((row) => name(row).length === longest);
    const row = namesakes.find((one) => rest(one).startsWith(one.label ? `, ${one.label}:` : ` [${one.report?.replace(/.*[\\/]|\.[^.]*$/g, "")}]`)) || namesakes[0];
    if (row) item.replaceChildren(element("button", { type: "button", class: "link", title: "Its dots alone; once more: all", onclick: () => pick(row) }, name(row)), rest(row));
  }
}
