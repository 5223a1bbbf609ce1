// Publishing a run: the dialog, and the buttons of the links in it and in the Server tab.
(() => {
  "use strict";

  let box = null;
  let shown = null; // [kind, subject] of what the dialog is about

  function dialog() {
    if (box) return box;
    box = Object.assign(document.createElement("dialog"), { id: "publish-dialog" });
    box.setAttribute("aria-labelledby", "publish-heading");
    // Escape closes it, and must not stop what is being written behind it (live.js).
    box.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
    box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    document.body.append(box);
    return box;
  }

  const away = () => document.getElementById("header").dataset.sayAway;

  function put(html) {
    dialog().innerHTML = html;
    addresses(box);
  }

  // Links are told in full: as the page itself was reached, unless the server knows a public address.
  const full = (inside) => new URL(inside.closest("[data-publish-address]").dataset.publishAddress, document.baseURI).href;

  function addresses(where) {
    for (const field of where.querySelectorAll("[data-publish-address] input")) field.value = full(field);
  }

  async function open(kind, subject) {
    shown = [kind, subject];
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    const known = await load();
    put(known);
    if (!box.open) box.showModal();
    box.querySelector("[data-new] input, form input")?.focus();
  }

  async function load() {
    try {
      const answer = await fetch(`kimi/published?${new URLSearchParams({ kind: shown[0], subject: shown[1] })}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      return await answer.text();
    } catch {
      return failed();
    }
  }

  function failed() {
    const told = Object.assign(document.createElement("div"), { className: "notice", textContent: away() });
    told.dataset.kind = "error";
    return told.outerHTML;
  }

  async function post(act, given) {
    try {
      const answer = await fetch(`kimi/act/${act}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given) });
      const told = await answer.json();
      return answer.ok ? [told, ""] : [null, told.html];
    } catch {
      return [null, failed()];
    }
  }

  const notice = (html) => { const told = box.querySelector(".publish-notice"); if (told) told.innerHTML = html; };

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("[data-publish-form]");
    if (!form) return;
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.disabled) return; // pressed twice
    button.disabled = true;
    const [told, wrong] = await post("publish", { kind: form.dataset.kind, subject: form.dataset.subject, title: form.elements.title.value });
    button.disabled = false;
    if (!told) return notice(wrong);
    put(told.html);
    box.querySelector("[data-new] input")?.select();
  });

  async function copy(button) {
    const address = full(button);
    if (navigator.clipboard) await navigator.clipboard.writeText(address);
    else { // over plain HTTP from another machine there is no clipboard interface
      const field = Object.assign(document.createElement("input"), { value: address });
      button.after(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    const words = button.textContent;
    button.textContent = button.closest("[data-copied]")?.dataset.copied || words;
    button.dataset.done = "1";
    setTimeout(() => { delete button.dataset.done; button.textContent = words; }, 1500);
  }

  async function qr(button) {
    const link = button.closest("li");
    const shown = link.querySelector(":scope > .srv-qr, :scope > .notice");
    if (shown) {
      shown.remove();
      button.setAttribute("aria-expanded", "false");
      return;
    }
    const [told, wrong] = await post("publish_qr", { address: full(button) });
    link.insertAdjacentHTML("beforeend", told ? told.html : wrong);
    button.setAttribute("aria-expanded", "true");
  }

  document.addEventListener("click", async (event) => {
    const opener = event.target.closest("[data-publish]");
    if (opener) return open(opener.dataset.publish, opener.dataset.publishSubject || window.kimi.conversation());
    if (event.target.closest("[data-publish-close]")) return box.close();
    const copied = event.target.closest("[data-publish-copy]");
    if (copied) return copy(copied);
    const code = event.target.closest("[data-publish-qr]");
    if (code) return qr(code);
    const withdraw = event.target.closest("[data-publish-withdraw]");
    if (withdraw) {
      withdraw.disabled = true;
      const [told, wrong] = await post("publish_withdraw", { token: withdraw.dataset.publishWithdraw });
      if (told) put(await load());
      else { withdraw.disabled = false; notice(wrong); }
    }
  });
})();
