
"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const fields = form.elements;
  const articles = [...document.querySelectorAll("article")];
  const texts = articles.map((one) => `${one.dataset.place} ${one.textContent}`.toLowerCase());
  const severities = [...form.querySelectorAll("[name=severity]")];

  // What is chosen is part of the address, so that it can be passed on.
  const chosen = () => {
    const found = new URLSearchParams();
    for (const name of ["text", "rule", "folder"]) if (fields[name].value) found.set(name, fields[name].value);
    const on = severities.filter((box) => box.checked).map((box) => box.value);
    if (on.length < severities.length) found.set("severity", on.join(","));
    if (fields.fixable.checked) found.set("fixable", "yes");
    return found;
  };

  const choose = (wanted) => {
    fields.text.value = wanted.get("text") ?? "";
    for (const name of ["rule", "folder"]) {
      const value = wanted.get(name) ?? "";
      fields[name].value = [...fields[name].options].some((option) => option.value === value) ? value : "";
    }
    const on = wanted.get("severity")?.split(",");
    for (const box of severities) box.checked = !on || on.includes(box.value);
    fields.fixable.checked = wanted.get("fixable") === "yes";
  };

  const apply = () => {
    const words = fields.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(severities.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    articles.forEach((article, number) => {
      const { rule, folder, severity, fixable } = article.dataset;
      const fits =
        on.has(severity) &&
        (!fields.rule.value || rule === fields.rule.value) &&
        (!fields.folder.value || folder === fields.folder.value) &&
        (!fields.fixable.checked || fixable === "yes") &&
        words.every((word) => texts[number].includes(word));
      article.hidden = !fits;
      shown += fits;
    });
    for (const file of document.querySelectorAll("section.file")) file.hidden = !file.querySelector("article:not([hidden])");
    document.getElementById("nothing").hidden = shown > 0;
    fields.shown.value = `${shown} of ${articles.length} shown`;
  };

  const remember = () => {
    const hash = chosen().toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.href.split("#")[0]);
  };

  const fromAddress = () => {
    choose(new URLSearchParams(location.hash.slice(1)));
    apply();
  };

  form.addEventListener("input", () => { apply(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => { event.preventDefault(); choose(new URLSearchParams()); apply(); remember(); });
  for (const button of document.querySelectorAll("button[data-field]")) {
    button.addEventListener("click", () => {
      fields[button.dataset.field].value = button.dataset.value;
      apply();
      remember();
      document.getElementById("findings").focus();
    });
  }
  addEventListener("hashchange", fromAddress);
  form.hidden = false;
  fromAddress();
})();
