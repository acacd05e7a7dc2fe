// Which view is shown, and in which colours.

const has = (name) => (data[name] || []).length > 0;

const VIEWS = [
  ["overview", "Overview", () => overview(), data.answer !== undefined],
  ["ranking", "Ranking", () => rankingView(), data.rank !== undefined],
  ["tables", data.rank ? "Scores" : "Tables", (path) => tablesView(path[0]), has("tables")],
  ["cells", "All cells", (_, query) => cellsView(query), has("lines")],
  ["figures", "Figures", () => figuresView(), has("figures")],
  ["claims", "Claims", (_, query) => claimsView(query), has("claims")],
  ["audit", "Audit", (_, query) => auditView(query), has("findings")],
  ["discrepancies", "Discrepancies", () => discrepanciesView(), has("discrepancies")],
  ["pairwise", "Pairs", (path, query) => pairwiseView(path[0], query), has("pairs")],
  ["fidelity", "Fidelity", () => fidelityView(), has("fidelity")],
  ["environment", "Environment", () => environmentView(), true],
].filter((view) => view[3]);

const main = document.getElementById("main");
const links = VIEWS.map(([name, title]) => h("a", { href: `#${name}` }, title));
document.getElementById("views").append(...links);

let shown = "";

function route() {
  const [path, query] = location.hash.slice(1).split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  const at = Math.max(0, VIEWS.findIndex((view) => view[0] === name));
  const wanted = [VIEWS[at][0], rest[0], query].join("/");
  if (wanted !== shown) {
    shown = wanted;
    if (dialog.open) dialog.close();
    const parts = VIEWS[at][2](rest, Object.fromEntries(new URLSearchParams(query || "")));
    main.replaceChildren();
    append(main, parts);
    main.dataset.view = VIEWS[at][0];
    links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    links[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    scrollTo(0, 0);
    document.title = `${VIEWS[at][1]} · ${data.rank ? "methods ranked" : "ProtoGate, reproduced"}`;
  }
  if (VIEWS[at][0] === "tables" && rest.length > 3) openAt(rest);
}

/** A link to one cell: table, method, dataset, metric, edition. */
function openAt([name, method, dataset, metric, wanted]) {
  const table = data.tables.find((t) => t.name === name);
  const r = table ? table.rows.findIndex((row) => row.method === method) : -1;
  const c = table ? table.columns.findIndex((column) => column.dataset === (dataset === "-" ? "" : dataset) && column.metric === metric) : -1;
  const cell = r >= 0 && c >= 0 && cellOf(table, r, c, wanted);
  if (cell) openCell(table, cell);
}

/** Puts a link to the open cell into the address, and takes it out again when it closes. */
let before = null;

function remember(hash) {
  before ??= location.hash || `#${VIEWS[0][0]}`;
  history.replaceState(null, "", hash);
}

dialog.addEventListener("close", () => {
  if (before === null) return;
  const back = before.split("/").length > 3 ? before.split("/").slice(0, 2).join("/") : before;
  history.replaceState(null, "", back);
  before = null;
});

const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "○", dark: "●" };
const themeButton = document.getElementById("theme");

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = SIGNS[theme];
  themeButton.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  themeButton.dataset.tip = themeButton.getAttribute("aria-label");
  themeButton.value = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // kept for this visit only
  }
}

themeButton.addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // The first press always changes something.
  const order = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
  setTheme(order[(order.indexOf(themeButton.value) + 1) % THEMES.length]);
});

let theme = "system";
try {
  theme = localStorage.getItem("theme") || "system";
} catch {
  // a browser without storage
}
setTheme(THEMES.includes(theme) ? theme : "system");
addEventListener("hashchange", route);
route();
