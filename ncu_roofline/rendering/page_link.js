/* What the reader has chosen, behind the # of the address: a link to this view, and one step back per choice. */

let written = null; // what this script wrote last

/** Write what differs from the start, [[name, value], ...]; `typed` text replaces the last entry of the history. */
function writeLink(choices, typed = false) {
  const text = new URLSearchParams(choices).toString();
  if (text === written) return;
  const url = new URL(location.href);
  url.hash = text;
  const replace = typed || written === null;
  written = text;
  try {
    if (replace) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  } catch {
    // frames of notebooks may forbid it, and browsers limit how often: the page works without
  }
}

/** The choices of the address; null where it holds none of ours, as after a jump to a heading. */
function readLink() {
  const text = location.hash.slice(1);
  return text && !text.includes("=") ? null : new URLSearchParams(text);
}

/** Follow the address when the reader goes back or edits it. */
function followLink(restore) {
  addEventListener("hashchange", () => {
    const link = readLink();
    if (!link || link.toString() === written) return;
    written = link.toString();
    restore(link);
  });
}
