// Where the records come from.

function environmentView() {
  const e = data.environment;
  const small = (heads, rows) => h("div.scroll", { tabindex: "0", role: "region", "aria-label": heads[0] }, h("table.plain", {},
    h("thead", {}, h("tr", {}, heads.map((t, i) => h("th", { scope: "col", class: rows.length && typeof rows[0][i] === "number" ? "right" : "" }, t)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) =>
      i ? h("td", { class: typeof value === "number" ? "right" : "" }, typeof value === "number" ? value.toLocaleString("en") : value) : h("th", { scope: "row" }, value)))))));
  const bad = Object.entries(e.failures).filter(([status]) => status !== "ok");
  return [
    h("h1", {}, "Where the numbers come from"),
    h("p.lead", {}, `${plural(e.runs, "run")} of ${plural(e.settings, "setting")}, ${e.hours.toLocaleString("en")} hours on one thread each. ` +
      (bad.length ? `Failed: ${bad.map(([status, n]) => `${n} ${status.replaceAll("_", " ")}`).join(", ")}.` : "No run failed.")),
    h("p.note", {}, "All of this is read from the records; the machine that built this page does not show in it."),
    e.problems.length > 0 && h("div.aside", {}, h("b", {}, "Files that are not records: "), h("ul", {}, e.problems.map((p) => h("li", {}, p)))),
    h("h2", {}, "Machines and libraries"),
    e.environments.map((env) => h("div.card", {}, h("p", {}, h("b", {}, env.cpu || "unknown processor"), `, ${env.platform}, ${plural(env.cores || 0, "core")}; ${plural(env.runs, "run")}`),
      h("p.mono", {}, `python ${env.python}  `, Object.entries(env.libraries || {}).map(([k, v]) => `${k} ${v}  `).join("")))),
    h("h2", {}, "Code"),
    small(["commit", "state", "version", "runs"], e.commits.map((c) => [h("code", {}, c.commit || "no checkout"), c.dirty === null ? "unknown" : c.dirty ? "with local changes" : "clean", c.version, c.runs])),
    h("h2", {}, "Data"),
    small(["dataset", "shape", "classes", "runs", "SHA-256 of X and y"], e.datasets.map((d) => [d.name, d.shape.join(" × "), d.classes, d.runs, h("code", {}, d.sha256)])),
    h("h2", {}, "Runs by model"),
    small(["model", "runs", "failed", "hours"], e.models.map((m) => [m.name, m.runs, m.failed, m.hours])),
  ];
}
