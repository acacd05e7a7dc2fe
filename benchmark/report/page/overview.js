// The first view: does the main claim hold, how sure is that, what is missing.

const COMPARED = ["equal", "equivalent", "different", "inconclusive"];

/** The title of a table of the paper, from the recipe that rebuilds it. */
function titleOf(paper) {
  const recipe = data.tables.find((table) => table.paper === paper);
  return recipe ? recipe.title.replace(/^Table \d+\. /, "") : "";
}

function overview() {
  const counts = count(data.lines, (line) => line.word);
  const n = (word) => counts.get(word) || 0;
  const numbers = [...new Set(data.lines.map((line) => line.table))];
  return [
    h("h1", {}, "What was found"),
    h("div.first", {}, h("ul.answer", {}, data.answer.sentences.map((text) => h("li", {}, text))), forest(data.answer.leads)),
    kinds(),
    h("h2", {}, "Every printed number"),
    h("p.note", {}, `The paper prints ${plural(data.lines.length, "number")} in ${plural(numbers.length, "table")}. A number that is printed in several tables is counted in each of them here, and once above; all are judged by the paper’s rule.`),
    bar(counts, (word) => `#cells?verdict=${encodeURIComponent(word)}`),
    h("dl.legend", {}, [...words.values()].filter((w) => n(w.word)).map((w) =>
      h("div", {},
        h("dt", {}, h("a", { href: `#cells?verdict=${encodeURIComponent(w.word)}` }, chip(w.word)), " ", h("b", {}, String(n(w.word)))),
        h("dd", {}, w.meaning)))),
    h("h2", {}, "Table by table"),
    h("p.note", {}, "One square is one printed number, in the paper’s order."),
    h("div.waffles", {}, numbers.map(waffle)),
    shared(),
    faster(),
    h("h2", {}, "Two editions"),
    h("div.editions", {}, Object.entries(data.editions).map(([edition, { name, meaning }]) => editionBar(edition, name, meaning))),
    data.highlights.length > 0 && h("h2", {}, "What stands out"),
    h("ul.highlights", {}, data.highlights.map((item) =>
      h("li", {}, h("a", { href: item.link }, item.text), item.items && h("ul", {}, item.items.map((text) => h("li", {}, text)))))),
  ];
}

