/* What a reader takes along: a menu; and the keys: a dialog. */

/** Text as Markdown that shows it literally; the same marks as `escape` of rendering/table.py. */
function markdownText(text) {
  const plain = text.replace(/\s+/g, " ").replace(/\p{C}/gu, "").trim().replace(/@(?=[\p{L}\p{N}_])/gu, "@\u200b");
  const entities = '<>&@$|`":.';
  return plain.replace(/[\\*_{}[\]()#!~^<>&@$|`"]|^[-+=]|:(?! )|(?<=[wW]{3})\./g, (mark) => (entities.includes(mark) ? `&#${mark.charCodeAt(0)};` : `\\${mark}`));
}

/** Title, sentences and the rows in sight, as Markdown for a comment. */
function pageMarkdown({ columns, rows }) {
  const told = [...document.querySelectorAll("#answer p, #answer li, .headline")].filter((one) => one.checkVisibility()).map((one) => `- ${markdownText(one.textContent)}`);
  const cell = (column, row) => {
    const shown = column.number ? "" : column.value(row);
    const text = shown || column.show(row);
    return markdownText(String(text?.textContent ?? text ?? ""));
  };
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const table = [line(columns.map(({ label }) => markdownText(label))), line(columns.map(({ number }) => (number ? "--:" : ":--"))), ...rows.slice(0, state.rows).map((row) => line(columns.map((column) => cell(column, row))))];
  const rest = rows.length > state.rows ? [`and ${counted(rows.length - state.rows, "row")} more`] : [];
  return `${[`## ${markdownText(PAGE.title)}`, told.join("\n"), table.join("\n"), ...rest].filter(Boolean).join("\n\n")}\n`;
}

/** The address of this view, also where the page may not write it. */
function viewLink() {
  const url = new URL(location.href);
  url.hash = new URLSearchParams(choices()).toString();
  return url.href;
}

/** To the clipboard; where there is none a text to be copied stands in the menu. */
async function takeText(menu, text) {
  const summary = menu.querySelector("summary");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = element("textarea", { readonly: true, rows: 5, "aria-label": "Copy this text" }, text);
    menu.querySelector("textarea")?.remove();
    menu.lastElementChild.append(box);
    menu.open = true;
    box.select();
    return;
  }
  summary.textContent = "Copied";
  setTimeout(() => { summary.textContent = "Share"; }, 1500);
}

/** The menu: a `table` gives {columns, rows, save}, a `picture` a file of a format. */
function wireMenu({ table = null, picture = null } = {}) {
  const menu = byId("menu");
  const entries = [
    ...(table ? [["copy-markdown", "Copy as Markdown", () => takeText(menu, pageMarkdown(table()))]] : []),
    ["copy-link", "Copy link to this view", () => takeText(menu, viewLink())],
    ...(picture ? ["png", "svg"].map((format) => [`save-${format}`, `Download ${format.toUpperCase()}`, () => picture(format)]) : []),
    ...(table ? [["save", "Download CSV", () => table().save()]] : []),
  ];
  const close = () => {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  };
  menu.lastElementChild.replaceChildren(...entries.map(([id, text, act]) => element("button", { type: "button", id, onclick: () => { close(); act(); } }, text)));
  menu.hidden = false;
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    close();
  });
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
}

/** "?" shows the keys, "/" goes to the filter; not while a text is typed. */
function wireKeys() {
  const keys = byId("keys");
  byId("help").hidden = false;
  byId("help").addEventListener("click", () => keys.showModal());
  keys.querySelector("button").addEventListener("click", () => keys.close());
  keys.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    if (event.key === "?") keys.showModal();
    else if (event.key === "/" && byId("query")?.checkVisibility()) byId("query").focus();
    else return;
    event.preventDefault();
  });
}

/** Those of some rows with whose name a text begins, the longest name first. */
function namedIn(text, rows, name) {
  const ends = (row) => text.startsWith(name(row)) && /^[:,[ ]/.test(text.slice(name(row).length));
  return rows.filter((row) => name(row) && ends(row)).sort((a, b) => name(b).length - name(a).length);
}

/** A name with which a sentence of the answer begins becomes a button: `find(text, device)` gives the name and what it does. */
function wireSentences(find) {
  for (const item of document.querySelectorAll("#answer li")) {
    const [name, pick] = find(item.textContent, item.closest("[data-device]")?.dataset.device) || [];
    if (name) item.replaceChildren(element("button", { type: "button", class: "link", title: "Its dots alone; once more: all", onclick: pick }, name), item.textContent.slice(name.length));
  }
}
