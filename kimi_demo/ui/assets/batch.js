// The batch tab beyond its stream (live.js): a file that is sent in pieces, the table a window at a time, plots, comparing.
(() => {
  "use strict";

  const kimi = window.kimi;
  const byId = (id) => document.getElementById(id);
  const box = () => byId("batch-results");
  const article = () => box()?.querySelector("article.batch");
  const at = (event, selector) => (event.target instanceof Element ? event.target.closest(selector) : null);
  const options = { cache: "no-store" };

  let opened = remembered();
  let draft = ""; // the token of the file that this tab shows
  let sight = fresh();
  let asked = 0; // number of the last request for the body: an answer that was overtaken is dropped
  let shownVersion = "";
  let waiting = 0;
  let counting = 0;
  let took = 0; // milliseconds of the last look at the body
  let settled = false;

  function fresh() { return { view: "rows", show: "all", order: "finished", search: "", page: 0, other: "", agreement: "all" }; }

  function remembered() {
    try { return sessionStorage.getItem("kimi-demo-batch") || ""; } catch { return ""; }
  }

  function open(id) {
    if (id !== opened) sight = fresh();
    opened = id;
    try { sessionStorage.setItem("kimi-demo-batch", id); } catch { /* private mode: the newest is shown after a reload */ }
  }

  async function ask(method, address, body) {
    const answer = await fetch(address, { method, body, ...options });
    const told = await answer.json().catch(() => ({}));
    return { ok: answer.ok, status: answer.status, ...told };
  }

  const picker = () => document.querySelector("#batch-file .batch-picker");
  const card = () => document.querySelector("#batch-file .batch-draft");

  // ---- a file, or typed prompts, before they run ---------------------------------------------------------------------

  let sending = 0; // number of the file being sent: another one, or its removal, ends the sending

  function busy(words) { const line = picker()?.querySelector(".batch-sending"); if (line) line.textContent = words; }

  function hold(token, html) {
    draft = token;
    document.documentElement.toggleAttribute("data-batch-file", Boolean(token));
    if (card()) card().innerHTML = html;
  }

  async function send(file) {
    const mine = ++sending;
    const words = picker().dataset;
    kimi.notice("batch", "");
    hold("", "");
    try {
      const begun = await ask("POST", `kimi/batches/draft?${new URLSearchParams({ name: file.name, size: file.size })}`);
      if (!begun.ok) return kimi.notice("batch", begun.html || "");
      draft = begun.token; // Run says that it is not whole yet
      let sent = 0, tries = 0;
      while (sent < file.size && mine === sending) {
        busy(`${words.sending} ${Math.floor((100 * sent) / file.size)} %`);
        let told;
        try {
          told = await ask("POST", `kimi/batches/draft/${begun.token}/piece?at=${sent}`, file.slice(sent, sent + begun.piece));
        } catch (error) {
          if (++tries > 5) throw error;
          await new Promise((again) => setTimeout(again, 1000 * tries));
          continue;
        }
        if (!told.ok) { draft = ""; return kimi.notice("batch", told.html || words.lost); }
        sent = told.received;
        tries = 0;
      }
      if (mine !== sending) return;
      await check();
    } catch {
      if (mine === sending) draft = "";
      if (mine === sending) kimi.notice("batch", plainNotice(words.lost));
    } finally {
      if (mine === sending) busy("");
    }
  }

  function plainNotice(words) {
    const made = Object.assign(document.createElement("div"), { className: "notice", textContent: words });
    made.dataset.kind = "error";
    return made.outerHTML;
  }

  const value = (id, selector) => byId(id)?.querySelector(selector)?.value ?? "";

  const engine = () => document.querySelector("#batch-engine input:checked")?.value || "offline";

  let looking = 0;
  async function check() {
    const mine = ++looking;
    const look = { token: draft, engine: engine(), thinking: Boolean(byId("batch-thinking")?.querySelector("input")?.checked) };
    if (!draft) look.text = value("batch-prompts", "textarea");
    const form = draft && card()?.querySelector("form.batch-choices");
    if (form) {
      for (const field of form.elements) if (field.name) look[field.name] = field.type === "checkbox" ? field.checked : field.value;
      if (!look.format) delete look.format;
    }
    busy(picker().dataset.reading);
    try {
      const told = await ask("POST", "kimi/batches/draft/check", JSON.stringify(look));
      if (mine !== looking) return;
      kimi.notice("batch", told.ok ? "" : told.html || "");
      if (told.ok) hold(look.token, told.html);
      else if (look.token) hold("", "");
    } catch {
      kimi.notice("batch", plainNotice(picker().dataset.lost));
    } finally {
      if (mine === looking) busy("");
    }
  }

  async function removeFile() {
    sending++;
    const token = draft;
    hold("", "");
    kimi.notice("batch", "");
    if (token) await ask("POST", `kimi/batches/draft/${token}/remove`).catch(() => null);
  }

  // A file that was sent before a reload is still there.
  async function recallFile() {
    const told = await ask("GET", "kimi/batches/draft").catch(() => ({}));
    if (told.token && !draft && !sending) { draft = told.token; await check(); }
  }

  // ---- what starting the chosen engine means --------------------------------------------------------------------------

  async function noteEngine() {
    const line = document.querySelector("#batch-engine-note [role=status]");
    if (!line) return;
    const answer = await fetch(`kimi/batches/engine/${engine()}`, options).catch(() => null);
    if (answer?.ok) { const html = await answer.text(); if (line.innerHTML !== html) line.innerHTML = html; }
  }

  // ---- the body of the opened batch ------------------------------------------------------------------------------------

  const body = () => article()?.querySelector(".batch-body");

  function follow() {
    const version = article()?.querySelector(".batch-version")?.dataset.state || "";
    document.documentElement.setAttribute("data-batch", article()?.dataset.state === "going" ? "running" : "idle");
    if (!version || version === shownVersion) return;
    const ended = version.split("/")[1] !== shownVersion.split("/")[1];
    if (sight.view === "rows" && settled && !ended) { if (!counting) counting = setTimeout(recount, 2000); shownVersion = version; return; }
    if (sight.view !== "rows" && shownVersion && !ended) { if (!waiting) waiting = setTimeout(later, 5000); return; }
    // Rows finish many times a second; a person reads them as well when they come once, or seldom where a look takes long.
    if (!waiting) waiting = setTimeout(later, shownVersion && !ended ? Math.max(1000, 5 * took) : 0);
  }

  // A window that will not change any more: only how many there are of each kind.
  async function recount() {
    const shown = article();
    counting = 0;
    if (!shown || sight.view !== "rows") return;
    const answer = await fetch(`kimi/batches/${shown.dataset.batch}/rows?only=counts`, options).catch(() => null);
    if (answer?.ok && shown === article()) count((await answer.json()).counts);
  }

  function count(counts) {
    for (const option of article().querySelectorAll("[data-batch-show] option")) {
      option.words ??= option.textContent;
      const number = counts?.[option.value];
      option.textContent = number === undefined ? option.words : `${option.words} (${number.toLocaleString()})`;
    }
  }

  function later() { waiting = 0; refill(); }

  async function refill() {
    const shown = article();
    if (!shown) return;
    const mine = ++asked;
    const version = shown.querySelector(".batch-version").dataset.state || "";
    const began = performance.now();
    const where = `kimi/batches/${shown.dataset.batch}`;
    try {
      if (sight.view === "rows") {
        const { show, order, search, page } = sight;
        const answer = await fetch(`${where}/rows?${new URLSearchParams({ show, order, search, page })}`, options);
        const told = answer.ok ? await answer.json() : { html: "", pager: "", failed: await answer.text() };
        if (mine !== asked) return;
        if (told.failed) kimi.notice("batch", plainNotice(told.failed));
        rows(told);
      } else {
        const query = sight.view === "compare" ? `?${new URLSearchParams({ other: sight.other, show: sight.agreement, page: sight.page })}` : "";
        const answer = await fetch(`${where}/${sight.view}${query}`, options);
        const html = await answer.text();
        if (mine !== asked) return;
        body().innerHTML = answer.ok ? html : plainNotice(html);
      }
      shownVersion = version;
      took = performance.now() - began;
      follow();
    } catch { /* the server is away: the box says so, and its return brings a new start */ }
  }

  // Rows that are there already stay as they are: one that somebody has opened, or is selecting text in, must not be taken away.
  function rows(told) {
    const holder = body();
    if (!holder.querySelector("tbody") || holder.querySelector(".batch-pairs")) holder.innerHTML = holder.kept;
    const table = holder.querySelector("tbody");
    const fresh = document.createElement("tbody");
    fresh.innerHTML = told.html;
    const known = new Map([...table.children].filter((row) => row.dataset.row).map((row) => [`${row.dataset.row}/${row.dataset.state}`, row]));
    const wanted = [];
    for (const row of [...fresh.children]) {
      const old = row.dataset.row && known.get(`${row.dataset.row}/${row.dataset.state}`);
      wanted.push(old || row);
      if (old?.nextElementSibling?.classList.contains("full")) wanted.push(old.nextElementSibling);
    }
    const keep = new Set(wanted);
    for (const row of [...table.children]) if (!keep.has(row)) row.remove();
    let before = null;
    for (const row of wanted) {
      const place = before ? before.nextSibling : table.firstChild;
      if (place !== row) table.insertBefore(row, place);
      before = row;
    }
    holder.querySelector(".pager").innerHTML = told.pager;
    settled = Boolean(told.settled);
    if (told.page !== undefined) sight.page = told.page;
    count(told.counts);
  }

  async function openRow(button) {
    const row = button.closest("tr");
    const below = row.nextElementSibling;
    if (below?.classList.contains("full")) { below.remove(); button.setAttribute("aria-expanded", "false"); return; }
    const full = document.createElement("tr");
    full.className = "full";
    full.innerHTML = '<td colspan="6"></td>';
    row.after(full);
    button.setAttribute("aria-expanded", "true");
    const answer = await fetch(`kimi/batches/${article().dataset.batch}/row/${button.dataset.batchRow}`, options).catch(() => null);
    const html = answer?.ok ? await answer.text() : plainNotice(answer ? await answer.text() : picker().dataset.lost);
    full.firstElementChild.innerHTML = html;
  }

  function look(change) {
    sight = { ...sight, page: 0, ...change };
    settled = false;
    paint();
    return refill();
  }

  // The toolbar as `sight` says.
  function paint() {
    const shown = article();
    if (!shown) return;
    shown.dataset.view = sight.view;
    for (const tab of shown.querySelectorAll("[data-batch-view]")) tab.setAttribute("aria-selected", String(tab.dataset.batchView === sight.view));
    shown.querySelector("[data-batch-show]").value = sight.show;
    shown.querySelector("[data-batch-order]").value = sight.order;
    const search = shown.querySelector("[data-batch-search]");
    if (document.activeElement !== search) search.value = sight.search;
  }

  // ---- what people do --------------------------------------------------------------------------------------------------

  function show(id) { open(id); kimi.notice("batch", ""); kimi.refresh("batch"); }

  document.addEventListener("click", (event) => {
    if (at(event, "[data-batch-pick]")) picker().querySelector("input[type=file]").click();
    if (at(event, "[data-batch-preview]")) check();
    if (at(event, "[data-batch-remove]")) removeFile();
    const other = at(event, "[data-batch-open]");
    if (other) show(other.dataset.batchOpen);
    const view = at(event, "[data-batch-view]");
    if (view) look({ view: view.dataset.batchView });
    const page = at(event, "[data-batch-page]");
    if (page) look({ page: Number(page.dataset.batchPage) }).then(() => box().querySelector(".table-scroll")?.scrollTo(0, 0));
    const agreement = at(event, "[data-batch-agreement]");
    if (agreement) look({ agreement: agreement.dataset.batchAgreement });
    const row = at(event, "[data-batch-row]") || (!at(event, "a, button, summary, .full") && !String(getSelection()) && at(event, "#batch-results tr[data-row]")?.querySelector("[data-batch-row]"));
    if (row) openRow(row);
  });

  // The second click of a double click on Run would be a second batch.
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && at(event, "#batch-run")) { event.stopPropagation(); event.preventDefault(); }
  }, true);

  document.addEventListener("change", (event) => {
    if (at(event, "#batch-file input[type=file]")) {
      const [file] = event.target.files;
      if (file) send(file);
      event.target.value = "";
    }
    if (at(event, "form.batch-choices")) check();
    if (at(event, "[data-batch-show]")) look({ show: event.target.value });
    if (at(event, "[data-batch-order]")) look({ order: event.target.value });
    if (at(event, "[data-batch-other]")) look({ other: event.target.value });
    const which = at(event, "form[data-batch-again] [name=which]");
    if (which) { const limit = which.form.elements.max_tokens; limit.value = which.value === "cut_off" ? limit.dataset.more : limit.dataset.same; }
    const name = at(event, "[data-batch-rename]");
    if (name) kimi.post("batch", "batch_rename", { batch: name.dataset.batchRename, title: name.value }).then(() => kimi.refresh("batch"));
    if (at(event, "#batch-engine")) noteEngine();
    if (at(event, "#batch-thinking, #batch-engine") && (draft || card()?.innerHTML)) check();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && at(event, "[data-batch-rename]")) event.target.blur();
  });

  let typing = 0;
  document.addEventListener("input", (event) => {
    if (!at(event, "[data-batch-search]") || event.isComposing) return;
    clearTimeout(typing);
    typing = setTimeout(() => look({ search: event.target.value }), 250);
  });

  document.addEventListener("submit", async (event) => {
    const form = at(event, "form[data-batch-again]");
    if (at(event, "form.batch-choices")) event.preventDefault();
    if (!form) return;
    event.preventDefault();
    const { which, preset, max_tokens, thinking, engine: chosen, temperature } = form.elements;
    const limit = max_tokens.value === "" ? null : Number(max_tokens.value);
    const button = form.querySelector("button");
    button.disabled = true;
    const told = await kimi.post("batch", "batch_again", { batch: form.dataset.batchAgain, which: which.value, preset: preset.value, max_tokens: limit, thinking: thinking.checked, engine: chosen.value, temperature: temperature.value });
    button.disabled = false;
    if (told) show(told.batch);
  });

  document.addEventListener("kimi:start", ({ detail }) => {
    if (detail.kind !== "batch") return;
    if (detail.group !== opened) open(detail.group);
    const holder = body();
    if (holder) holder.kept = holder.innerHTML;
    shownVersion = "";
    settled = false;
    paint();
    follow();
    noteEngine();
    recallFile();
  });
  document.addEventListener("kimi:patch", ({ detail }) => { if (detail.kind === "batch") follow(); });
  document.addEventListener("kimi:end", ({ detail }) => { if (detail.kind === "batch") { follow(); noteEngine(); } });

  kimi.batch = {
    opened: () => opened,
    file: () => draft,
    send,
    refuse: (words) => kimi.notice("batch", plainNotice(words)),
    // After Run: what was started is the newest; a notice means that nothing was.
    began() {
      setTimeout(() => {
        if (document.querySelector("#batch-notice .notice")) return;
        if (draft) hold("", "");
        else if (card()) card().innerHTML = "";
        show("");
      }, 0);
    },
  };
})();
