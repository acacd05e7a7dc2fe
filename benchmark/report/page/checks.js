// Beyond the paper's tables: the methods on their own papers' tasks, and against each other.

const FIDELITY = {
  yes: ["=", "equal"], below: ["≠", "different"], above: ["≠", "different"], "no range": ["–", "not-run"], "not run": ["–", "not-run"],
};

function fidelityView() {
  const all = data.fidelity, done = all.filter((e) => e.seconds !== undefined);
  const ranged = done.filter((e) => e.measures.every((m) => m.word !== "no range"));
  const judged = ranged.filter((e) => !e.unverified);
  const good = judged.filter((e) => e.measures.every((m) => m.word === "yes"));
  const rows = all.flatMap((e) => e.measures.map((m) => {
    const [sign, look] = FIDELITY[m.word];
    const element = h("tr", {},
      h("th.name", { scope: "row" }, e.name), h("td", {}, e.label), h("td", {}, m.name.replaceAll("_", " ")),
      h("td.right", {}, m.range ? m.range.join(" to ") : ""), h("td.right", {}, m.value ?? "–"),
      h("td", {}, h("span.chip.v-" + look, {}, h("b", { "aria-hidden": "true" }, sign), " ", m.word)),
      h("td.right", {}, e.seconds === undefined ? "" : duration(e.seconds)), h("td.why", {}, e.unverified && "Unverified: ", e.source, e.also && `. Also measured: ${e.also}`));
    return { element, keys: [e.name, e.label, m.name, m.range?.[0] ?? null, m.value ?? null, Object.keys(FIDELITY).indexOf(m.word), e.seconds ?? null, e.source] };
  }));
  return [
    h("h1", {}, "Each method on its own paper’s tasks"),
    h("p.lead", {}, "There the relevant features are known, and so is what the original reached. ",
      done.length ? `${good.length} of ${plural(judged.length, "finished experiment")} lie within the range that is accepted; the range of ${ranged.length - judged.length} more is not from a paper that was looked up and does not count; for ${done.length - ranged.length} none is known; ${all.length - done.length} of ${all.length} have not been run.`
        : `None of the ${all.length} experiments has been run yet.`),
    done.length < all.length && [h("p.note", {}, "What runs those that are missing:"), command("python -m benchmark fidelity")],
    listTable("fidelity", ["Experiment", "Method", "Measure", "Accepted", "Measured", "Within", "Time", "Source"], rows, "Fidelity"),
  ];
}

/** A plain table whose columns sort. */
function listTable(name, heads, rows, label) {
  const element = h("table.plain.cells." + name, {},
    h("thead", {}, h("tr", {}, heads.map((text, i) => sorter(i, text, { "data-first": "up" })))), h("tbody", {}));
  const original = (body) => body.replaceChildren(...rows.map((row) => row.element));
  original(element.tBodies[0]);
  sortable(element, rows, original);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, element);
}

// Pairs ------------------------------------------------------------------------------------------

function pairwiseView(wanted, start) {
  const datasets = [...new Set(data.pairs.map((p) => p.dataset))];
  const dataset = datasets.includes(wanted) ? wanted : datasets[0];
  const here = data.pairs.filter((p) => p.dataset === dataset);
  const clear = here.filter((p) => p.clear).length;
  return [
    h("h1", {}, "Every method against every other"),
    h("p.lead", {}, `On ${dataset}, ${clear} of ${plural(here.length, "pair")} of methods differ clearly.`),
    h("p.note", {}, data.rank ? data.rank.pairs : "Points of balanced accuracy over 25 paired runs with settings by the paper's rule.", " Clear (bold, with a star): p < 0.05 by the corrected " +
      "resampled t-test after Holm’s adjustment within the dataset. Methods whose runs are not complete are left out."),
    h("nav.pills", { "aria-label": "Datasets" }, datasets.map((d) => h("a", { href: `#pairwise/${d}`, "aria-current": d === dataset && "true" }, d))),
    h("h2", {}, "Row minus column"),
    matrix(here, dataset),
    h("h2", {}, "As a list"),
    filtered(here, [
      { name: "clear", label: "Clear", of: (p) => (p.clear ? "yes" : "no") },
      { name: "method", label: "First", of: (p) => p.first },
    ], (p) => `${p.first} ${p.second}`, pairList, start),
  ];
}

const minus = (text) => text.replace("-", "−");
const turned = (text) => (text.startsWith("-") ? "+" : "-") + text.slice(1);

function matrix(pairs, dataset) {
  const names = [...new Set(pairs.flatMap((p) => [p.first, p.second]))];
  const known = new Map(pairs.flatMap((p) => [[`${p.second}/${p.first}`, p], [`${p.first}/${p.second}`, { ...p, points: turned(p.points) }]]));
  const rows = names.map((row) => {
    const found = names.map((column) => known.get(`${row}/${column}`));
    const element = h("tr", {}, h("th.method", { scope: "row" }, row), found.map((p, i) =>
      p ? h("td", { class: p.clear ? "clear" : "", "data-tip": `${row} minus ${names[i]}: ${minus(p.points)} points, p = ${p.p}, adjusted ${p.p_holm}` }, minus(p.points), p.clear && "*") : h("td", {})));
    return { element, keys: [row, ...found.map((p) => (p ? Number(p.points) : null))] };
  });
  const element = h("table.values.matrix", {},
    h("thead", {}, h("tr", {}, sorter(0, "Method", { "data-first": "up", class: "method" }), names.map((name, i) => sorter(i + 1, name, {})))), h("tbody", {}));
  const original = (body) => body.replaceChildren(...rows.map((row) => row.element));
  original(element.tBodies[0]);
  sortable(element, rows, original);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": `Differences on ${dataset}` }, element);
}

function pairList(pairs) {
  const rows = pairs.map((p) => ({
    element: h("tr", { class: p.clear ? "clear" : "" }, h("th", { scope: "row" }, p.first), h("td", {}, p.second),
      h("td.right", {}, minus(p.points)), h("td.right", {}, p.p), h("td.right", {}, p.p_holm), h("td", {}, p.clear ? "yes*" : "no")),
    keys: [p.first, p.second, Number(p.points), Number(p.p), Number(p.p_holm), Number(p.p_holm)],
  }));
  return listTable("pairs", ["First", "Second", "Second minus first", "p", "p, adjusted", "Clear"], rows, "Pairs");
}
