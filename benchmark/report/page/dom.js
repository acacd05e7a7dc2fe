// What all views share: the data, building elements, verdicts, the tooltip.

const data = JSON.parse(document.getElementById("data").textContent);
const words = new Map(data.words.map((w, i) => [w.word, { ...w, order: i }]));

/** An element with attributes (`on...` are listeners) and children (text is never markup). */
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  set(element, attributes);
  append(element, children);
  return element;
}

/** The same for SVG. */
function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes);
  append(element, children);
  return element;
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child);
  }
}

/** Text in which `this` is code. */
function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

const kind = (word) => "v-" + word.replaceAll(" ", "-");
const symbol = (word) => (words.has(word) ? words.get(word).symbol : "");
const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;

/** `83.05 ± 9.93`, the standard deviation a little quieter. */
function number(pair) {
  if (!pair || !pair.length) return null;
  return [pair[0].replace("-", "−"), pair[1] !== undefined && h("small", {}, " ± " + pair[1])];
}

const plain = (pair) => (pair && pair.length ? pair.slice(0, 2).join(" ± ") : "");

/** A verdict as a word with its symbol and colour. */
function chip(word) {
  return h("span." + ["chip", kind(word)].join("."), {}, h("b", { "aria-hidden": "true" }, symbol(word)), " ", word);
}

/** A bar of verdict counts; each part can be a link. */
function bar(counts, link) {
  const total = [...counts.values()].reduce((a, b) => a + b, 0);
  const parts = [...words.keys()].filter((w) => counts.get(w));
  return h(
    "div.bar",
    { role: "img", "aria-label": parts.map((w) => `${counts.get(w)} ${w}`).join(", ") },
    parts.map((word) => {
      const share = counts.get(word) / total;
      return h(link ? "a" : "span", {
        class: kind(word), style: `flex-grow:${counts.get(word)}`, href: link && link(word), tabindex: link && "-1",
        "data-tip": `${plural(counts.get(word), "cell")} ${word} (${(100 * share).toFixed(1)} %)`,
      }, share * Math.min(innerWidth, 1500) > 46 && `${symbol(word)} ${counts.get(word)}`);
    }),
  );
}

function count(items, of) {
  const counts = new Map();
  for (const item of items) counts.set(of(item), (counts.get(of(item)) || 0) + 1);
  return counts;
}

/** A line that can be copied. */
function command(text) {
  const button = h("button.quiet", { type: "button", "aria-label": "Copy the command" }, "copy");
  const code = h("code", { tabindex: "0" }, text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code); // not allowed here: mark it, so that Ctrl+C does
      button.textContent = "marked";
    }
    setTimeout(() => (button.textContent = "copy"), 1600);
  });
  return h("div.command", {}, code, button);
}

// Tooltip: whatever has `data-tip`, on hovering and on focus.

const tip = document.getElementById("tip");

function showTip(target) {
  const lines = typeof target._tip === "function" ? target._tip() : [target.dataset.tip];
  tip.replaceChildren(...lines.filter(Boolean).map((line) => h("div", {}, line)));
  tip.hidden = false;
  const box = target.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), innerWidth - width - 8);
  const above = box.top - height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}

const hideTip = () => (tip.hidden = true);

function followTip() {
  const focused = document.activeElement;
  if (!tip.hidden && focused.matches("[data-tip]:focus-visible")) showTip(focused);
  else hideTip();
}

document.addEventListener("scroll", followTip, true); // moving the focus may scroll, and the tip goes along
for (const type of ["mouseover", "focusin"]) {
  document.addEventListener(type, (event) => {
    const target = event.target.closest && event.target.closest("[data-tip]");
    // A touch opens what it touches; a tooltip would only cover it.
    if (target && (type !== "focusin" || target.matches(":focus-visible"))) showTip(target);
    else hideTip();
  });
}
for (const type of ["mouseleave", "focusout", "click"]) document.addEventListener(type, hideTip, true);
document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());

// Tables whose columns sort: descending, ascending, then as it was.

/** `rows` hold {element, keys}; a header with a column number sorts by keys[number]. */
function sortable(table, rows, original) {
  const body = table.tBodies[0];
  const headers = [...table.querySelectorAll("th[data-sort]")];
  const state = { column: null, direction: 0 };
  const order = (header) => {
    const first = header.dataset.first === "up" ? 1 : -1;
    const column = Number(header.dataset.sort);
    state.direction = state.column !== column ? first : state.direction === first ? -first : 0;
    state.column = state.direction ? column : null;
    for (const other of headers) {
      const on = other === header && state.direction;
      other.setAttribute("aria-sort", on ? (state.direction > 0 ? "ascending" : "descending") : "none");
    }
    if (!state.direction) return original(body);
    const worth = (row) => row.keys[column];
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [worth(a), worth(b)];
      const [noX, noY] = [x === null || x === undefined || x === "", y === null || y === undefined || y === ""];
      if (noX || noY) return noX - noY; // nothing comes last, whichever way
      return state.direction * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en"));
    });
    body.replaceChildren(...sorted.map((row) => row.element));
  };
  for (const header of headers) header.firstElementChild.addEventListener("click", () => order(header));
}

/** A header cell that sorts. */
function sorter(column, content, attributes) {
  return h("th", { scope: "col", "data-sort": column, "aria-sort": "none", ...attributes },
    h("button.sort", { type: "button" }, content, h("i", { "aria-hidden": "true" })));
}
