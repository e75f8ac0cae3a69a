// A filter acts at once; without JavaScript the button does.
"use strict";
document.querySelector("form.search")?.addEventListener("change", ({ target, currentTarget }) => {
  if (target.type !== "search") currentTarget.requestSubmit();
});
