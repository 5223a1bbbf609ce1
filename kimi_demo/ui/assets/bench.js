// The tools that are offered: the picker above the tool conversations, and the editor of one's own tools.
// What it shows is made by kimi_demo/ui/view/tool_picker.py and tool_editor.py; this file fills, sends and asks again.
(() => {
  "use strict";

  const bench = () => document.getElementById("tool-list");
  const editor = () => document.getElementById("tool-editor");
  const JSON_HEADERS = { "content-type": "application/json" };

  // ---- the picker --------------------------------------------------------------------------------------------------

  let asked = 0;
  let sending = 0; // while something is on its way, an older answer must not turn a switch back
  let timer = 0;
  const AGAIN_MS = 3000;

  async function load() {
    const box = bench();
    if (!box) return;
    clearTimeout(timer);
    const number = ++asked;
    try {
      const answer = await fetch("kimi/tools", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const { summary, html, approve, settled } = await answer.json();
      if (number !== asked || sending) return;
      show(box, summary, html);
      const leave = document.querySelector("[data-bench-approve]");
      if (leave && approve !== null && wanted === null) leave.checked = approve;
      if (!settled) timer = setTimeout(load, 1000);
    } catch {
      if (number === asked) timer = setTimeout(load, AGAIN_MS);
    }
  }

  function show(box, summary, html) {
    box.querySelector(".bench-summary").innerHTML = summary;
    const body = box.querySelector(".bench-body");
    if (body.shown === html) return;
    const focused = body.contains(document.activeElement) ? keyOf(document.activeElement) : null;
    const told = body.querySelector(".bench-told")?.innerHTML || "";
    body.innerHTML = html;
    body.shown = html;
    const status = body.querySelector(".bench-told");
    if (status) status.innerHTML = told;
    if (focused) body.querySelector(focused)?.focus();
    document.documentElement.setAttribute("data-bench", "shown");
  }

  // A selector that finds the same control again in new HTML.
  function keyOf(element) {
    const named = [...element.attributes].find(({ name }) => name.startsWith("data-bench-"));
    return named ? `[${named.name}="${CSS.escape(named.value)}"]` : null;
  }

  async function act(name, given) {
    sending += 1;
    let told = null;
    try {
      told = await window.kimi.post("tools", name, given);
    } finally {
      sending -= 1;
    }
    bench().querySelector(".bench-body").shown = ""; // a switch that could not be moved goes back
    await load();
    return told;
  }

  // Leave for calls. What the box shows holds at once, since a question is sent with it; here it is kept for later ones: one change
  // at a time, so that the last one wins, and again until the app is reached. Where the app cannot keep it, the box goes back.
  let wanted = null;

  async function requireLeave(on) {
    const going = wanted !== null;
    wanted = on;
    if (going) return;
    document.documentElement.dataset.leave = "saving";
    for (let known = null; known !== wanted;) {
      const sent = wanted;
      const told = await window.kimi.post("tools", "bench_approve", { on: sent });
      if (told === null) break;
      if (told) known = sent;
      else await new Promise((again) => setTimeout(again, AGAIN_MS));
    }
    wanted = null;
    delete document.documentElement.dataset.leave;
    await load();
  }

  function tell(nodes) {
    bench()?.querySelector(".bench-told")?.replaceChildren(...nodes);
  }

  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.matches("[data-bench-switch]")) act("bench_switch", { name: target.dataset.benchSwitch, on: target.checked });
    else if (target.matches("[data-bench-choice]")) act("bench_choose", { choice: target.value });
    else if (target.matches("[data-bench-parallel]")) act("bench_parallel", { on: target.checked });
    else if (target.matches("[data-bench-approve]")) requireLeave(target.checked);
    else if (target.matches("[data-bench-import]") && target.files.length) takeIn(target);
    else if (target.name === "start" && target.closest("#tool-editor")) start(target.value);
    else if (target.name === "answering" && target.closest("#tool-editor")) answering();
  });

  document.addEventListener("click", (event) => {
    const hit = (name) => event.target.closest(`[data-bench-${name}]`);
    if (hit("new")) edit(null);
    else if (hit("edit")) edit(hit("edit").dataset.benchEdit);
    else if (hit("delete")) remove(hit("delete").dataset.benchDelete);
    else if (hit("undo")) undo();
    else if (hit("again")) load();
    else if (event.target.closest("[data-editor-cancel]")) leave();
  });

  document.addEventListener("keydown", (event) => {
    const label = event.target.closest?.("label.act[role=button]");
    if (label && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); label.click(); }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest("#tool-editor")) { event.preventDefault(); save(); }
  });

  let deleted = null;

  async function remove(name) {
    const told = await act("bench_delete", { name });
    if (!told?.tool) return;
    deleted = told.tool;
    const words = bench().dataset;
    const undoing = Object.assign(document.createElement("button"), { type: "button", className: "act plain", textContent: words.undo });
    undoing.dataset.benchUndo = "";
    tell([words.deleted.replace("{name}", name), " ", undoing]);
  }

  async function undo() {
    const tool = deleted;
    deleted = null;
    if (!tool) return;
    const { wrong } = await send({ ...tool, was: null });
    tell([]);
    if (wrong) window.kimi.notice("tools", wrong.html || "");
    load();
  }

  async function takeIn(field) {
    const [file] = field.files;
    try {
      const answer = await fetch("kimi/tools/import", { method: "POST", body: file });
      const told = await answer.json();
      if (answer.ok) tell([told.words]);
      else bench().querySelector(".bench-told").innerHTML = told.html;
    } catch {
      tell([document.getElementById("header")?.dataset.sayAway || ""]);
    }
    field.value = ""; // the same file may be chosen again, corrected
    load();
  }

  // ---- the editor --------------------------------------------------------------------------------------------------

  let was = null; // the name of the tool that is being changed
  let before = ""; // what stood in the fields at first

  const form = () => editor().querySelector("form");
  const values = () => Object.fromEntries(["name", "description", "parameters", "answering", "text"].map((name) => [name, form().elements[name].value]));

  async function edit(name) {
    was = name;
    let tool = JSON.parse(editor().dataset.starts).empty;
    if (name !== null) {
      try {
        const answer = await fetch(`kimi/tools/own?${new URLSearchParams({ name })}`, { cache: "no-store" });
        const told = await answer.json();
        if (!answer.ok) { window.kimi.notice("tools", told.html); load(); return; }
        tool = told;
      } catch { return; } // the page says that the app is away
    }
    window.kimi.notice("tools", "");
    const { dataset } = editor();
    editor().querySelector("h2").textContent = name === null ? dataset.new : dataset.change.replace("{name}", name);
    editor().querySelector(".start").hidden = name !== null;
    form().elements.start.value = "empty";
    fill(tool);
    editor().showModal();
    form().elements.name.focus();
  }

  function fill(tool) {
    for (const [name, value] of Object.entries(tool)) form().elements[name].value = value;
    answering();
    complain({});
    before = JSON.stringify(values());
  }

  function start(key) {
    const tool = JSON.parse(editor().dataset.starts)[key];
    if (tool && discard()) fill(tool);
  }

  function answering() {
    editor().querySelector('[data-field="answer"]').hidden = form().elements.answering.value === "ask";
  }

  const discard = () => JSON.stringify(values()) === before || window.confirm(editor().dataset.discard);

  function leave() { if (discard()) editor().close(); }

  // What is wrong stands below its field; of a schema or template, the line is selected.
  function complain({ html = "", field = "", line = "" }) {
    for (const box of editor().querySelectorAll(".field-wrong, .editor-told")) box.innerHTML = "";
    for (const each of editor().querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
    if (!html) return;
    const place = field && editor().querySelector(`[data-field="${CSS.escape(field)}"]`);
    (place ? place.querySelector(".field-wrong") : editor().querySelector(".editor-told")).innerHTML = html;
    const control = place && place.querySelector("input, textarea");
    if (!control) return;
    control.setAttribute("aria-invalid", "true");
    control.focus();
    if (line && control.tagName === "TEXTAREA") select(control, Number(line));
    place.scrollIntoView({ block: "nearest" });
  }

  function select(control, line) {
    const lines = control.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    control.setSelectionRange(from, from + (lines[line - 1] || "").length);
    const height = parseFloat(getComputedStyle(control).lineHeight) || 18;
    control.scrollTop = Math.max(0, (line - 4) * height);
    control.scrollLeft = 0;
  }

  async function send(draft) {
    try {
      const answer = await fetch("kimi/tools/own", { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(draft) });
      const told = await answer.json();
      return answer.ok ? { name: told.name } : { wrong: told };
    } catch {
      const away = Object.assign(document.createElement("div"), { className: "notice", textContent: document.getElementById("header")?.dataset.sayAway || "" });
      return { wrong: { html: away.outerHTML } };
    }
  }

  async function save() {
    if (editor().dataset.saving) return; // a second Enter
    editor().dataset.saving = "1";
    try {
      const { wrong } = await send({ ...values(), was });
      complain(wrong || {});
      if (wrong) return;
      editor().close();
      tell([]);
      await load();
    } finally {
      delete editor().dataset.saving;
    }
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.closest("#tool-editor")) return;
    event.preventDefault();
    save();
  });

  // Before live.js, for which Escape stops a run; the browser closes the dialog by itself, unless something would be lost.
  window.addEventListener("keydown", (event) => { if (event.key === "Escape" && editor()?.open) event.stopPropagation(); }, true);
  document.addEventListener("cancel", (event) => {
    if (event.target.id !== "tool-editor") return;
    event.preventDefault();
    leave();
  }, true);

  // Another tab may have changed something meanwhile.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) load(); });

  // ---- beginning ---------------------------------------------------------------------------------------------------

  const seen = new WeakSet();
  new MutationObserver(() => {
    const box = bench();
    if (!box || seen.has(box)) return;
    seen.add(box);
    box.addEventListener("toggle", () => { if (box.open) load(); });
    load();
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
