// The drawer with the chat's parameters, and the room that a message leaves in the context.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;

  function drawer(open) {
    if (open === root.hasAttribute("data-parameters")) return;
    root.toggleAttribute("data-parameters", open);
    byId("chat-parameters-open")?.setAttribute("aria-expanded", String(open));
    if (open) byId("chat-parameters")?.querySelector("button, input")?.focus();
    else byId("chat-parameters-open")?.focus();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("#chat-parameters-open")) drawer(!root.hasAttribute("data-parameters"));
    else if (event.target.closest("[data-parameters-close]")) drawer(false);
    else if (event.target.closest("button[role=tab]")) root.removeAttribute("data-parameters");
  });

  // Before live.js: Escape closes the drawer, and only the next one stops a reply.
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.hasAttribute("data-parameters")) return;
    event.stopPropagation();
    drawer(false);
  }, true);

  // ---- marks: the server says what differs from the preset, once the typing has paused ----------------------------

  let pause = 0;
  for (const name of ["input", "change"]) {
    document.addEventListener(name, (event) => {
      if (!event.target.closest("#chat-parameters, #chat-max-tokens, #chat-thinking") || event.target.closest("#chat-preset")) return;
      clearTimeout(pause);
      pause = setTimeout(() => byId("chat-parameters-sync")?.click(), 250);
    });
  }

  // ---- room ------------------------------------------------------------------------------------------------------

  let timer = 0;
  let asked = 0;

  async function room() {
    const box = byId("chat-room");
    if (!box || !window.kimi?.conversation) return;
    const number = ++asked;
    const given = {
      conversation: window.kimi.conversation(),
      text: byId("chat-input")?.querySelector("textarea")?.value || "",
      thinking: byId("chat-thinking")?.querySelector("input")?.checked !== false,
      max_tokens: Number(byId("chat-max-tokens")?.querySelector("input")?.value) || 1,
    };
    try {
      const answer = await fetch("kimi/room", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given) });
      if (!answer.ok || number !== asked) return;
      const { words, tight } = await answer.json();
      box.textContent = words;
      box.toggleAttribute("data-tight", tight);
    } catch { /* the next keystroke asks again */ }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(room, 600);
  }

  document.addEventListener("input", (event) => { if (event.target.closest("#chat-input, #chat-max-tokens, #chat-thinking")) soon(); });
  new MutationObserver(soon).observe(root, { attributes: true, attributeFilter: ["data-chat"] });
})();
