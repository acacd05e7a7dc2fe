// Lists with filters: all printed cells, the audit, claims and discrepancies.

/** Selects and a search box above a list that is drawn anew whenever one of them changes. */
function filtered(items, filters, text, draw, start) {
  const place = h("div", {});
  const status = h("p.note", { role: "status" });
  const chosen = Object.fromEntries(filters.map((f) => [f.name, start[f.name] || f.first || ""]));
  let search = "";
  const update = () => {
    const found = items.filter((item) =>
      filters.every((f) => !chosen[f.name] || String(f.of(item)) === chosen[f.name]) &&
      (!search || text(item).toLowerCase().includes(search)));
    status.textContent = `${found.length} of ${items.length}`;
    place.replaceChildren(draw(found));
  };
  const controls = filters.map((f) => {
    const options = [...new Set(items.map((item) => String(f.of(item))))];
    if (f.order) options.sort((a, b) => f.order(a) - f.order(b));
    return h("label", {}, f.label, h("select", { name: f.name, onchange: (event) => {
      chosen[f.name] = event.target.value;
      update();
    } }, h("option", { value: "" }, "all"), options.map((o) =>
      h("option", { value: o, selected: o === chosen[f.name] }, f.show ? f.show(o) : o))));
  });
  const box = h("label", {}, "Search", h("input", { type: "search", name: "search", oninput: (event) => {
    search = event.target.value.trim().toLowerCase();
    update();
  } }));
  update();
  return [h("form.filters", { onsubmit: (event) => event.preventDefault() }, controls, box, status), place];
}

const tableName = (n) => (Number(n) ? `Table ${n}` : "Text");
const wordOrder = (word) => (words.has(word) ? words.get(word).order : 99);

function cellsView(start) {
  const editions = Object.keys(data.editions);
  return [
    h("h1", {}, "Every printed number"),
    h("p.lead", {}, `All ${data.lines.length} printed cells, judged by the paper’s rule. Press a row for what is behind it.`),
    filtered(data.lines, [
      { name: "table", label: "Table", of: (l) => l.table, show: tableName },
      { name: "verdict", label: "Verdict", of: (l) => l.word, order: wordOrder },
      { name: "method", label: "Method", of: (l) => l.label },
      { name: "convergence", label: "Convergence", of: (l) => (l.flagged ? "failed" : "not flagged") },
    ], (l) => [l.label, l.method, l.dataset, l.metric, l.why, l.finding].join(" "), (lines) => cellList(lines, editions), start),
    h("details", {}, h("summary", {}, "What the verdicts mean"), data.legend.map((text) => h("p", {}, prose(text)))),
  ];
}

function cellList(lines, editions) {
  const heads = ["Table", "Method", "Dataset", "Metric", "Paper", ...editions.map((e) => upper(data.editions[e].name)), "Verdict", "Why"];
  const rows = lines.map((line) => {
    const values = editions.map((e) => (line.ours[e] ? line.ours[e][0] : ""));
    const element = h("tr", { onclick: () => openLine(line) },
      h("td", {}, String(line.table)),
      h("th", { scope: "row" }, h("button.link", { type: "button" }, line.label)),
      h("td", {}, line.dataset || "all"), h("td", {}, line.metric.replaceAll("_", " ")), h("td.right", {}, line.paper),
      values.map((v, i) => h("td.right", { class: editions[i] === "rule" ? "judged" : "" }, v)),
      h("td", {}, chip(line.word)), h("td.why", {}, line.why));
    const first = (text) => (text === "" || text === "–" ? null : parseFloat(text));
    return { element, keys: [line.table, line.label, line.dataset, line.metric, first(line.paper), ...values.map(first), wordOrder(line.word), line.why] };
  });
  const element = h("table.plain.cells", {},
    h("thead", {}, h("tr", {}, heads.map((text, i) => sorter(i, text, { "data-first": i === 4 || (i > 4 && i < 5 + editions.length) ? "down" : "up" })))),
    h("tbody", {}));
  const original = (body) => body.replaceChildren(...rows.map((row) => row.element));
  original(element.tBodies[0]);
  sortable(element, rows, original);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Printed cells" }, element);
}

