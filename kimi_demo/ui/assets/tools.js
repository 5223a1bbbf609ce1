// The tools tab: forms inside the live view (a result that is asked for, an edit, a repetition), and how much is shown.
(() => {
  "use strict";

  // ---- forms: what they carry and what was typed goes to /kimi/act/{data-form} --------------------------------------

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-form]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.sending) return; // a second Enter
    const given = Object.fromEntries(new FormData(form));
    for (const { name, value } of form.attributes) if (name.startsWith("data-value-")) given[name.slice(11).replaceAll("-", "_")] = value;
    form.dataset.sending = "1";
    remember(form);
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    try {
      const wrong = await send(form.dataset.form, given);
      const notice = form.querySelector(".form-notice");
      if (notice) notice.innerHTML = wrong;
      if (!wrong) form.closest("details.menu")?.removeAttribute("open");
      if (!wrong) window.kimi.refresh("tools", form.dataset.form !== "tools_answer");
    } finally {
      delete form.dataset.sending;
      for (const button of form.querySelectorAll("button")) button.disabled = false;
    }
  });

  // "" when it was done, else what to say, as HTML.
  async function send(act, given) {
    try {
      const answer = await fetch(`kimi/act/${act}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given), signal: AbortSignal.timeout(60000) });
      return answer.ok ? "" : (await answer.json()).html;
    } catch {
      const told = Object.assign(document.createElement("div"), { className: "notice", textContent: document.getElementById("header")?.dataset.sayAway || "" });
      told.dataset.kind = "error";
      return told.outerHTML;
    }
  }

  // What is to be edited stands on the page already; it is put into the form when that is opened for the first time.
  document.addEventListener("toggle", (event) => {
    const form = event.target.open && event.target.matches?.("details.edit") ? event.target.querySelector("form[data-from]") : null;
    if (!form || form.dataset.filled) return;
    const field = form.querySelector("textarea");
    field.value = document.querySelector(form.dataset.from)?.textContent || "";
    field.rows = Math.min(12, Math.max(3, field.value.split("\n").length));
    form.dataset.filled = "1";
    field.focus();
  }, true);

  // Escape in a form is not for the run, which it would stop; Ctrl+Enter sends, as in most places. (Before live.js hears of it.)
  window.addEventListener("keydown", (event) => {
    const form = event.target.closest?.("form[data-form]");
    if (!form) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      const box = form.closest("details.edit[open], details.menu[open]");
      if (box) { box.open = false; box.querySelector("summary").focus(); } else event.target.blur();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  }, true);

  // ---- staying with the question that one acts on: a new version or a comparison need not be the last on the page ----

  let question = "";

  function remember(element) {
    const holder = element.closest("#tools [data-question]");
    if (holder) question = holder.dataset.question;
  }

  document.addEventListener("click", (event) => {
    const act = event.target.closest("#tools [data-act]");
    if (act) remember(act);
  }, true);

  document.addEventListener("kimi:start", (event) => {
    if (event.detail.kind !== "tools" || !question) return;
    const holders = [...document.querySelectorAll("#tools [data-question]")];
    const target = holders.findLast((each) => each.dataset.question === question);
    question = "";
    if (target && target !== holders.at(-1)) target.scrollIntoView({ block: "start" });
  });

  // ---- compact or detailed ------------------------------------------------------------------------------------------

  const KEY = "kimi-demo-tools-view";
  const VIEWS = ["compact", "detailed"];

  function view(name, keep) {
    document.documentElement.dataset.toolsView = name;
    for (const each of document.querySelectorAll("[data-tools-view-button]")) each.setAttribute("aria-checked", String(each.dataset.toolsViewButton === name));
    if (keep) try { localStorage.setItem(KEY, name); } catch { /* private mode: the page works without memory */ }
  }

  function remembered() {
    let name = null;
    try { name = localStorage.getItem(KEY); } catch { /* see above */ }
    return VIEWS.includes(name) ? name : "detailed";
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tools-view-button]");
    if (button) view(button.dataset.toolsViewButton, true);
  });

  document.addEventListener("keydown", (event) => {
    const button = event.target.closest?.("[data-tools-view-button]");
    if (!button || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    const other = [...button.parentElement.querySelectorAll("[data-tools-view-button]")].find((each) => each !== button);
    view(other.dataset.toolsViewButton, true);
    other.focus();
  });

  // Gradio puts the tab's content in place when it is first shown.
  const waiting = new MutationObserver(() => {
    if (!document.querySelector("[data-tools-view-button]")) return;
    waiting.disconnect();
    view(remembered(), false);
  });
  waiting.observe(document.documentElement, { childList: true, subtree: true });
})();
