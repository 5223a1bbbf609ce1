// The QA tab: fetches its frame, follows its stream while it is looked at, and carries out what its own controls do.
// Everything it shows comes from kimi_demo/ui/qa_routes.py, which hands it to the operator only.
(() => {
  "use strict";

  const RANK = { fail: 0, open: 1, warn: 2 }; // what is to be looked at comes first
  const byId = (id) => document.getElementById(id);
  const box = () => byId("qa");

  let opened = recall("opened"); // "": the run that goes on, else the newest
  let against = ""; // "": the baseline, where there is one
  let filter = recall("filter") || "all";
  let suite = recall("suite");

  function recall(key) {
    try { return sessionStorage.getItem(`kimi-demo-qa-${key}`) || ""; } catch { return ""; }
  }
  function keep(key, value) {
    try { sessionStorage.setItem(`kimi-demo-qa-${key}`, value); } catch { /* private mode */ }
  }

  // ---- the frame, and when to follow -------------------------------------------------------------------------------

  const { follow } = window.kimi.operatorTab({
    name: "qa",
    frame: "qa",
    query: () => ({ opened, against }),
    on: { run: ({ run }) => { box().dataset.run = run; }, parts: fill },
    arrived: () => sieve(filter),
  });

  function show(run) {
    opened = run;
    keep("opened", run);
    against = "";
    follow();
  }

  // ---- what the stream brings --------------------------------------------------------------------------------------

  function fill(parts) {
    let cases = false;
    for (const [id, html] of Object.entries(parts)) {
      const part = byId(id);
      if (!part) continue;
      cases = cases || id.startsWith("qa-c");
      const open = new Map([...part.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
      const server = id === "qa-servers" ? byId("qa-server")?.value : undefined; // the list has changed, not the choice
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      part.innerHTML = html;
      for (const each of part.querySelectorAll("details[id]")) if (open.has(each.id)) each.open = open.get(each.id);
      if (server && [...byId("qa-server")?.options || []].some((each) => each.value === server)) byId("qa-server").value = server;
      if (focused) byId(focused)?.focus({ preventScroll: true });
      for (const clock of part.querySelectorAll(".clock[data-elapsed]")) clock.began = performance.now() - 1000 * Number(clock.dataset.elapsed);
      for (const time of part.querySelectorAll("time[datetime]")) time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang || undefined, { dateStyle: "medium", timeStyle: "short" });
      if (id === "qa-suites") choose();
    }
    if (cases) order();
  }

  function choose() {
    const radios = [...box().querySelectorAll('#qa-suites input[name="suite"]')];
    const wanted = radios.find((each) => each.value === suite) || radios[0];
    if (wanted) wanted.checked = true;
  }

  // Failed ones first, in the order of the suite within each kind; only where that changes something, since moving loses the focus.
  function order() {
    const list = box().querySelector(".qa-cases");
    const tools = box().querySelector(".qa-filters");
    if (tools) tools.hidden = !list;
    if (!list) return;
    const place = (item) => Number(item.id.slice(5));
    const rank = (item) => RANK[item.firstElementChild?.dataset.state] ?? 3;
    const items = [...list.children];
    const sorted = [...items].sort((one, other) => rank(one) - rank(other) || place(one) - place(other));
    if (sorted.some((item, at) => item !== items[at])) {
      const focused = list.contains(document.activeElement) ? document.activeElement : null;
      list.append(...sorted);
      focused?.focus({ preventScroll: true });
    }
    const counts = {};
    for (const item of items) { const state = item.firstElementChild?.dataset.state; counts[state] = (counts[state] || 0) + 1; }
    for (const button of tools.querySelectorAll("[data-qa-filter]")) {
      const name = button.dataset.qaFilter;
      button.dataset.count = name === "all" ? items.length : counts[name] || 0;
    }
  }

  function sieve(name) {
    filter = name;
    keep("filter", name);
    const shown = box().querySelector(".qa");
    if (shown) shown.dataset.filter = name;
    for (const button of box().querySelectorAll("[data-qa-filter]")) button.setAttribute("aria-pressed", String(button.dataset.qaFilter === name));
  }

  // ---- what people do ----------------------------------------------------------------------------------------------

  async function done(button, work) {
    button.disabled = true;
    try { return await work(); } finally { button.disabled = false; }
  }

  document.addEventListener("submit", async (event) => {
    if (event.target.id !== "qa-form") return;
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    given.suite = given.suite || "";
    const told = await done(byId("qa-start"), () => window.kimi.post("qa", "qa_start", given));
    if (!told) { byId("qa-notice").scrollIntoView({ block: "nearest" }); return; }
    show(told.run);
    if (matchMedia("(max-width: 900px)").matches) byId("qa-head").scrollIntoView({ block: "start" });
  });

  document.addEventListener("change", (event) => {
    if (event.target.closest?.("#qa-suites")) { suite = event.target.value; keep("suite", suite); }
    if (event.target.id === "qa-against") { against = event.target.value; follow(); }
  });

  document.addEventListener("click", async (event) => {
    const at = (selector) => event.target.closest(selector);
    let button;
    if ((button = at("[data-qa-open]"))) show(button.dataset.qaOpen);
    else if ((button = at("[data-qa-filter]"))) sieve(button.dataset.qaFilter);
    else if ((button = at("[data-qa-download]"))) {
      // The report holds the comparison that is shown.
      const chosen = byId("qa-against")?.value || "";
      button.search = chosen && chosen !== "none" ? `?${new URLSearchParams({ against: chosen })}` : "";
    } else if ((button = at("[data-qa-judge] [data-good]"))) {
      const holder = button.closest("[data-qa-judge]");
      const given = { run: holder.dataset.run, case: holder.dataset.case, good: Boolean(button.dataset.good), note: holder.querySelector("textarea").value };
      await done(button, () => window.kimi.post("qa", "qa_judge", given));
    }
  });

  // A run that was deleted is not to be looked for again.
  document.addEventListener("kimi:act", ({ detail }) => {
    if (detail.kind === "qa" && detail.act === "qa_delete") show("");
  });
})();
