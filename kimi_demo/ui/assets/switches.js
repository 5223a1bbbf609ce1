// The switches in the header: light and dark, the language, presentation.
(() => {
  "use strict";

  const root = document.documentElement;
  const at = (event, selector) => (event.target instanceof Element ? event.target.closest(selector) : null);

  // ---- light and dark (first.js keeps it) ------------------------------------------------------------------------------

  function marked() {
    for (const button of document.querySelectorAll("#switches [data-theme]")) {
      const on = button.dataset.theme === window.kimiTheme.get();
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
  }

  function choose(button) {
    window.kimiTheme.set(button.dataset.theme);
    marked();
  }

  document.addEventListener("keydown", (event) => {
    const button = at(event, "#switches [data-theme]");
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!button || !step) return;
    event.preventDefault();
    const all = [...button.parentElement.children];
    const next = all[(all.indexOf(button) + step + all.length) % all.length];
    choose(next);
    next.focus();
  });

  window.addEventListener("storage", marked);

  // ---- language: a cookie, and the page once more (kimi_demo/ui/languages.py). carried.js takes along what stands in it. ----

  function speak(language) {
    document.cookie = `kimi_demo_language=${language}; path=/; max-age=31536000; samesite=lax`;
    window.kimi.carry();
    location.reload();
  }

  // ---- presentation: the conversation alone, in large type; the style sheet does it ----------------------------------------

  function present(on) {
    root.toggleAttribute("data-present", on);
    const address = new URL(location.href);
    if (on) address.searchParams.set("present", "1");
    else address.searchParams.delete("present");
    history.replaceState(history.state, "", address);
    if (on) document.documentElement.requestFullscreen?.().catch(() => { /* not asked for by a press, or not allowed: it fills the window */ });
    else if (document.fullscreenElement) document.exitFullscreen();
  }

  // The browser takes the Escape that ends full screen for itself.
  let full = false;
  document.addEventListener("fullscreenchange", () => {
    if (full && !document.fullscreenElement && root.hasAttribute("data-present")) present(false);
    full = Boolean(document.fullscreenElement);
  });

  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.hasAttribute("data-present")) return;
    event.stopPropagation(); // it stops no reply
    present(false);
  }, true);

  // ---- ----

  document.addEventListener("click", (event) => {
    const theme = at(event, "#switches [data-theme]");
    if (theme) choose(theme);
    const language = at(event, "#switches [data-language]");
    if (language) speak(language.dataset.language);
    if (at(event, "#switches [data-present]")) present(true);
  });

  if (new URLSearchParams(location.search).has("present")) root.setAttribute("data-present", "");
  // Gradio puts the header in place.
  new MutationObserver((_, observer) => {
    if (!document.querySelector("#switches")) return;
    observer.disconnect();
    marked();
  }).observe(root, { childList: true, subtree: true });
})();
