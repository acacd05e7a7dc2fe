// One's own ranking: who stands where, what the tests say, and the scores behind it.

function rankingView() {
  const { standings, about, notes, gaps, against, title } = data.rank;
  const table = data.tables[0], place = h("div.place", {});
  append(place, tableParts(table));
  return [
    h("h1", {}, title),
    h("p.lead", {}, data.rank.lead),
    standingsTable(standings),
    h("p.note", {}, about),
    data.rank.diagram && [h("h2", {}, "Critical differences"), h("div.figures", {}, h("figure", {},
      h("button.picture", { type: "button", "aria-label": "Enlarge the diagram", onclick: () => enlarge(data.rank.diagram) }, image(data.rank.diagram)),
      h("figcaption", {}, data.rank.diagram.caption)))],
    against && [h("h2", {}, `${against} against each of the others`), testsTable(against, data.rank.tests)],
    data.pairs.length > 0 && h("p.note", {}, "Every method against every other: ", h("a", { href: "#pairwise" }, "Pairs"), "."),
    h("h2", {}, "Scores"),
    place,
    notes && h("p.note", {}, prose(notes)),
    gaps.length > 0 && h("details", {}, h("summary", {}, `${plural(gaps.length, "cell")} not complete, so not ranked there`), h("ul", {}, gaps.map((text) => h("li", {}, text)))),
  ];
}

function standingsTable(standings) {
  const rows = standings.map((one) => ({
    element: h("tr", { class: one.own ? "pinned" : "" }, h("th.method", { scope: "row" }, one.label),
      [one.rank, one.adtm].map((pair) => h("td", {}, number(pair) || "–")), [one.datasets, one.wins, one.losses].map((n) => h("td", {}, String(n)))),
    keys: [one.label, ...[one.rank, one.adtm].map((pair) => (pair.length ? Number(pair[0]) : null)), one.datasets, one.wins, one.losses],
  }));
  const heads = ["Rank", "ADTM", "Datasets", "Wins", "Losses"];
  const element = h("table.values.matrix.standings", {},
    h("thead", {}, h("tr", {}, sorter(0, "Method", { "data-first": "up", class: "method" }), heads.map((text, i) => sorter(i + 1, text, text === "Rank" ? { "data-first": "up" } : {})))), h("tbody", {}));
  const original = (body) => body.replaceChildren(...rows.map((row) => row.element));
  original(element.tBodies[0]);
  sortable(element, rows, original);
  return h("div.scroll.narrow", { tabindex: "0", role: "region", "aria-label": "Standings" }, element);
}

function testsTable(against, tests) {
  const rows = tests.map((p) => ({
    element: h("tr", { class: p.clear ? "clear" : "" }, h("th", { scope: "row" }, p.first), h("td", {}, p.dataset),
      h("td.right", {}, minus(p.points)), h("td.right", {}, p.p), h("td.right", {}, p.p_holm + (p.clear ? "*" : ""))),
    keys: [p.first, p.dataset, Number(p.points), Number(p.p), Number(p.p_holm)],
  }));
  const list = listTable("pairs", ["Other", "On", `${against} minus other`, "p", "p, adjusted"], rows, "Tests");
  list.classList.add("narrow");
  return list;
}
