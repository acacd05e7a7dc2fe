// What is behind a cell: its runs, settings, provenance and the command that does them again.

const dialog = document.getElementById("cell");

function openCell(table, cell) {
  const row = table.rows[cell.row], column = table.columns[cell.column];
  const others = Object.keys(data.editions).map((e) => cellOf(table, cell.row, cell.column, e)).filter((c, i, all) => c && all.indexOf(c) === i);
  const switcher = others.length > 1 && h("div.switch", {}, others.map((other) =>
    h("button.quiet", { type: "button", "aria-pressed": String(other === cell), onclick: () => openCell(table, other) }, data.editions[other.edition].name)));
  const printed = row.printed[cell.column];
  const setting = data.settings[cell.setting];
  show(nameOf(table, cell), `${table.title.split(".")[0]}, ${column.metric.replaceAll("_", " ")}${editionOf(table, cell)}`, [
    switcher,
    sides(printed && printed.value, cell),
    verdictOf(cell) && h("p", {}, chip(cell.word), " ", cell.why, cell.why && !/[.!]$/.test(cell.why) && "."),
    judgement(cell),
    cell.unconverged && h("p.aside", {}, h("b", {}, data.flag.mark), ` ${upper(cell.unconverged)}. The scores are kept.`),
    cell.note && h("p.note", {}, cell.note, "."),
    printed && printed.doubt && doubt(printed.doubt),
    runsPart(cell, column, printed && printed.value),
    cell.failures && h("p", {}, "Failed: ", Object.entries(cell.failures).map(([k, n]) => `${n} × ${k}`).join(", "), ". ", cell.message && h("code", {}, cell.message)),
    cell.command && h("section", {}, h("h3", {}, cell.reason ? "What would fill it" : "Do it again"),
      command(cell.command),
      cell.command.includes(" verify ") && h("p.note", {}, "Runs them once more and compares every score, selection and hash with the records; append /r0f0 for one split.")),
    setting && settingPart(setting),
    cell.choice !== undefined && choicePart(data.choices[cell.choice]),
    setting && setting.key && provenancePart(setting),
  ]);
  remember(`#tables/${[table.name, row.method, column.dataset || "-", column.metric, cell.edition].map(encodeURIComponent).join("/")}`);
}

/** A ranking compares nothing with the paper, so that only gaps are told. */
const verdictOf = (cell) => !(data.rank && cell.word === "not in paper");

/** What the verdict rests on, and how it would be if the two sides had nothing in common. */
function judgement(cell) {
  if (!cell.within || cell.word === "equal") return null;
  return h("p.note", {}, `Agrees to within ± ${cell.within}. `,
    cell.rho ? `Runs on the same splits correlate with ρ = ${cell.rho} here` : "ρ was not measured here and counts as 0",
    cell.unpaired ? `; with ρ = 0 the verdict would be ${cell.unpaired}.` : cell.rho ? "; with ρ = 0 the verdict is the same." : ".");
}

/** A printed cell: its place in a table where there is one, else what the ledger knows of it. */
function openLine(line) {
  for (const table of data.tables.filter((t) => t.paper === line.table)) {
    const r = table.rows.findIndex((row) => row.method === line.method);
    const c = table.columns.findIndex((column) => column.dataset === line.dataset && column.metric === line.metric);
    const cell = r >= 0 && c >= 0 && cellOf(table, r, c, "rule");
    if (cell) return openCell(table, cell);
  }
  show(`${line.label}${line.dataset ? " on " + line.dataset : ""}`, `Table ${line.table}, ${line.metric.replaceAll("_", " ")}`, [
    sides([line.paper], { value: line.ours.rule && [line.ours.rule[0]], n: (line.ours.rule || [])[1] }),
    h("p", {}, chip(line.word), " ", line.why, "."),
    line.finding && doubt(line.finding),
  ]);
}

