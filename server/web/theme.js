// Light or dark, before anything is drawn. Without a choice of the reader's the system decides (style.css).
"use strict";

{
  const KEY = "ztserve.theme";
  const CHOICES = ["system", "light", "dark"];
  let choice = "system";

  const apply = () => {
    if (choice === "system")
      delete document.documentElement.dataset.theme;
    else
      document.documentElement.dataset.theme = choice;
  };

  try {
    choice = CHOICES.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "system";
  } catch { /* Storage is turned off: the choice lasts as long as the page. */ }
  apply();

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      button.textContent = `Theme: ${choice}`;
    };

    label();
    button.addEventListener("click", () => {
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      apply();
      label();
      try {
        localStorage.setItem(KEY, choice);
      } catch { /* As above. */ }
      dispatchEvent(new Event("ztserve:theme"));
    });
  });
}
