// One table at a time, the paper's values and ours side by side.

let edition = Object.keys(data.editions)[0];

/** Our cell in the chosen edition; where that has none, the one by the paper's rule, marked as such. */
function cellOf(table, row, column, wanted = edition) {
  table.index ||= new Map(table.cells.map((cell) => [`${cell.row}/${cell.column}/${cell.edition}`, cell]));
  return table.index.get(`${row}/${column}/${wanted}`) || table.index.get(`${row}/${column}/rule`);
}

function tablesView(name) {
  const described = data.described || [];
  const table = [...data.tables, ...described].find((t) => t.name === name) || data.tables[0];
  const number = (t) => (/^table\d+$/.test(t.name) ? Number(t.name.slice(5)) : Infinity);
  const all = [...data.tables, ...described].sort((a, b) => number(a) - number(b) || 0);
  const pills = h("nav.pills", { "aria-label": "Tables" }, all.map((t) =>
    h("a", { href: `#tables/${t.name}`, "aria-current": t === table && "true" },
      /^table\d+$/.test(t.name) ? `Table ${t.name.slice(5)}` : t.name)));
  const place = h("div.place", {});
  const draw = () => {
    place.replaceChildren();
    append(place, table.cells ? tableParts(table) : describedParts(table));
  };
  if (!table.recovered) edition = "rule";
  const choice = h("fieldset.segments", {}, h("legend", {}, "Edition"), Object.keys(data.editions).map((e) =>
    h("label", {}, h("input", { type: "radio", name: "edition", value: e, checked: e === edition, onchange: () => {
      edition = e;
      draw();
    } }), h("span", {}, data.editions[e].name))));
  draw();
  if (data.rank) return [h("h1", {}, table.title), place];
  requestAnimationFrame(() => pills.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" }));
  return [h("h1", {}, table.title), pills, table.recovered ? choice : null, place];
}

function tableParts(table) {
  const counts = count(table.cells.filter((cell) => cell.edition === edition), (cell) => cell.word);
  const starred = edition !== "rule";
  return [
    table.recovered && h("p.note", {}, h("b", {}, upper(data.editions[edition].name)), ": ", data.editions[edition].meaning, ". ",
      starred && "A star marks a cell by the paper's rule, where no such settings are known."),
    counts.size > 0 && !data.rank && bar(counts),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": table.title }, tableElement(table)),
    collapsed(table),
    !data.rank && h("div.counts", {}, [...words.values()].filter((w) => counts.get(w.word)).map((w) => h("span", {}, chip(w.word), ` ${counts.get(w.word)}`))),
    h("p.note", {}, table.about, " Click a cell, or press Enter on it, for its runs."),
    table.cells.some((cell) => cell.unconverged) && h("p.note", {}, prose(data.flag.meaning)),
    table.ranking && h("p.note", {}, table.ranking),
  ];
}

/** A table that describes: datasets, or what is searched. */
function describedParts(table) {
  return [plainTable(["", "", "paper", "ours", ""], table.rows), h("p.note", {}, table.about)];
}

/** Columns without a number of ours, which take no room until they are asked for. */
function emptyColumns(table) {
  const filled = new Set(table.cells.filter((cell) => cell.value).map((cell) => cell.column));
  return filled.size ? table.columns.map((_, c) => c).filter((c) => !filled.has(c)) : [];
}

function collapsed(table) {
  const empty = emptyColumns(table);
  if (!empty.length) return null;
  const whole = (dataset) => table.columns.every((column, c) => column.dataset !== dataset || empty.includes(c));
  const names = [...new Set(empty.map((c) => {
    const { dataset, heading } = table.columns[c];
    return dataset && whole(dataset) ? dataset : [dataset, heading].filter(Boolean).join(" ");
  }))];
  return h("p.note", {}, table.whole ? "Without runs of ours: " : "Left out, because no run of ours is there yet: ", h("b", {}, names.join(", ")), ". ",
    h("button.quiet.only-screen", { type: "button", onclick: (event) => {
      table.whole = !table.whole;
      const place = event.target.closest(".place");
      place.replaceChildren();
      append(place, tableParts(table));
    } }, table.whole ? "hide them" : data.rank ? "show why" : "show what the paper prints"));
}

function tableElement(whole) {
  const left = whole.whole ? [] : emptyColumns(whole);
  const kept = whole.columns.map((_, c) => c).filter((c) => !left.includes(c));
  // The rest of the drawing sees only the columns that are shown.
  const table = left.length === 0 ? whole : {
    ...whole, index: undefined, columns: kept.map((c) => whole.columns[c]),
    rows: whole.rows.map((row) => ({ ...row, printed: kept.map((c) => row.printed[c]) })),
    cells: whole.cells.filter((cell) => kept.includes(cell.column)).map((cell) => ({ ...cell, column: kept.indexOf(cell.column), whole: [whole, cell] })),
  };
  const hasPaper = table.columns.map((_, c) => table.rows.some((row) => row.printed[c]));
  const grouped = table.columns.some((column) => column.group);
  const best = table.columns.map((column, c) => (column.ranked ? bestOf(table, c) : null));
  const rows = table.rows.map((row, r) => rowOf(table, row, r, hasPaper, best));
  const original = (body) => {
    const elements = [];
    const families = new Set(table.rows.map((row) => row.family));
    const pinned = table.rows.length > 8 && !data.rank ? table.rows.findIndex((row) => row.method === "protogate") : -1;
    if (pinned >= 0) {
      rows[pinned].element.classList.add("pinned");
      elements.push(rows[pinned].element);
    }
    rows.forEach((row, r) => {
      if (r === pinned) return;
      const family = table.rows[r].family;
      if (families.size > 1 && !data.rank && (r === 0 || table.rows[r - 1].family !== family)) {
        elements.push(h("tr.family", {}, h("th", { scope: "colgroup" }, family), h("td", { colspan: row.keys.length - 1 })));
      }
      elements.push(row.element);
    });
    body.replaceChildren(...elements);
  };
  const element = h("table.values", {}, h("thead", {}, headRows(table, hasPaper, grouped)), h("tbody", {}));
  original(element.tBodies[0]);
  sortable(element, rows, original);
  rove(element);
  return element;
}

function headRows(table, hasPaper, grouped) {
  const depth = grouped ? 3 : 2;
  const width = (c) => (hasPaper[c] ? 2 : 1);
  const groups = h("tr", {}), names = h("tr", {}), sides = h("tr", {});
  const method = sorter(0, "Method", { rowspan: depth, "data-first": "up", class: "method" });
  (grouped ? groups : names).append(method);
  let key = 1;
  const pair = (label, both, up, start, theirs = "paper") => {
    const attributes = up ? { "data-first": "up" } : {};
    if (both) sides.append(sorter(key++, theirs, { ...attributes, class: "paper" + start + (theirs === "paper" ? "" : " narrow"), "aria-label": `${label}, paper` }));
    sides.append(sorter(key++, data.rank ? "mean ± sd" : "ours", { ...attributes, class: both ? "" : start.trim(), "aria-label": `${label}, ours` }));
  };
  table.columns.forEach((column, c) => {
    if (grouped && (c === 0 || table.columns[c - 1].group !== column.group)) {
      const together = table.columns.map((other, i) => (other.group === column.group ? width(i) : 0));
      groups.append(h("th.start", { scope: "colgroup", colspan: together.reduce((a, b) => a + b) }, column.group));
    }
    names.append(h("th.start", { scope: "colgroup", colspan: width(c) }, column.heading));
    pair([column.group, column.heading].filter(Boolean).join(" "), hasPaper[c], column.timed, " start");
  });
  table.summaries.forEach((summary, i) => {
    if (grouped && i === 0) groups.append(h("th.start", { colspan: (data.rank ? 1 : 2) * table.summaries.length, scope: "colgroup" }, "over datasets"));
    names.append(h("th.start", { scope: "colgroup", colspan: data.rank ? 1 : 2 }, summary.heading));
    pair(summary.heading, !data.rank, summary.name === "mean_rank", " start", summary.same ? "same cells" : "paper");
  });
  return grouped ? [groups, names, sides] : [names, sides];
}

/** The largest value of a column, the paper's and ours. */
function bestOf(table, c) {
  const largest = (values) => Math.max(...values.filter((x) => !Number.isNaN(x)));
  return {
    paper: largest(table.rows.map((row) => (row.printed[c] ? Number(row.printed[c].value[0]) : NaN))),
    ours: largest(table.rows.map((_, r) => {
      const cell = cellOf(table, r, c);
      return cell && cell.value && !cell.reason ? Number(cell.value[0]) : NaN;
    })),
  };
}

function rowOf(table, row, r, hasPaper, best) {
  const keys = [row.label];
  const element = h("tr", {}, h("th.method", { scope: "row" }, row.label));
  const worth = (pair) => (pair && !Number.isNaN(Number(pair[0])) ? Number(pair[0]) : null);
  table.columns.forEach((column, c) => {
    const printed = row.printed[c];
    if (hasPaper[c]) {
      keys.push(worth(printed && printed.value));
      const top = best[c] && keys.at(-1) === best[c].paper ? "best" : "";
      element.append(h("td", { class: `paper start ${top}` }, printed && number(printed.value),
        printed && printed.doubt && h("sup", { "data-tip": `The audit doubts this number: ${printed.doubt}` }, "!")));
    }
    const cell = cellOf(table, r, c);
    keys.push(worth(cell && cell.value));
    const top = best[c] && !(cell && cell.reason) && keys.at(-1) === best[c].ours ? "best" : "";
    element.append(h("td", { class: `ours ${hasPaper[c] ? "" : "start"} ${top}` }, cell && cellButton(table, cell)));
  });
  for (const summary of table.summaries) {
    const cell = (summary.editions[edition] || [])[r] || {};
    if (!data.rank) keys.push(worth(cell.paper));
    keys.push(worth(cell.value));
    const ours = cell.value && h("span", { "data-tip": "", class: cell.word ? kind(cell.word) : "" },
      number(cell.value), cell.n && summary.name === "mean_rank" && h("small", {}, ` (${cell.n})`), " ", h("b", {}, COMPARED.includes(cell.word) ? symbol(cell.word) : ""));
    if (ours) ours._tip = () => [`${summary.heading} over ${plural(cell.n, "dataset")}`, cell.printed && !cell.as_printed && `the paper prints ${plain(cell.printed)}, over all its methods and datasets`, cell.word && `${symbol(cell.word)} ${cell.word}: ${cell.why}`];
    append(element, [!data.rank && h("td.paper.start", {}, number(cell.paper)), h(data.rank ? "td.ours.summary.start" : "td.ours.summary", {}, ours)]);
  }
  return { element, keys };
}

function cellButton(table, cell) {
  const star = cell.edition !== edition ? "*" : "";
  const button = h("button", {
    type: "button", class: kind(cell.word), tabindex: "-1", "data-tip": "", "data-cell": "",
    "aria-label": `${nameOf(table, cell)}: ours ${plain(cell.value) || "nothing"}, ${cell.word}${cell.unconverged ? ", failed convergence" : ""}`,
    onclick: () => openCell(...(cell.whole || [table, cell])),
  }, number(cell.value), cell.unconverged && h("b.flag", {}, data.flag.mark), " ", verdictOf(cell) && h("b", {}, symbol(cell.word) + star));
  button._tip = () => cellTip(table, cell);
  return button;
}

function nameOf(table, cell) {
  const { dataset, heading, group } = table.columns[cell.column];
  const what = !dataset || group ? `, ${heading}` : "";
  return table.rows[cell.row].label + (dataset ? ` on ${dataset}` : "") + what;
}

function cellTip(table, cell) {
  const printed = table.rows[cell.row].printed[cell.column];
  const n = cell.n === cell.planned ? `n = ${cell.n}` : `n = ${cell.n} of ${cell.planned}`;
  return [
    `${nameOf(table, cell)}${editionOf(table, cell)}`,
    printed && `paper ${plain(printed.value)}`,
    cell.value && `ours ${plain(cell.value)}, ${n}`,
    cell.interval && `95 % interval of the mean ${cell.interval.slice(-2).join(" to ")}`,
    cell.within && COMPARED.includes(cell.word) && `agrees to within ± ${cell.within}`,
    verdictOf(cell) && `${symbol(cell.word)} ${cell.word}: ${cell.why}`,
    cell.unconverged && `${data.flag.mark} ${cell.unconverged}`,
    cell.note,
  ];
}

/** The edition of a row that the paper has; a variant of an experiment has none. */
function editionOf(table, cell) {
  return table.rows[cell.row].printed.some(Boolean) ? `, ${data.editions[cell.edition].name}` : "";
}

/** One cell takes part in tabbing; arrows move from cell to cell. */
function rove(table) {
  const cells = () => [...table.tBodies[0].querySelectorAll("[data-cell]")];
  const first = cells()[0];
  if (first) first.tabIndex = 0;
  const grid = () => [...table.tBodies[0].rows].map((row) => [...row.cells].map((td) => td.querySelector("[data-cell]")))
    .filter((row) => row.some(Boolean));
  table.addEventListener("focusin", (event) => {
    if (!event.target.matches("[data-cell]")) return;
    for (const cell of cells()) cell.tabIndex = cell === event.target ? 0 : -1;
  });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const home = { Home: 0, End: -1 }[event.key];
    if ((!step && home === undefined) || !event.target.matches("[data-cell]")) return;
    event.preventDefault();
    const rows = grid();
    let r = rows.findIndex((row) => row.includes(event.target));
    let c = rows[r].indexOf(event.target);
    if (home !== undefined) {
      rows[r].filter(Boolean).at(home).focus();
      return;
    }
    do {
      r += step[0];
      c += step[1];
    } while (rows[r] && c >= 0 && c < rows[r].length && !rows[r][c]);
    if (rows[r] && rows[r][c]) rows[r][c].focus();
  });
}