function show(title, subtitle, parts) {
  const close = h("button.quiet.close", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  dialog.replaceChildren(h("header", {}, h("div", {}, h("h2", { id: "cell-title" }, title), h("p", {}, subtitle)), close));
  append(dialog, parts);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

for (const box of document.querySelectorAll("dialog")) {
  box.addEventListener("click", (event) => event.target === box && box.close());
}

function sides(paper, cell) {
  const side = (name, value, extra) => h("div", {}, h("dt", {}, name), h("dd", {}, value || "–", extra && h("small.n", {}, extra)));
  const n = cell.n === undefined || !cell.value ? "" : cell.planned && cell.n !== cell.planned ? `${cell.n} of ${cell.planned} runs` : plural(cell.n, "value");
  const interval = cell.interval;
  return h("dl.sides", {},
    paper && side("Paper", number(paper)),
    side(data.rank ? "Mean and standard deviation" : "Ours", cell.value && [number(cell.value), cell.unconverged && ` ${data.flag.mark}`], n),
    interval && side("95 % interval of the mean", interval.slice(-2).join(" – "),
      interval.length > 2 && `${interval[0]} – ${interval[1]} if these runs shared no rows`));
}

function doubt(id) {
  const finding = data.findings.find((f) => f.id === id);
  return finding && h("div.aside", {}, h("b", {}, "The audit doubts the printed number. "),
    `${finding.where}: claimed ${finding.claim}; found ${finding.found}. ${finding.why || ""} `, h("code", {}, id));
}

// Runs -------------------------------------------------------------------------------------------

function runsPart(cell, column, printed) {
  if (cell.runs === undefined) return null;
  const values = data.runs[cell.runs];
  const named = values.length === data.splits.length && !column.timed;
  const names = values.map((_, i) => (named ? data.splits[i] : `run ${i + 1}`));
  const setting = data.settings[cell.setting] || {};
  const decimals = cell.decimals ?? column.decimals;
  return h("section", {}, h("h3", {}, plural(values.filter((v) => v !== null).length, "run")),
    strip(values, names, decimals, cell, printed),
    named && h("p.note.above", {}, "By repeat (r) and fold (f) of the cross-validation:"),
    named ? runGrid(values, setting.failed || {}, decimals)
      : h("p.numbers", {}, values.map((v) => v.toFixed(decimals)).join("  ")));
}

function runGrid(values, failed, decimals) {
  const folds = [...new Set(data.splits.map((name) => name.split("f")[1]))];
  const repeats = [...new Set(data.splits.map((name) => name.split("f")[0]))];
  const at = (name) => {
    const value = values[data.splits.indexOf(name)];
    return value === null ? h("em", {}, (failed[name] || "–").replaceAll("_", " ")) : value.toFixed(decimals);
  };
  return h("div.scroll", {}, h("table.runs", {},
    h("thead", {}, h("tr", {}, h("td", {}), folds.map((f) => h("th", { scope: "col" }, "f" + f)))),
    h("tbody", {}, repeats.map((r) => h("tr", {}, h("th", { scope: "row" }, r),
      folds.map((f) => h("td", { "data-split": `${r}f${f}` }, at(`${r}f${f}`))))))));
}

/** Every run as a dot, our mean with its interval, and the paper's mean ± standard deviation. */
function strip(values, names, decimals, cell, printed) {
  const width = Math.max(260, Math.min(688, innerWidth - 72)), pad = 14, size = 4.5;
  const known = values.map((v, i) => ({ v, name: names[i] })).filter((run) => run.v !== null).sort((a, b) => a.v - b.v);
  const paper = printed && !Number.isNaN(Number(printed[0])) ? printed.map(Number) : null;
  const reach = [...known.map((run) => run.v), ...(paper ? [paper[0] - (paper[1] || 0), paper[0] + (paper[1] || 0)] : [])];
  let [low, high] = [Math.min(...reach), Math.max(...reach)];
  if (high === low) [low, high] = [low - 1, high + 1];
  const x = (v) => pad + ((v - low) / (high - low)) * (width - 2 * pad);
  const levels = [];
  for (const run of known) {
    let level = levels.findIndex((last) => x(run.v) - last >= 2 * size);
    if (level < 0) level = levels.length;
    levels[level] = x(run.v);
    run.level = level;
  }
  const base = 12 + levels.length * 2 * size; // where the dots stand
  const row = (i) => base + 14 + 15 * i;
  const mean = Number(cell.value[0]);
  const marks = [
    s("line", { class: "mean", x1: x(mean), x2: x(mean), y1: 4, y2: row(0) + 5 }),
    cell.interval && s("line", { class: "mean wide", x1: Math.max(2, x(cell.interval[0])), x2: Math.min(width - 2, x(cell.interval[1])), y1: row(0), y2: row(0) }),
  ];
  if (paper) {
    const y = row(1), m = x(paper[0]);
    if (paper[1]) marks.push(s("line", { class: "printed", x1: x(paper[0] - paper[1]), x2: x(paper[0] + paper[1]), y1: y, y2: y }));
    marks.push(s("path", { class: "printed", d: `M${m - 5} ${y}L${m} ${y - 5}L${m + 5} ${y}L${m} ${y + 5}Z` }));
  }
  const axis = row(paper ? 2 : 1), ticks = ticksOf(low, high);
  return h("figure.strip", {}, s("svg", { width, height: axis + 20, viewBox: `0 0 ${width} ${axis + 20}`, role: "img", "aria-label": `${known.length} runs from ${known[0].v} to ${known.at(-1).v}` },
    s("line", { class: "axis", x1: 0, x2: width, y1: axis, y2: axis }),
    ticks.map((t) => [s("line", { class: "axis", x1: x(t), x2: x(t), y1: axis, y2: axis + 4 }), s("text", { x: x(t), y: axis + 16 }, String(t))]),
    marks,
    known.map((run) => s("circle", { cx: x(run.v).toFixed(1), cy: base - size - run.level * 2 * size, r: size - 0.5, "data-tip": `${run.name}: ${run.v.toFixed(decimals)}` }))),
  h("figcaption", {}, h("span", {}, h("i.dot", {}), "a run"), h("span", {}, h("i.line", {}), "our mean, 95 % interval"), paper && h("span", {}, h("i.diamond", {}), paper[1] ? "paper, ± standard deviation" : "paper")));
}

function ticksOf(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push(Number((i * step).toPrecision(6)));
  return ticks;
}

// Settings and provenance ------------------------------------------------------------------------

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function settingPart(setting) {
  const params = Object.entries(setting.params);
  return h("section", {}, h("h3", {}, "Setting"),
    setting.key && h("p.mono", {}, setting.key),
    params.length ? h("dl.params", {}, params.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, written(v)))))
      : h("p.note", {}, "The model’s own defaults."));
}

