// The first view: how much of the paper reproduces.

const COMPARED = ["exact", "within noise", "differs"];

/** The title of a table of the paper, from the recipe that rebuilds it. */
function titleOf(paper) {
  const recipe = data.tables.find((table) => table.paper === paper);
  return recipe ? recipe.title.replace(/^Table \d+\. /, "") : "";
}

function overview() {
  const counts = count(data.lines, (line) => line.word);
  const n = (word) => counts.get(word) || 0;
  const total = data.lines.length;
  const compared = COMPARED.reduce((sum, word) => sum + n(word), 0);
  const numbers = [...new Set(data.lines.map((line) => line.table))];
  return [
    h("h1", {}, "How much of the paper reproduces"),
    h("p.lead", {},
      `The paper prints ${plural(total, "number")} in ${plural(numbers.length, "table")}. `,
      compared
        ? `${compared} of them can be compared with finished runs of ours: ${n("exact")} are equal in every ` +
          `printed digit, ${n("within noise")} agree within noise, ${n("differs")} differ. `
        : "None of them can be compared yet. ",
      `${plural(n("paper inconsistent"), "more contradicts", "more contradict")} the paper itself; ` +
        `${n("not run")} have not been run, and ${n("data unavailable")} need data that were not at hand.`),
    bar(counts, (word) => `#cells?verdict=${encodeURIComponent(word)}`),
    h("dl.legend", {}, [...words.values()].filter((w) => n(w.word)).map((w) =>
      h("div", {},
        h("dt", {}, h("a", { href: `#cells?verdict=${encodeURIComponent(w.word)}` }, chip(w.word)), " ", h("b", {}, String(n(w.word)))),
        h("dd", {}, w.meaning)))),
    h("p.note", {},
      "“Within noise” has to be shown, and still lets gaps of up to half a standard deviation pass; ranks, rank differences and " +
      "p-values have it unless they are shown to differ. A cell counts by the settings known to reproduce it where they were run, and otherwise by the settings that the paper’s own rule chooses. Times were " +
      "taken on other hardware than the paper’s, so they are expected to differ."),
    h("h2", {}, "Table by table"),
    h("p.note", {}, "One square is one printed number, in the paper’s order."),
    h("div.waffles", {}, numbers.map(waffle)),
    h("h2", {}, "By edition"),
    h("div.editions", {}, Object.entries(data.editions).map(([edition, meaning]) => editionBar(edition, meaning))),
    data.highlights.length > 0 && h("h2", {}, "What stands out"),
    h("ul.highlights", {}, data.highlights.map((item) =>
      h("li", {}, h("a", { href: item.link }, item.text), item.items && h("ul", {}, item.items.map((text) => h("li", {}, text)))))),
  ];
}

function editionBar(edition, meaning) {
  const lines = data.lines.filter((line) => line.ours[edition]);
  return h("div", {},
    h("p", {}, h("b", {}, edition), ": ", meaning, `. ${plural(lines.length, "cell")} with values of ours.`),
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
  const ours = line.ours[line.edition];
  return [
    `${line.label}${line.dataset ? " on " + line.dataset : ""}, ${line.metric.replaceAll("_", " ")}`,
    `paper ${line.paper}` + (ours ? `, ours ${ours[0]}, n = ${ours[1]}` : ""),
    `${symbol(line.word)} ${line.word}: ${line.why}`,
  ];
}