/** ProtoGate's lead over the best other method: the paper's, and ours with its interval. */
function forest(leads) {
  if (!leads.length) return null;
  const width = 460, left = 74, right = 12, row = 46, top = 8;
  const reach = leads.flatMap((l) => [l.paper, l.ours, l.low, l.high, 0]).filter((v) => v !== null && v !== undefined);
  const ticks = ticksOf(Math.min(...reach), Math.max(...reach));
  const low = Math.min(...reach, ticks[0]), high = Math.max(...reach, ticks.at(-1));
  const x = (v) => left + ((v - low) / (high - low)) * (width - left - right);
  const axis = top + row * leads.length;
  const signed = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + Math.abs(v).toFixed(1);
  const diamond = (cx, cy) => s("path", { class: "printed", d: `M${cx - 5} ${cy}L${cx} ${cy - 5}L${cx + 5} ${cy}L${cx} ${cy + 5}Z` });
  const rows = leads.map((lead, i) => {
    const y = top + row * i + 14;
    return [
      s("text", { x: 0, y: y + 9 }, lead.dataset),
      lead.paper !== null && s("g", { "data-tip": `paper: ${signed(lead.paper)} points against ${lead.paper_other}` }, diamond(x(lead.paper), y)),
      s("g", { "data-tip": `ours: ${signed(lead.ours)} points against ${lead.other}, 95 % interval ${signed(lead.low)} to ${signed(lead.high)}` },
        s("line", { class: "ours", x1: x(lead.low), x2: x(lead.high), y1: y + 14, y2: y + 14 }),
        s("circle", { class: "ours", cx: x(lead.ours), cy: y + 14, r: 4.5 })),
    ];
  });
  return h("figure.forest", {},
    h("h3", {}, "ProtoGate’s lead over the best other method, in points"),
    s("svg", { viewBox: `0 0 ${width} ${axis + 22}`, role: "img", "aria-label": leads.map((l) => `${l.dataset}: paper ${signed(l.paper ?? 0)}, ours ${signed(l.ours)}`).join("; ") },
      s("line", { class: "axis", x1: left, x2: width - right, y1: axis, y2: axis }),
      s("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: axis }),
      ticks.map((t) => s("text", { class: "quiet-text", x: x(t), y: axis + 15, "text-anchor": "middle" }, signed(t))),
      rows),
    h("figcaption", {}, "◆ paper, ● ours with 95 % interval (runs paired, corrected for the rows that they share). Left of the line another method is better; only methods complete on the dataset count. The interval does not allow for picking the best other method afterwards."));
}

/** Distinct experiments by the paper's rule, kind by kind; behind each number the one at rho = 0. */
function kinds() {
  const rows = Object.entries(data.answer.counts).map(([kind, found]) => [upper(kind),
    ...COMPARED.map((word) => {
      const [paired, unpaired] = [found.words[word] || 0, found.unpaired[word] || 0];
      return paired === unpaired ? String(paired) : `${paired} (${unpaired})`;
    }), String(found.cheaper)]);
  return rows.length > 0 && [h("h2", {}, "Distinct experiments by the paper’s rule"),
    h("p.note", {}, "A number that is printed in several tables counts once. In brackets: the count if runs on the same splits had nothing in common (ρ = 0), the conservative reading."),
    plainTable(["", ...COMPARED, "by a cheaper search"], rows)];
}

function shared() {
  const rows = data.rho.map((r) => [r.dataset, r.kind, r.value.toFixed(2), `${r.low.toFixed(2)} to ${r.high.toFixed(2)}`,
    Object.entries(r.trainings).map(([model, seeds]) => `${model} (${seeds})`).join(", ")]);
  return rows.length > 0 && [h("h2", {}, "What runs on the same splits share"),
    h("p.note", {}, "The correlation ρ between the scores of two trainings that differ in their seed only, over the 25 splits. It narrows the interval of a difference between the paper’s runs and ours; with ρ = 0, the conservative reading, fewer numbers are decided. A method that was not repeated itself takes the ρ of its kind; where that was not measured either, it counts as 0. Where the paper’s settings are others than ours, the runs share less and the interval is too narrow: the last row of a dataset has what they share where the paper’s settings are known (Ridge, SVM, Lasso)."),
    plainTable(["dataset", "runs of", "ρ", "95 % interval", "from (trainings)"], rows)];
}

function faster() {
  const rows = data.times.map((o) => [`Table ${o.table}`, o.dataset || "all", o.metric.replaceAll("_", " "), String(o.methods.length), `${o.same} of ${o.pairs}`,
    o.spearman === null ? "" : o.spearman.toFixed(2), o.ratio.toPrecision(2)]);
  return rows.length > 0 && [h("h2", {}, "Times: who is faster than whom"),
    h("p.note", {}, "Times on other hardware get no verdict. We compare only the order of the methods: pairs that come in the same order, and the rank correlation."),
    plainTable(["", "dataset", "time", "methods", "pairs in the same order", "Spearman", "ours / paper"], rows)];
}

function editionBar(edition, name, meaning) {
  const lines = data.lines.filter((line) => line.ours[edition]);
  return h("div", {},
    h("p", {}, h("b", {}, upper(name)), ": ", meaning, `. ${plural(lines.length, "cell")} with values of ours.`),
    lines.length > 0 && bar(count(lines, (line) => line.ours[edition][2])));
}

function waffle(paper) {
  const lines = data.lines.filter((line) => line.table === paper);
  const done = lines.filter((line) => COMPARED.includes(line.word)).length;
  const recipe = data.tables.find((table) => table.paper === paper);
  const name = `Table ${paper}`;
  return h("div.waffle", {},
    h("div", {},
      recipe ? h("a", { href: `#tables/${recipe.name}` }, name) : h("b", {}, name), " ",
      h("span", {}, titleOf(paper))),
    h("div.squares", { "aria-hidden": "true", onclick: (event) => {
      const line = lines[event.target.dataset.line];
      if (line) openLine(line);
    } }, lines.map((line, i) => {
      const square = h("i", { class: kind(line.word), "data-line": i, "data-tip": "" });
      square._tip = () => lineTip(line);
      return square;
    })),
    h("a.share", { href: `#cells?table=${paper}`, "aria-label": `${name}: ${done} of ${lines.length} compared` },
      h("b", {}, String(done)), ` of ${lines.length} compared`));
}

function lineTip(line) {
  const ours = line.ours.rule;
  return [
    `${line.label}${line.dataset ? " on " + line.dataset : ""}, ${line.metric.replaceAll("_", " ")}`,
    `paper ${line.paper}` + (ours ? `, ours ${ours[0]}, n = ${ours[1]}` : ""),
    `${symbol(line.word)} ${line.word}: ${line.why}`,
  ];
}
