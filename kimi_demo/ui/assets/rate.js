// Thumbs under a finished reply: one click makes what was asked a case of QA; a note can follow.
(() => {
  "use strict";

  const kindOf = (inside) => (inside.closest("#tools") ? "tools" : "chat");

  async function rate(inside, given) {
    const foot = inside.closest(".turn-foot");
    const told = await window.kimi.post(kindOf(inside), "rate", given);
    if (!told) return;
    for (const button of foot.querySelectorAll("[data-rate]")) button.setAttribute("aria-pressed", String(Boolean(button.dataset.good) === given.good));
    foot.parentElement.querySelector(":scope > .rated")?.remove();
    foot.insertAdjacentHTML("afterend", told.html);
    foot.nextElementSibling.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-rate]");
    if (!button || button.disabled) return;
    button.disabled = true;
    const note = button.closest(".turn-foot").parentElement.querySelector(":scope > .rated input")?.value || "";
    try { await rate(button, { run: button.dataset.rate, good: Boolean(button.dataset.good), note }); } finally { button.disabled = false; }
  });

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("[data-rate-note]");
    if (!form) return;
    event.preventDefault();
    await rate(form.parentElement.querySelector(":scope > .turn-foot .rate"), { run: form.dataset.rateNote, good: Boolean(form.dataset.good), note: form.elements.note.value });
  });
})();
