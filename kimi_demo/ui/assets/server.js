// The Server tab: fetches its frame, follows its stream while it is looked at, and carries out what its own controls do.
// Everything it shows comes from kimi_demo/ui/server_routes.py, which hands it to the operator only.
(() => {
  "use strict";

  const MOST_LINES = 2000; // as many as the server keeps
  const PREVIEW_MS = 300;
  const byId = (id) => document.getElementById(id);
  const box = () => byId("server");

  let view = recall("view", "overview");
  let windowS = recall("window", "300");
  let pid = 0;
  let lines = []; // every line that is kept, whether it is shown or not
  let paused = false;

  function recall(key, otherwise) {
    try { return sessionStorage.getItem(`kimi-demo-server-${key}`) || otherwise; } catch { return otherwise; }
  }
  function keep(key, value) {
    try { sessionStorage.setItem(`kimi-demo-server-${key}`, value); } catch { /* private mode */ }
  }

  // ---- the frame, and when to follow -------------------------------------------------------------------------------

  const { follow } = window.kimi.operatorTab({
    name: "server",
    frame: "srv",
    query: () => ({ view, window: windowS, after: `${pid}:${lines.length ? lines[lines.length - 1][0] : 0}` }),
    on: { parts: fill, log },
    arrived: (fresh) => {
      if (!fresh) return;
      pid = 0;
      lines = [];
      show(view);
      preview();
    },
  });

  function fill(parts) {
    for (const [id, html] of Object.entries(parts)) {
      const part = byId(id);
      if (!part) continue;
      const open = new Map([...part.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
      const typed = new Map([...part.querySelectorAll("input[id]")].map((each) => [each.id, each.value]));
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      part.innerHTML = html;
      for (const each of part.querySelectorAll("details[id]")) if (open.has(each.id)) each.open = open.get(each.id);
      for (const each of part.querySelectorAll("input[id]")) if (typed.has(each.id)) each.value = typed.get(each.id);
      if (focused) byId(focused)?.focus();
      for (const clock of part.querySelectorAll(".clock[data-elapsed]")) clock.began = performance.now() - 1000 * Number(clock.dataset.elapsed);
    }
  }

  function show(name) {
    const panels = [...box().querySelectorAll("[data-srv-panel]")];
    view = panels.some((panel) => panel.dataset.srvPanel === name) ? name : "overview";
    keep("view", view);
    for (const panel of panels) panel.hidden = panel.dataset.srvPanel !== view;
    for (const tab of box().querySelectorAll("[data-srv-view]")) tab.setAttribute("aria-selected", String(tab.dataset.srvView === view));
    for (const each of box().querySelectorAll("[data-srv-window]")) each.setAttribute("aria-pressed", String(each.dataset.srvWindow === windowS));
    follow();
    if (view === "log") { count(); toEnd(); }
  }

  // ---- the form of a launch ------------------------------------------------------------------------------------------

  function form() {
    const fields = {};
    let model = "";
    for (const each of byId("srv-form").elements) {
      if (!each.name) continue;
      if (each.name === "model") model = each.value;
      else fields[each.name] = each.type === "checkbox" ? each.checked : each.value;
    }
    return { options: fields, model };
  }

  let previewing = 0;
  let asked = 0;
  function preview() {
    clearTimeout(previewing);
    previewing = setTimeout(async () => {
      if (!byId("srv-form")) return;
      const mine = ++asked;
      const given = form();
      const told = await window.kimi.post("server", "server_preview", given);
      if (!told || mine !== asked) return; // something newer was typed
      for (const field of byId("srv-form").querySelectorAll(".srv-field")) {
        const wrong = field.querySelector(".srv-wrong");
        if (!wrong) continue;
        const is = field.dataset.field === told.field;
        wrong.hidden = !is;
        wrong.textContent = is ? told.problem : "";
        field.querySelector("input, select").setAttribute("aria-invalid", String(is));
      }
      byId("srv-warned").innerHTML = told.warned || "";
      for (const name of ["shell", "docker"]) byId(`srv-line-${name}`).textContent = told[name] || "";
      document.dispatchEvent(new CustomEvent("kimi-launch-shown", { detail: { given, ask: told.ask === true } }));
    }, PREVIEW_MS);
  }

  window.kimi.launchForm = form; // for assets/launch.js

  function put(options) {
    for (const [name, value] of Object.entries(options)) {
      const field = byId("srv-form").elements[name];
      if (!field) continue;
      if (field.type === "checkbox") field.checked = Boolean(value);
      else field.value = value;
    }
    preview();
  }

  async function done(button, work) {
    button.disabled = true;
    try { return await work(); } finally { button.disabled = false; }
  }

  document.addEventListener("input", (event) => {
    if (event.target.closest("#srv-form")) preview();
    if (event.target.id === "srv-log-search") sieve();
  });
  document.addEventListener("change", (event) => {
    if (event.target.closest("#srv-form")) preview();
    if (event.target.dataset?.srvLevel) sieve();
    if (event.target.id === "srv-log-follow" && event.target.checked) toEnd();
  });
  document.addEventListener("submit", async (event) => {
    if (event.target.id === "srv-weights-form") {
      event.preventDefault();
      const given = Object.fromEntries(new FormData(event.target));
      if (await done(event.submitter || event.target, () => window.kimi.post("server", "server_weights", given))) event.target.elements.token.value = "";
      return;
    }
    if (event.target.id === "srv-form") event.preventDefault();
    if (event.target.id !== "srv-use") return;
    event.preventDefault();
    const { address, key } = event.target.elements;
    const given = { address: address.value, key: key.value };
    if (await done(event.submitter || event.target, () => window.kimi.post("server", "server_use", given))) { address.value = ""; key.value = ""; show("overview"); }
  });
  document.addEventListener("click", async (event) => {
    const at = (selector) => event.target.closest(selector);
    let button;
    if ((button = at("[data-srv-view]"))) show(button.dataset.srvView);
    else if ((button = at("[data-srv-window]"))) { windowS = button.dataset.srvWindow; keep("window", windowS); show(view); }
    else if ((button = at("[data-srv-start]"))) {
      const given = { ...form(), takeover: button.dataset.takeover === "true" };
      if (await done(button, () => window.kimi.post("server", "server_start", given))) show("overview");
    } else if ((button = at("[data-srv-plan]"))) {
      const given = { ...form(), place: byId("srv-plan-place").value, kimi: byId("srv-plan-kimi").checked };
      const told = await done(button, () => window.kimi.post("server", "server_plan", given));
      if (told) byId("srv-plan").innerHTML = told.html;
    } else if ((button = at("[data-srv-save]"))) {
      const name = byId("srv-profile-name");
      if (await done(button, () => window.kimi.post("server", "server_profile_save", { name: name.value, options: form().options }))) name.value = "";
    } else if ((button = at("[data-srv-load]"))) {
      const told = await done(button, () => window.kimi.post("server", "server_profile_load", { name: button.dataset.srvLoad }));
      if (told) put(told.options);
    } else if ((button = at("[data-srv-key]"))) {
      const told = await done(button, () => window.kimi.post("server", "server_key", {}));
      if (told) { await navigator.clipboard.writeText(told.key); flash(button); }
    } else if ((button = at("[data-srv-pause]"))) pause(button, !paused);
    else if ((button = at("[data-srv-run]"))) { byId("srv-log-search").value = button.dataset.srvRun; sieve(); }
  });

  function flash(button) {
    const words = button.textContent;
    button.textContent = box().querySelector(".srv").dataset.copied;
    setTimeout(() => { button.textContent = words; }, 1500);
  }

  // ---- the log ---------------------------------------------------------------------------------------------------------

  function log({ pid: from, lines: fresh }) {
    if (from !== pid) { lines = []; pid = from; byId("srv-log").replaceChildren(); }
    lines.push(...fresh);
    if (lines.length > MOST_LINES) lines.splice(0, lines.length - MOST_LINES);
    if (!paused) draw(fresh);
    count();
  }

  function wanted() {
    const levels = new Set([...box().querySelectorAll("[data-srv-level]:checked")].map((each) => each.dataset.srvLevel));
    const search = byId("srv-log-search").value.trim().toLowerCase();
    return ([, level, time, process, text, run]) => levels.has(level) && (!search || `${time} ${process} ${text} ${run}`.toLowerCase().includes(search));
  }

  function draw(fresh) {
    const holder = byId("srv-log");
    const passes = wanted();
    const rows = document.createDocumentFragment();
    for (const line of fresh) if (passes(line)) rows.append(row(line, holder));
    holder.append(rows);
    while (holder.childElementCount > MOST_LINES) holder.firstElementChild.remove();
    toEnd();
  }

  function row([number, level, time, process, text, run, title], holder) {
    const made = document.createElement("div");
    made.className = "srv-row";
    made.dataset.level = level;
    made.dataset.line = number;
    const piece = (name, words) => { const span = document.createElement("span"); span.className = name; span.textContent = words; made.append(span); };
    piece("srv-time", time.slice(6));
    piece("srv-process", process);
    if (run) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "srv-run";
      button.dataset.srvRun = run;
      button.textContent = title || run.slice(0, 8);
      button.title = holder.dataset.run;
      made.append(button);
    }
    piece("srv-text", text);
    return made;
  }

  function sieve() {
    byId("srv-log").replaceChildren();
    draw(lines);
    count();
  }

  function count() {
    const holder = byId("srv-log");
    const shown = holder.childElementCount;
    holder.classList.toggle("srv-none", !lines.length);
    byId("srv-log-count").textContent = paused ? holder.dataset.paused : lines.length ? holder.dataset.shown.replace("{shown}", shown).replace("{all}", lines.length) : "";
  }

  function toEnd() {
    const holder = byId("srv-log");
    if (holder && byId("srv-log-follow").checked && !paused) holder.scrollTop = holder.scrollHeight;
  }

  function pause(button, on) {
    paused = on;
    button.setAttribute("aria-pressed", String(on));
    button.textContent = byId("srv-log").dataset[on ? "goOn" : "pause"];
    if (!on) sieve();
    count();
  }

  // Whoever scrolls up wants to read; at the end again, it goes on.
  document.addEventListener("scroll", (event) => {
    if (event.target.id !== "srv-log") return;
    const end = event.target.scrollHeight - event.target.scrollTop - event.target.clientHeight < 30;
    if (event.target.matches(":hover, :focus")) byId("srv-log-follow").checked = end;
  }, true);

  // ---- values under the pointer ------------------------------------------------------------------------------------------

  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".srv-plot");
    const tip = byId("srv-tip") || document.body.appendChild(Object.assign(document.createElement("div"), { id: "srv-tip" }));
    tip.hidden = true;
    if (!plot) return;
    const svg = plot.querySelector("svg").getBoundingClientRect();
    const { left, width } = plot.dataset;
    const x = ((event.clientX - svg.left) / svg.width) * width;
    const tips = plot.dataset.tips.split("|");
    const at = Math.floor(((x - left) / (width - left)) * tips.length);
    const cursor = plot.querySelector(".srv-cursor");
    if (at < 0 || at >= tips.length || !tips[at]) { cursor.removeAttribute("data-on"); return; }
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.dataset.on = "1";
    tip.textContent = tips[at];
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
})();
