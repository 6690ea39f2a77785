import MiniSearch from "minisearch";

const root = new URL(".", document.currentScript.src);
const here = document.body.dataset.path;

// load runs a script of the site. A script, unlike a fetch, also works for a page that is opened as a file.
const load = (url) => new Promise((done, failed) => {
  const script = document.createElement("script");
  script.src = url;
  script.onload = done;
  script.onerror = failed;
  document.head.append(script);
});

// The menu says where the reader is.
for (const a of document.querySelectorAll("#menu a")) {
  if (a.href === new URL(here, root).href) {
    a.setAttribute("aria-current", "page");
    a.scrollIntoView({ block: "center" });
  }
}
scrollTo(0, 0);

// Light or dark: as the system has it, until the reader chooses.
const colours = (scheme) => { if (scheme) document.documentElement.style.colorScheme = scheme; };
const dark = () => (localStorage.getItem("colours") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
colours(localStorage.getItem("colours"));
document.getElementById("colours").addEventListener("click", () => {
  localStorage.setItem("colours", dark() ? "light" : "dark");
  colours(localStorage.getItem("colours"));
});

// Versions: the folders beside this one. The same page is opened where the version has it.
const version = document.getElementById("version");
load(new URL("../versions.js", root)).then(() => {
  const current = version.value;
  version.replaceChildren(...window.versions.map(({ name }) => new Option(name, name, name === current, name === current)));
}, () => {});
version.addEventListener("change", () => {
  const { name, pages } = window.versions.find((v) => v.name === version.value);
  location.href = new URL(`../${name}/${pages.includes(here) ? here : ""}`, root) + "index.html".repeat(!pages.includes(here));
});

// Search: every section of every page, read when the reader first goes to the field.
const form = document.getElementById("search");
const field = form.querySelector("input");
const found = document.getElementById("found");
let index;
// stem makes one word of the singular and the plural.
const stem = (word) => word.toLowerCase().replace(/ies$/, "y").replace(/([^s])s$/, "$1");
const read = () => (index ??= load(new URL("sections.js", root)).then(() => {
  const sections = new MiniSearch({
    fields: ["heading", "page", "text"],
    storeFields: ["heading", "page", "text", "path", "anchor"],
    processTerm: stem,
    searchOptions: { boost: { heading: 4, page: 3 }, prefix: (word) => word.length > 2, fuzzy: (word) => (word.length > 4 ? 0.2 : false), combineWith: "AND" },
  });
  sections.addAll(window.sections.map((section, id) => ({ id, ...section })));
  return sections;
}));

// excerpt is a piece of the text around the first of the words.
const excerpt = (text, words) => {
  const at = Math.min(...words.map((w) => text.toLowerCase().indexOf(w)).filter((i) => i >= 0), text.length);
  const from = Math.max(0, at === text.length ? 0 : at - 40);
  return (from ? "… " + text.slice(from, from + 160).replace(/^\S*\s/, "") : text.slice(0, 160)) + (from + 160 < text.length ? " …" : "");
};

const search = async () => {
  const words = field.value.trim();
  const sections = await read();
  if (words !== field.value.trim()) return;
  let results = sections.search(words);
  if (!results.length) results = sections.search(words, { combineWith: "OR" });
  found.replaceChildren(...results.slice(0, 12).map((r) => {
    const a = document.createElement("a");
    a.href = new URL(r.path, root) + (r.heading === r.page ? "" : "#" + r.anchor);
    const title = document.createElement("b");
    title.textContent = r.heading === r.page ? r.page : `${r.page} › ${r.heading}`;
    const text = document.createElement("span");
    text.textContent = excerpt(r.text, r.terms);
    a.append(title, text);
    const li = document.createElement("li");
    li.append(a);
    return li;
  }));
  if (words && !results.length) found.textContent = "Nothing found.";
  found.hidden = !words;
};
field.addEventListener("focus", read);
field.addEventListener("input", search);
form.addEventListener("submit", (event) => { event.preventDefault(); found.querySelector("a")?.click(); });
form.addEventListener("keydown", (event) => {
  const links = [...found.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") found.hidden = true;
  if (!step || !links.length) return;
  event.preventDefault();
  (links[links.indexOf(document.activeElement) + step] ?? field).focus();
});
found.addEventListener("click", () => { found.hidden = true; });
document.addEventListener("click", (event) => { if (!form.contains(event.target)) found.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  field.focus();
});

// Diagrams are drawn where a page has some.
if (document.querySelector(".mermaid")) {
  load(new URL("mermaid.js", root)).then(() => window.mermaid.run({ querySelector: ".mermaid" }));
}