const AUDIT = { holds: "=", "does not hold": "≠", "cannot tell": "?" };

function auditView(start) {
  const counts = count(data.findings, (f) => f.verdict);
  const n = (v) => counts.get(v) || 0;
  return [
    h("h1", {}, "The paper against itself"),
    h("p.lead", {}, `Whatever the paper derives from its numbers or says about them, recomputed: ${n("holds")} of ${data.findings.length} checks hold, ` +
      `${n("does not hold")} do not, ${n("cannot tell")} cannot be decided from what is published.`),
    filtered(data.findings, [
      { name: "verdict", label: "Verdict", of: (f) => f.verdict, first: "does not hold" },
      { name: "table", label: "Where", of: (f) => f.table, show: tableName },
    ], (f) => [f.id, f.where, f.claim, f.found, f.why].join(" "), (found) => h("ol.findings", {}, found.map((f) =>
      h("li", { class: "f-" + f.verdict.replaceAll(" ", "-") },
        h("h3", {}, h("b", { "aria-hidden": "true" }, AUDIT[f.verdict]), " ", f.where, " ", h("code", {}, f.id)),
        h("p", {}, h("span.label", {}, "claimed"), f.claim),
        h("p", {}, h("span.label", {}, "found"), f.found),
        f.why && h("p.note", {}, f.why)))), start),
  ];
}

function figuresView() {
  const drawn = data.figures.filter((f) => f.svg || f.png), missing = data.figures.filter((f) => !drawn.includes(f));
  const caption = (f) => [h("b", {}, figureName(f.name)), " ", upper(f.title), "."];
  return [
    h("h1", {}, "Figures"),
    h("div.figures", {}, drawn.map((f) => h("figure", { id: f.name },
      h("button.picture", { type: "button", "aria-label": `Enlarge ${figureName(f.name)}`, onclick: () => enlarge(f) }, image(f)),
      h("figcaption", {}, caption(f))))),
    missing.length > 0 && [
      h("h2", {}, "Not drawn: no records yet"),
      missing.map((f) => h("div.card", { id: f.name }, h("p", {}, caption(f)), f.gap.split("\n").map((line) => h("p.note", {}, prose(line))))),
    ],
  ];
}

const upper = (text) => text.replace(/^./, (c) => c.toUpperCase());
const figureName = (name) => upper(name.replace(/^figure(\d+)$/, "Figure $1.").replace(/^([a-z-]+)$/, "$1:").replace("-", " "));

function image(f) {
  f.url ||= f.svg ? URL.createObjectURL(new Blob([f.svg], { type: "image/svg+xml" })) : `data:image/png;base64,${f.png}`;
  return h("img", { src: f.url, alt: f.title, loading: "lazy", decoding: "async" });
}

function enlarge(f) {
  const box = document.getElementById("picture");
  const close = h("button.quiet.close", { type: "button", "aria-label": "Close", onclick: () => box.close() }, "×");
  box.replaceChildren(h("header", {}, h("h2", { id: "picture-title" }, f.title), close), h("div.large", { tabindex: "0" }, image(f)));
  box.showModal();
}

// Claims -----------------------------------------------------------------------------------------

const CLAIM_SIGNS = { holds: "=", "holds so far": "≈", undecided: "?", "does not hold so far": "≉", "does not hold": "≠", "not enough runs": "–" };

