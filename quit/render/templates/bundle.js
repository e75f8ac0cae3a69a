// What the server of `quit browse` makes of an address, made in the browser. The HTML comes from its templates.
const SIZE = 50;

// A page opened from a folder may read scripts only, so every file is one: packed = "..." (zlib, base64).
async function load(name) {
  const script = document.createElement("script");
  script.src = `data/${name}.js`;
  await new Promise((onload, onerror) => {
    Object.assign(script, { onload, onerror });
    document.head.append(script);
  });
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt());
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// As the database does: lower(strip_accents(text)), letter by letter.
function plain(text) {
  const letters = text.normalize("NFD").replace(/\p{M}/gu, "").normalize("NFC");
  return Array.from(letters, (letter) => letter.toLowerCase()).join("");
}

async function search(index, asked) {
  const order = asked.get("order") || "id";
  let found = Object.hasOwn(index.orders, order) ? index.orders[order] : [];
  for (const [name, values] of Object.entries(index.filters)) {
    if (asked.get(name)) found = found.filter((place) => values[place] === asked.get(name));
  }
  for (const check of asked.getAll("check").filter(Boolean)) {
    const places = new Set(index.checks[check]);
    found = found.filter((place) => places.has(place));
  }
  const wanted = plain(asked.get("q") ?? "").split(/\s+/);
  if (!wanted.some(Boolean)) return found;
  const words = JSON.parse(await load("words"));
  return found.filter((place) => wanted.every((word) => words[place].includes(word)));
}

async function results(index, asked) {
  const found = await search(index, asked);
  const pages = Math.max(1, Math.ceil(found.length / SIZE));
  const page = Math.min(Math.max(1, parseInt(asked.get("page")) || 1), pages);
  asked.delete("page");
  const shown = found.slice((page - 1) * SIZE, page * SIZE);
  const number = (count) => count.toLocaleString("en");
  const to = (name, value) => `?${new URLSearchParams([...[...asked].filter(([key]) => key !== name), [name, value]])}`;
  const all = (selector) => document.querySelectorAll(selector);

  for (const body of all("tbody")) {
    body.innerHTML = shown.map((place) => index.html[place]).join("");
    body.parentElement.hidden = !shown.length;
  }
  for (const link of all("tbody a")) link.href += `&${asked}`;
  for (const link of all("thead a")) {
    const order = new URL(link.href).searchParams.get("order");
    const now = order === asked.get("order");
    if (now) link.parentElement.ariaSort = "descending";
    link.href = to("order", now && order === "most" ? "fewest" : order);
  }
  const range = `, ${number((page - 1) * SIZE + 1)} to ${number((page - 1) * SIZE + shown.length)}`;
  document.getElementById("total").textContent =
    `${number(found.length)} question${found.length === 1 ? "" : "s"}${found.length > shown.length ? range : ""}`;
  document.getElementById("page").textContent = page;
  document.getElementById("pages").textContent = pages;
  for (const [rel, other] of [["prev", page - 1], ["next", page + 1]]) {
    const [link] = all(`main nav [rel=${rel}]`);
    link.href = to("page", other);
    link.parentElement.hidden = other < 1 || other > pages;
    link.closest("nav").hidden = pages === 1;
  }
  for (const field of all("form [name]")) {
    if (field.type === "checkbox") field.checked = asked.getAll("check").includes(field.value);
    else field.value = asked.get(field.name) ?? field.value;
  }
  all("form a")[0].hidden = !String(asked);
}

async function question(index, asked) {
  const id = asked.get("id");
  const place = index.ids.indexOf(id);
  asked.delete("id");
  if (place < 0) {
    document.querySelector("main p").textContent = `There is no question ${id} in this folder.`;
    return;
  }
  const page = new DOMParser().parseFromString(await load(place), "text/html");
  const found = await search(index, asked);
  const at = found.indexOf(place);
  for (const [rel, other] of [["prev", at - 1], ["next", at + 1]]) {
    if (at < 0 || !(other in found)) continue;
    const link = page.querySelector(`[rel=${rel}]`);
    link.href = `question.html?${new URLSearchParams([["id", index.ids[found[other]]], ...asked])}`;
    link.parentElement.hidden = link.closest("nav").hidden = false;
  }
  page.querySelector("[rel=up]").href = `index.html?${asked}`;
  document.title = page.title;
  document.querySelector("main").replaceWith(page.querySelector("main"));
}

const form = document.querySelector("form");
form?.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value || `${name}=${value}` === "order=id") formData.delete(name);
});
if (!form || location.search) {
  document.querySelector("tbody")?.replaceChildren(); // the results of no search, until those of this one are there
  load("index").then((text) => (form ? results : question)(JSON.parse(text), new URLSearchParams(location.search)));
}
