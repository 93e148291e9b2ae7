// Runs in a report's page once it is drawn, and writes what is wrong with it into <pre id="verdict">.
// Before all else the page has got `faults`, which collects errors and refused requests.
const wrong = [];
const expect = (condition, text) => { if (!condition) wrong.push(text); };
const all = selector => [...document.querySelectorAll(selector)];
const marks = name => all(`[data-picture="${name}"] [data-mark]`).length;
const press = (target, key) =>
  target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));

function checkMarks() {
  const kernels = allSteps.filter(step => step.kernel && step.seconds > 0 && step.bytes > 0);
  expect(marks("roofline") === kernels.length, `${marks("roofline")} kernels in the roofline`);
  const memory = report.graphs.find(graph => graph.memory);
  if (memory)
    expect(marks("memory") === memory.memory.buffers.length, `${marks("memory")} buffers`);
  if (report.devices)
    expect(marks("devices") === sum(report.devices.tracks.map(track => track[2].length)),
           `${marks("devices")} jobs`);
  expect(marks("sides") === report.sides.length, `${marks("sides")} sides`);
  if (allSteps.some(step => step.priced > 0)) expect(marks("prediction") > 0, "no predictions");
  expect(all(".failure h3").length === report.failures.length, "failures");
}

// Names, roles, and the order of the focus.
function checkAccess() {
  expect(all("h1").length === 1, "one h1");
  for (const section of all("main > section"))
    expect(document.getElementById(section.getAttribute("aria-labelledby")), `${section.id}: no name`);
  for (const link of all("nav a"))
    expect(document.querySelector(link.getAttribute("href")), `no ${link.getAttribute("href")}`);
  for (const picture of all("svg")) {
    expect(picture.getAttribute("aria-label"), "a picture without a name");
    expect(picture.getAttribute("role"), "a picture without a role");
  }
  for (const one of all("button, select, input"))
    expect(one.textContent.trim() || one.labels.length > 0, `a control without a name: ${one.outerHTML}`);
  expect(all("[tabindex]").every(one => Number(one.getAttribute("tabindex")) <= 0), "a tabindex above 0");
  expect(all(".scrolled").every(one => one.tabIndex === 0), "what scrolls has no focus");
  for (const picture of all("svg.picture")) {
    picture.focus();
    press(picture, "ArrowRight");
    const readout = document.getElementById(picture.getAttribute("aria-describedby"));
    if (picture.querySelector("[data-mark]"))
      expect(picture.querySelector(".chosen") && !readout.textContent.startsWith("Point at"),
             `${picture.dataset.picture}: keys do not read`);
  }
}

function checkTables() {
  const sort = document.querySelector("#kernels thead button");
  if (!sort) return;
  sort.click();
  expect(sort.parentElement.getAttribute("aria-sort") === "descending", "not sorted");
  sort.click();
  expect(sort.parentElement.getAttribute("aria-sort") === "ascending", "not sorted the other way");
  const more = all(".more").find(button => !button.hidden);
  if (!more) return;
  const rows = () => more.parentElement.querySelectorAll("tbody tr").length;
  const before = rows();
  more.click();
  expect(rows() > before, "no more rows");
}

const boxes = () => all("svg.graph .box");

function checkGraph() {
  if (!document.getElementById("graph")) return;
  expect(boxes().length > 0 && boxes().length <= 500, `${boxes().length} boxes`);
  expect(boxes().every(box => box.getAttribute("aria-label") && box.getAttribute("role") === "button"),
         "boxes without names");
  const first = boxes().length;
  const folded = document.querySelector("svg.graph .folded");
  if (folded) {
    press(folded, "Enter");
    expect(boxes().length > first, "a folded part does not open");
    press(document.activeElement, "Escape");
    expect(boxes().length === first, `${boxes().length} boxes after folding, ${first} before`);
  }
  const step = document.querySelector("svg.graph .step");
  if (step) {
    step.dispatchEvent(new MouseEvent("click", {bubbles: true}));
    expect(document.querySelector("svg.graph .op") || report.graphs[0].graph.left_out_nodes > 0,
           "a step shows no ops");
    press(document.activeElement, "ArrowDown");
  }
  const search = document.getElementById("graph-search");
  const look = text => {
    search.value = text;
    search.dispatchEvent(new Event("input"));
    return all("#graph-found button");
  };
  const graph = report.graphs.find(one => one.graph).graph;
  const found = look(graph.steps[graph.steps.length - 1][0]);
  expect(found.length > 0, "the last step is not found");
  if (found.length > 0) {
    found[found.length - 1].click();
    expect(document.activeElement.classList.contains("match"), "what is found is not shown");
  }
  expect(look("no such thing at all").length === 0, "what is not there is found");
}

function checkLook() {
  const wide = document.documentElement;
  expect(wide.scrollWidth <= innerWidth, `the page is ${wide.scrollWidth} wide, the window ${innerWidth}`);
  const light = color => sum(color.match(/[0-9.]+/g).slice(0, 3).map(Number)) / 3;
  const style = getComputedStyle(document.body);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  expect(dark === light(style.backgroundColor) < 128, "the ground does not follow the scheme");
  expect(Math.abs(light(style.backgroundColor) - light(style.color)) > 120, "text and ground are alike");
  expect(location.hash !== "#dark" || dark, "the browser was to be dark");
}

// Pictures are drawn when they have a place, which takes a busy machine a while.
const isDrawn = () => marks("sides") === report.sides.length;
function whenDrawn(tries) {
  if (isDrawn() || tries === 0) judge();
  else setTimeout(whenDrawn, 200, tries - 1);
}

function judge() {
  for (const check of [checkMarks, checkAccess, checkTables, checkGraph, checkLook]) {
    try {
      check();
    } catch (error) {
      wrong.push(`${check.name}: ${error.stack}`);
    }
  }
  wrong.push(...faults);
  const verdict = document.createElement("pre");
  verdict.id = "verdict";
  verdict.textContent = wrong.length === 0 ? "passed" : "failed: " + wrong.join("; ");
  document.body.append(verdict);
}

setTimeout(whenDrawn, 800, 80);