function choicePart(choice) {
  const how = {
    full: "the best mean validation balanced accuracy of all candidates", race: "the best mean validation balanced accuracy; candidates that could not win any more were dropped",
    quick: "a quick search whose best two saw all splits", halving: "successive halving", optuna: "Optuna’s search",
  }[choice.method] || choice.method;
  const percent = (x) => (x === null ? "failed" : (100 * x).toFixed(2));
  const chosen = JSON.stringify(choice.params);
  const candidates = [...choice.candidates].sort((a, b) => (b.valid ?? -1) - (a.valid ?? -1));
  return h("section", {}, h("h3", {}, "How it was chosen"),
    h("p", {}, `By ${how}: ${percent(choice.valid)} % over ${plural(choice.splits, "run")}, ${plural(candidates.length, "candidate")}.`,
      choice.edge.length > 0 && ` ${choice.edge.join(", ")} lies at the edge of what was searched, so the optimum may lie beyond.`),
    h("details", {}, h("summary", {}, "All candidates"),
      h("div.scroll", {}, h("table.plain", {},
        h("thead", {}, h("tr", {}, ["setting", "validation %", "runs"].map((t) => h("th", { scope: "col" }, t)))),
        h("tbody", {}, candidates.map((c) => h("tr", { class: JSON.stringify(c.params) === chosen ? "chosen" : "" },
          h("td", {}, Object.entries(c.params).map(([k, v]) => `${k} = ${written(v)}`).join(", ")),
          h("td.right", {}, percent(c.valid)), h("td.right", {}, String(c.runs)))))))));
}

function provenancePart(setting) {
  const commits = setting.commits.map((i) => data.environment.commits[i]);
  const environments = setting.environments.map((i) => data.environment.environments[i]);
  const line = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
  return h("section", {}, h("h3", {}, "Where it comes from"),
    h("dl.params.wide", {},
      line("records", `${setting.place}/, ${plural(setting.runs, "run")}, ${duration(setting.seconds)} in all`),
      line("seed", setting.seed),
      line("data", setting.data.map((sha) => h("code", {}, sha)), setting.shape && ` ${setting.shape.join(" × ")}`),
      commits.length > 0 && line("code", commits.map((c, i) => [i > 0 && ", ", h("code", {}, c.commit || "no checkout"), c.dirty && " with local changes"]), ` (model revision ${setting.revision})`),
      environments.length > 0 && line("made with", environments.map((e) => h("div", {}, machine(e))))));
}

function machine(e) {
  const libraries = Object.entries(e.libraries || {}).map(([k, v]) => `${k} ${v}`).join(", ");
  return `Python ${e.python}, ${libraries}; ${e.cpu}, ${e.platform}`;
}

function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return seconds < 5400 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
