// Beside the form of a launch: what vLLM's own parser says of its arguments, below them; and the lines for several machines.
// The parser: the server answers at once what it has said before, the first question of all takes as long as vLLM's import. One
// question at a time, and then the newest.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  let wanted = null; // what the form held last, if that is to be asked about
  let asking = false;

  document.addEventListener("kimi-launch-shown", ({ detail }) => {
    wanted = detail.ask ? detail.given : null;
    if (wanted) ask();
    else say("");
  });

  function say(words, busy = false) {
    const place = byId("srv-asked");
    if (!place) return;
    place.textContent = words;
    if (busy) place.prepend(Object.assign(document.createElement("span"), { className: "spinner" }));
  }

  async function ask() {
    if (asking) { say(byId("srv-asked")?.dataset.asking || "", true); return; }
    asking = true;
    try {
      while (wanted) {
        const given = wanted;
        const slow = setTimeout(() => say(byId("srv-asked")?.dataset.asking || "", true), 250);
        const told = await window.kimi.post("server", "server_arguments", given);
        clearTimeout(slow);
        if (wanted !== given || told?.wait) continue; // something newer was typed, or vLLM is still being imported
        wanted = null;
        say(told?.told || "");
        if (told?.problem) wrong(told.field, told.problem);
      }
    } finally { asking = false; }
  }

  function wrong(name, problem) {
    const field = byId("srv-form")?.querySelector(`[data-field="${CSS.escape(name)}"]`);
    const place = field?.querySelector(".srv-wrong");
    if (!place) return;
    place.hidden = false;
    place.textContent = problem;
    field.querySelector("input, select").setAttribute("aria-invalid", "true");
  }

  document.addEventListener("submit", async (event) => {
    if (event.target.id !== "srv-nodes-form") return;
    event.preventDefault();
    const { hosts, gpus, way, kimi } = event.target.elements;
    const given = { ...window.kimi.launchForm(), hosts: hosts.value, gpus: gpus.value, way: way.value, kimi: kimi.checked };
    const button = event.submitter || event.target.querySelector("button");
    button.disabled = true;
    try {
      const told = await window.kimi.post("server", "server_nodes", given);
      if (!told) return;
      for (const field of event.target.querySelectorAll("[data-node-field]")) {
        const is = field.dataset.nodeField === told.field;
        const place = field.querySelector(".srv-wrong");
        place.hidden = !is;
        place.textContent = is ? told.problem : "";
        field.querySelector("input, select").setAttribute("aria-invalid", String(is));
      }
      byId("srv-nodes").innerHTML = told.html || "";
    } finally { button.disabled = false; }
  });
})();
