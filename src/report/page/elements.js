// ---- Elements -----------------------------------------------------------------------------------

// All text goes through text nodes and attributes, so nothing in a name can become an element.
function fill(made, attributes, parts) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const part of parts.flat())
    if (part !== null && part !== undefined) made.append(part);
  return made;
}
const element = (tag, attributes, ...parts) =>
  fill(document.createElement(tag), attributes, parts);
const shape = (tag, attributes, ...parts) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, parts);

const report = JSON.parse(document.getElementById("data").textContent);

// Colours of the algorithms, in the order in which they come up.
const colours = new Map();
function colourOf(algorithm) {
  if (!algorithm) return "none";
  if (!colours.has(algorithm)) colours.set(algorithm, `c${colours.size % 8}`);
  return colours.get(algorithm);
}

// A part of the page; `parts` come below its heading, and the sentence that says what it shows.
function section(id, title, about, ...parts) {
  const heading = element("h2", {id: `${id}-title`}, title);
  const made = element("section", {id, "aria-labelledby": `${id}-title`}, heading,
                       about && element("p", {class: "about"}, about), ...parts);
  document.getElementById("main").append(made);
  return made;
}

const fold = (title, ...parts) =>
  element("details", {}, element("summary", {}, title), ...parts);

// Wide things scroll on their own, by keys too.
const scrolled = (label, inner) =>
  element("div", {class: "scrolled", role: "region", "aria-label": label, tabindex: 0}, inner);

// ---- Tables -------------------------------------------------------------------------------------

// Columns: {title, text(row), value(row), bar(row)}; those with a value are sorted by it, `bar` is
// a part of 1. The first `page` rows are shown, and more when asked for.
function table(caption, columns, rows, page = 20) {
  const body = element("tbody");
  const more = element("button", {type: "button", class: "more"});
  let shown = page, order = rows, by = null, falls = true;

  const cell = (column, row, first) => {
    const made = element(first ? "th" : "td",
                         {scope: first && "row", class: column.value && "number"}, column.text(row));
    if (!column.bar) return made;
    const bar = element("span", {class: "bar", "aria-hidden": "true"});
    bar.style.width = `${Math.max(0, Math.min(100, 100 * column.bar(row)))}%`;
    made.classList.add("barred");
    made.prepend(bar);
    return made;
  };
  const show = () => {
    body.replaceChildren(...order.slice(0, shown).map(
      row => element("tr", {}, columns.map((column, i) => cell(column, row, i === 0)))));
    const left = order.length - shown;
    more.hidden = left <= 0;
    more.textContent = left <= 200 ? `Show ${left} more` : `Show 200 more of ${left}`;
  };
  const titles = columns.map(column => {
    if (!column.value) return element("th", {scope: "col"}, column.title);
    const sort = () => {
      falls = by === column ? !falls : true;
      by = column;
      order = [...rows].sort((a, b) => (falls ? -1 : 1) * (column.value(a) - column.value(b)));
      titles.forEach(title => title.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", falls ? "descending" : "ascending");
      show();
    };
    const title = element("th", {scope: "col", class: "number"},
                          element("button", {type: "button", onclick: sort}, column.title));
    return title;
  });
  more.addEventListener("click", () => {
    shown += 200;
    show();
  });
  show();
  return element("div", {class: "table"},
                 scrolled(caption, element("table", {}, element("caption", {}, caption),
                                           element("thead", {}, element("tr", {}, titles)), body)),
                 more);
}

// Names and values, such as "cores" and "2".
const facts = rows => element("dl", {class: "facts"}, rows.filter(row => row[1] !== "").map(
  ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));

// ---- Pictures that are read ---------------------------------------------------------------------

// A picture of marks, {shape, text} each, that `draw(svg, width)` draws anew whenever the width is
// another one. The mouse, and the arrow keys once the picture has the focus, read the marks out.
function picture(name, label, draw) {
  const hint = "Point at a mark, or give the picture the focus and use the arrow keys.";
  const readout = element("p", {class: "readout", id: `${name}-readout`, "aria-live": "polite"}, hint);
  const svg = shape("svg", {class: "picture", "data-picture": name, role: "application",
                            "aria-roledescription": "chart", tabindex: 0, "aria-label": label,
                            "aria-describedby": `${name}-readout`});
  let marks = [], at = -1, drawn = 0;
  const choose = index => {
    if (marks[at]) marks[at].shape.classList.remove("chosen");
    at = index;
    if (!marks[at]) return;
    marks[at].shape.classList.add("chosen");
    readout.textContent = marks[at].text;
  };
  const redraw = width => {
    if (Math.abs(width - drawn) < 1 || width < 50) return;
    drawn = width;
    svg.replaceChildren();
    at = -1;
    marks = draw(svg, width);
    marks.forEach((mark, i) => mark.shape.setAttribute("data-mark", i));
  };
  svg.addEventListener("pointerover", event => {
    const mark = event.target.closest("[data-mark]");
    if (mark) choose(Number(mark.getAttribute("data-mark")));
  });
  svg.addEventListener("keydown", event => {
    const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
    const last = marks.length - 1;
    if (event.key in steps && last >= 0)
      choose(Math.max(0, Math.min(last, at + steps[event.key])));
    else if (event.key === "Home" && last >= 0) choose(0);
    else if (event.key === "End" && last >= 0) choose(last);
    else return;
    event.preventDefault();
  });
  const made = element("figure", {}, svg, readout);
  // When the page has it, seen or not: a page that nobody looks at draws no frames.
  setTimeout(() => redraw(made.clientWidth));
  // In a frame of its own, since drawing changes the height of what is observed.
  new ResizeObserver(entries => {
    requestAnimationFrame(() => redraw(entries[0].contentRect.width));
  }).observe(made);
  return made;
}
