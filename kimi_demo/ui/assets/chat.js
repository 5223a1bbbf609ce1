// The chat tab beyond its stream (live.js): the list of conversations, editing a message, copying, the system prompt.
(() => {
  "use strict";

  const kimi = window.kimi;
  const PAGE = 50;
  let count = PAGE; // conversations asked for
  let listed = 0; // number of the last request for the list: an answer that was overtaken is dropped
  let polling = 0;

  const list = () => document.querySelector("#chat-list .chat-list");
  const within = (selector) => list()?.querySelector(selector);
  const input = () => document.querySelector("#chat-input textarea");

  const composer = kimi.compose("chat", "#chat-send", {
    now: () => kimi.opened(),
    submit: async (text, values, chat) => {
      if (!(await act("chat_send", { chat, text, values }))) return false;
      kimi.refresh("chat", true);
      return true;
    },
  });

  // ---- the list ----------------------------------------------------------------------------------------------------

  async function refill() {
    clearTimeout(polling);
    const items = within(".chats");
    if (!items) return;
    const mine = ++listed;
    const query = new URLSearchParams({ opened: kimi.conversation(), search: within("input[type=search]").value, count });
    try {
      const answer = await fetch(`kimi/chats?${query}`, { cache: "no-store" });
      if (!answer.ok) return;
      const { html, running } = await answer.json();
      if (mine !== listed || items.querySelector("input")) return; // a name is being typed
      if (items.dataset.shown !== html) {
        const focused = items.contains(document.activeElement) && document.activeElement.dataset.openChat;
        items.innerHTML = html;
        items.dataset.shown = html;
        if (focused) items.querySelector(`[data-open-chat="${focused}"]`)?.focus();
      }
      if (running && !document.hidden) polling = setTimeout(refill, 3000);
    } catch { /* the server is away: the box of the conversation says so */ }
  }

  let typing = 0;
  document.addEventListener("input", (event) => {
    if (event.target.matches("#chat-list input[type=search]")) {
      clearTimeout(typing);
      typing = setTimeout(() => { count = PAGE; refill(); }, 200);
    }
  });

  function drawer(opened) {
    list().toggleAttribute("data-opened", opened);
    within("[data-drawer]").setAttribute("aria-expanded", String(opened));
  }

  function show(id) {
    closeEditor();
    kimi.show(id);
    drawer(false);
    refill();
    if (!matchMedia("(pointer: coarse)").matches) input()?.focus(); // on a phone the keyboard would cover the conversation
  }

  function rename(item) {
    const button = item.querySelector(".chat-open");
    const field = Object.assign(document.createElement("input"), { value: button.querySelector(".chat-title").textContent, maxLength: 120 });
    field.setAttribute("aria-label", item.querySelector("[data-rename]").title);
    button.replaceWith(field);
    field.focus();
    field.select();
    let over = false;
    const end = async (save) => {
      if (over) return;
      over = true;
      if (save && field.value.trim()) await act("chat_rename", { chat: item.dataset.chat, title: field.value });
      field.replaceWith(button);
      within(".chats").dataset.shown = "";
      refill();
    };
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") { event.stopPropagation(); end(false); }
    });
    field.addEventListener("blur", () => end(true));
  }

  async function remove(item) {
    const id = item.dataset.chat;
    const title = item.querySelector(".chat-title").textContent;
    if (!(await act("chat_delete", { chat: id }))) return;
    const told = within(".chat-deleted");
    told.textContent = list().dataset.deleted.replace("{title}", title) + " ";
    const undo = Object.assign(document.createElement("button"), { type: "button", className: "act", textContent: list().dataset.restore });
    undo.addEventListener("click", async () => {
      if (!(await act("chat_restore", { chat: id }))) return;
      told.replaceChildren();
      show(id);
    });
    told.append(undo);
    if (kimi.conversation() === id) show("");
    else refill();
  }

  // Posts what a button means to do in the chat; other tabs of this browser look again.
  async function act(name, given) {
    const told = await kimi.post("chat", name, given);
    if (told) announce();
    return told;
  }

  // ---- other tabs of this browser ------------------------------------------------------------------------------------

  const others = "BroadcastChannel" in window ? new BroadcastChannel("kimi-demo-chat") : null;
  const announce = () => others?.postMessage({ chat: kimi.conversation() });
  if (others) {
    others.onmessage = ({ data }) => {
      if (document.hidden) return; // it looks again when it is seen again
      refill();
      if (data.chat === kimi.conversation()) kimi.refresh("chat");
    };
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refill(); });

  // ---- editing a message -----------------------------------------------------------------------------------------------

  function closeEditor() {
    for (const form of document.querySelectorAll("#chat .editor")) {
      form.parentElement.removeAttribute("data-editing");
      form.remove();
    }
  }

  function edit(run) {
    closeEditor();
    const question = document.getElementById(`run-${run}-question`);
    const bubble = question?.querySelector(".bubble");
    if (!bubble) return;
    const words = document.querySelector("#chat .live").dataset;
    const form = document.createElement("form");
    form.className = "editor";
    const field = Object.assign(document.createElement("textarea"), { value: bubble.dataset.source ?? bubble.textContent, dir: "auto" });
    field.rows = Math.min(12, field.value.split("\n").length + 1);
    const save = Object.assign(document.createElement("button"), { className: "act", textContent: words.editSave });
    const cancel = Object.assign(document.createElement("button"), { type: "button", className: "act plain", textContent: words.editCancel });
    form.append(field, save, cancel);
    question.append(form);
    question.setAttribute("data-editing", "");
    field.focus();
    const send = async () => {
      if (!(await act("chat_edit", { run, text: field.value }))) return;
      closeEditor();
      kimi.refresh("chat", true);
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
    cancel.addEventListener("click", () => { closeEditor(); input()?.focus(); });
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
      if (event.key === "Escape") { event.stopPropagation(); closeEditor(); input()?.focus(); }
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || event.target !== input() || input().value || event.isComposing) return;
    if (document.documentElement.dataset.chat === "running") return;
    const last = [...document.querySelectorAll("#chat [data-edit]")].pop();
    if (last) { event.preventDefault(); edit(last.dataset.edit); }
  });

  // ---- copying what the model wrote, as it wrote it -----------------------------------------------------------------------

  async function copy(button) {
    const text = fetch(`kimi/chats/copy/${button.dataset.copyRun}?what=${button.dataset.what}`).then((answer) => answer.text());
    if (navigator.clipboard && window.ClipboardItem) {
      // With a promise: some browsers let only the click itself write, not what comes after an answer from the server.
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": text.then((words) => new Blob([words], { type: "text/plain" })) })]);
    } else {
      // Over plain HTTP from another machine there is no clipboard interface.
      const field = Object.assign(document.createElement("textarea"), { value: await text });
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    button.dataset.done = "1";
    setTimeout(() => delete button.dataset.done, 1500);
  }

  // ---- the version before (or after) this one, beside it ------------------------------------------------------------------

  async function beside(button) {
    const run = button.closest(".run");
    const shown = run.querySelector(":scope > .beside");
    if (shown) { shown.remove(); return compared(run, button, false); }
    const of = button.closest("[data-run]").dataset.run;
    button.disabled = true;
    try {
      const answer = await fetch(`kimi/chats/beside/${button.dataset.beside}?of=${of}`, { cache: "no-store" });
      const box = Object.assign(document.createElement("section"), { className: "beside", innerHTML: await answer.text() });
      run.querySelector(":scope > .reply")[button.dataset.side](box);
      compared(run, button, true);
    } catch {
      kimi.notice("chat", `<div class="notice" data-kind="error"></div>`);
      document.querySelector("#chat-notice .notice").textContent = document.getElementById("header").dataset.sayAway;
    } finally {
      button.disabled = false;
    }
  }

  function compared(run, button, on) {
    run.classList.toggle("compared", on);
    button.setAttribute("aria-pressed", String(on));
  }

  // ---- the system prompt ---------------------------------------------------------------------------------------------------

  const system = () => document.querySelector("#chat-system [data-system]");
  let instructed = ""; // as the server knows it

  function showSystem() {
    const summary = document.querySelector("#chat-system summary");
    if (summary) summary.textContent = instructed.trim() ? list().dataset.system_set : list().dataset.system;
  }

  document.addEventListener("focusout", async (event) => {
    if (event.target !== system() || system().value === instructed) return;
    const text = system().value;
    if (!(await act("chat_system", { chat: kimi.opened(), text }))) return;
    instructed = text;
    showSystem();
    const saved = document.querySelector("[data-system-saved]");
    saved.hidden = false;
    setTimeout(() => { saved.hidden = true; }, 1500);
  });

  // ---- taking in, giving out -------------------------------------------------------------------------------------------------

  async function takeIn(text) {
    const menu = within(".import-menu");
    const answer = await fetch("kimi/chats/import", { method: "POST", headers: { "content-type": "application/json" }, body: text });
    const told = await answer.json().catch(() => ({ html: "" }));
    menu.querySelector(".import-notice").innerHTML = answer.ok ? "" : told.html;
    if (!answer.ok) return;
    menu.open = false;
    menu.querySelector("textarea").value = "";
    show(told.chat);
    announce();
  }

  document.addEventListener("change", async (event) => {
    if (!event.target.matches("#chat-list input[type=file]")) return;
    const file = event.target.files[0];
    event.target.value = "";
    if (file) takeIn(await file.text());
  });

  // ---- clicks ------------------------------------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const item = at("li.chat");
    if (at("[data-drawer]")) drawer(!list().hasAttribute("data-opened"));
    else if (at("[data-open-chat]")) show(at("[data-open-chat]").dataset.openChat);
    else if (at("[data-rename]")) rename(item);
    else if (at("[data-delete-chat]")) remove(item);
    else if (at("[data-more]")) { count = Number(at("[data-more]").dataset.more); refill(); }
    else if (at("[data-edit]")) edit(at("[data-edit]").dataset.edit);
    else if (at("[data-beside]")) beside(at("[data-beside]"));
    else if (at("[data-copy-run]")) copy(at("[data-copy-run]"));
    else if (at("[data-import]")) takeIn(within(".import-menu textarea").value);
    else if (at("a[data-export]")) at("a[data-export]").href = `kimi/chats/${kimi.conversation()}/export.${at("a[data-export]").dataset.export}`;
  }, true);

  document.addEventListener("keydown", (event) => {
    const menu = event.target.closest?.("details.menu[open]");
    if (event.key !== "Escape" || !menu) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary").focus();
  }, true);

  // ---- what live.js tells -----------------------------------------------------------------------------------------------------

  document.addEventListener("kimi:start", ({ detail }) => {
    if (detail.kind !== "chat") return;
    if (system() && document.activeElement !== system()) {
      instructed = detail.system || "";
      system().value = instructed;
      showSystem();
    }
    refill();
  });
  document.addEventListener("kimi:end", ({ detail }) => { if (detail.kind === "chat") refill(); });
  document.addEventListener("kimi:act", ({ detail }) => {
    if (detail.kind !== "chat") return;
    announce();
    refill();
    // A message that was taken back goes where it can be changed and sent again.
    if (detail.act === "chat_unqueue") {
      composer.giveBack(detail.button.closest(".queued").querySelector(".bubble").textContent);
      input()?.focus();
    }
  });

  kimi.begin = () => show("");
})();