function claimsView(start) {
  const ours = count(data.claims, (c) => c.word);
  const order = Object.keys(CLAIM_SIGNS);
  const sentence = order.filter((word) => ours.get(word)).map((word) => `${word} ${ours.get(word)}`).join(", ");
  return [
    h("h1", {}, "What the paper says, checked"),
    h("p.lead", {}, `${plural(data.claims.length, "sentence")} of the paper as comparisons of cells, on the printed numbers and on our runs. On ours: ${sentence}.`),
    filtered(data.claims, [
      { name: "word", label: "On our runs", of: (c) => c.word, order: (w) => order.indexOf(w) },
      { name: "paper", label: "On the paper’s numbers", of: (c) => c.paper.word, order: (w) => order.indexOf(w) },
      { name: "topic", label: "Topic", of: (c) => c.topic },
    ], (c) => [c.id, c.where, c.claim, c.reading, c.paper.evidence, ...Object.values(c.ours).map((o) => o.evidence)].join(" "),
    (found) => h("ol.findings", {}, found.map((c) => h("li", { class: claimKind(c.word) },
      h("h3", {}, c.claim),
      h("p.note", {}, `${c.where}. `, c.reading && `Read as: ${c.reading}. `, h("code", {}, c.id)),
      outcome("paper", c.paper),
      Object.entries(c.ours).map(([edition, o]) => outcome(data.editions[edition].name, o)),
      c.ours.rule.missing && h("p.note", {}, `Missing: ${c.ours.rule.missing}.`)))), start),
  ];
}

const claimKind = (word) => "f-" + word.replaceAll(" ", "-");

function outcome(name, o) {
  return h("p", {}, h("span.label", {}, name), h("b", { class: "sign " + claimKind(o.word) }, `${CLAIM_SIGNS[o.word] || ""} ${o.word}`), ": ", o.evidence,
    o.support && ` (in ${o.support} of redraws of our runs)`);
}

// Discrepancies-----------------------------------------------------------------------------------

function discrepanciesView() {
  const measured = data.discrepancies.filter((d) => d.effects.some((e) => e.difference || Object.values(e.sides || {}).some(Boolean))).length;
  return [
    h("h1", {}, "Where text, numbers and code disagree"),
    h("p.lead", {}, `${plural(data.discrepancies.length, "place")} where the paper’s text, its printed numbers and its released code disagree or are silent: ` +
      `what each of them says, what is done here, how to get the other side, and what that changes, measured for ${measured} of them.`),
    h("p.note", {}, "Ordered by the largest measured effect on balanced accuracy. p is the corrected resampled t-test on the 25 paired runs."),
    plainTable(["", "largest effect"], data.discrepancies.filter((d) => d.largest).map((d) => [d.title, d.largest])),
    h("ol.findings", {}, data.discrepancies.map((d) => h("li", { id: `discrepancy-${d.id}` },
      h("h3", {}, d.title, " ", h("code", {}, d.id)),
      d.where && h("p.note", {}, d.where),
      h("dl.said", {}, Object.entries(d.said).map(([title, value]) => h("div", {}, h("dt", {}, title), h("dd", {}, prose(value))))),
      effects(d.effects)))),
  ];
}

/** Two sides stand beside each other, more of them below each other. */
function effects(list) {
  if (!list.length) return h("p.note", {}, "Effect: not measured.");
  const missing = [...new Set(list.flatMap((e) => e.missing || []))];
  const pairs = list.filter((e) => Object.keys(e.sides || {}).length === 2 && Object.values(e.sides).some(Boolean));
  const longer = list.filter((e) => Object.keys(e.sides || {}).length > 2);
  const labels = [...new Set(pairs.map((e) => Object.keys(e.sides).join("\n")))];
  return [
    labels.map((label) => plainTable(["measured", ...label.split("\n"), "difference", "p"],
      pairs.filter((e) => Object.keys(e.sides).join("\n") === label).map((e) => [e.what, ...Object.values(e.sides).map((v) => v || "–"), e.difference || "", e.p || ""]))),
    longer.map((e) => plainTable([e.what, "value"], Object.entries(e.sides))),
    missing.length > 0 && h("p.note", {}, "Not measured yet: ", missing.join("; "), "."),
  ];
}

function plainTable(heads, rows) {
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": heads[0] }, h("table.plain", {},
    h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, i) => (i ? h("td", {}, text.replace(/^-/, "−")) : h("th", { scope: "row" }, text))))))));
}
