// ---- The graph, folded --------------------------------------------------------------------------

const kMostOpen = 30;     // steps below each other before they are folded
const kMostDrawn = 500;   // boxes
const kMostLinesOfBox = 12;
const kMostFound = 50;

// Steps in their order as a tree: neighbours with one scope of layers are a branch, and so are equal
// stretches of what is left. A branch depends on earlier ones alone, as its steps do.
function foldTree(steps) {
  const scopes = steps.map(step => scopeOf(step));
  const leaf = i => ({key: `s${i}`, from: i, to: i + 1, step: i});
  const branch = (from, to, name, depth) => {
    const made = {key: `b${from}-${to}-${depth}`, from, to, name};
    made.children = childrenOf(from, to, depth);
    made.children.forEach(child => { child.parent = made; });
    return made;
  };
  const leaves = (from, to) => Array.from({length: to - from}, (_, i) => leaf(from + i));
  const childrenOf = (from, to, depth) => {
    if (to - from <= kMostOpen) return leaves(from, to);
    for (let level = depth; level < depth + 8; level++) {
      const runs = runsOf(scopes, from, to, level);
      if (runs.length >= 2 && runs.length <= 2 * kMostOpen)
        return runs.map(([a, b]) => b - a === 1 ? leaf(a) : branch(a, b, scopes[a].slice(Math.max(0, level - 1), level + 1).join("/"),
                                                      level + 1));
    }
    const size = Math.ceil((to - from) / Math.min(kMostOpen, Math.ceil((to - from) / kMostOpen)));
    const parts = [];
    for (let a = from; a < to; a += size) {
      const b = Math.min(to, a + size);
      parts.push(b - a === 1 ? leaf(a) : branch(a, b, `steps ${a} to ${b - 1}`, depth));
    }
    return parts;
  };
  return branch(0, steps.length, "", 0);
}

// The parts of the first layer's name but the last one, or what the step stands for.
function scopeOf([name, kernel, layers]) {
  if (layers.length === 0) return [kernel || name];
  return layers[0].split(/[/.]/).filter(part => part !== "").slice(0, -1);
}

function runsOf(scopes, from, to, level) {
  const runs = [];
  for (let i = from; i < to; i++) {
    const same = i > from && scopes[i][level] !== undefined &&
                 scopes[i][level] === scopes[i - 1][level];
    if (same) runs[runs.length - 1][1] = i + 1;
    else runs.push([i, i + 1]);
  }
  return runs;
}

// What is drawn: leaves, and branches that are not open.
function shownOf(tree, open) {
  const shown = [];
  const visit = node => node.children && (node === tree || open.has(node.key))
    ? node.children.forEach(visit) : shown.push(node);
  visit(tree);
  return shown;
}

// ---- Its picture --------------------------------------------------------------------------------

class GraphView {
  constructor(graph) {
    this.steps = graph.graph.steps;
    this.schedules = graph.graph.schedules;
    this.tree = foldTree(this.steps);
    this.open = new Set();
    this.found = new Set();
    this.secondsOf = new Map((graph.profile ? graph.profile.steps : [])
      .map(step => [step.step, step.seconds]));
    this.all = graph.profile ? graph.profile.seconds : 0;
    this.svg = shape("svg", {class: "graph", "data-picture": "graph", role: "group",
                             "aria-label": "Steps of the plan from top to bottom, with what they need"});
    this.said = element("p", {class: "readout", "aria-live": "polite"});
    this.path = element("p", {class: "path"});
    this.draw();
  }

  element() {
    const search = element("input", {type: "search", id: "graph-search", "aria-controls": "graph-found"});
    const results = element("ul", {id: "graph-found", class: "found"});
    search.addEventListener("input", () => this.search(search.value, results));
    return element("div", {},
      element("p", {class: "search"}, element("label", {for: "graph-search"}, "Search "), search),
      results, this.said, this.path,
      element("div", {class: "scrolled drawing", role: "region", "aria-label": "Graph", tabindex: 0},
              this.svg),
      element("p", {class: "hint"}, "A step opens to its ops, a folded part to its steps, by a click " +
              "or Enter; Escape folds the part around a step. The arrows up and down go from box to box."));
  }

  // Opened: a branch shows its steps, a step its ops.
  toggle(node) {
    if (this.open.has(node.key)) this.open.delete(node.key);
    else this.open.add(node.key);
    if (shownOf(this.tree, this.open).length > kMostDrawn) {
      this.open.delete(node.key);
      this.said.textContent = `That would be more than ${kMostDrawn} boxes; fold other parts first.`;
      return;
    }
    const focus = node.children && this.open.has(node.key) ? node.children[0] : node;
    this.draw(focus);
  }

  fold(node) {
    const parent = node.parent;
    if (!parent || parent === this.tree) return;
    const forget = inner => {
      this.open.delete(inner.key);
      (inner.children || []).forEach(forget);
    };
    forget(parent);
    this.draw(parent);
  }

  titleOf(node) {
    if (node.children) return node.name || `steps ${node.from} to ${node.to - 1}`;
    const [name, kernel, layers] = this.steps[node.step];
    return layers[0] || kernel || name;
  }

  linesOf(node) {
    if (node.children) return [];
    const nodes = this.steps[node.step][5];
    if (!this.open.has(node.key)) return [];
    const lines = nodes.slice(0, kMostLinesOfBox).map(
      ([name, op, type, layout]) => `${op} ${type}${layout ? " as " + layout : ""}  ${name}`);
    if (nodes.length > kMostLinesOfBox) lines.push(`${nodes.length - kMostLinesOfBox} more`);
    return lines;
  }

  timeOf(node) {
    let time = 0;
    for (let i = node.from; i < node.to; i++) time += this.secondsOf.get(this.steps[i][0]) || 0;
    return time;
  }

  subtitleOf(node) {
    const time = this.timeOf(node);
    const share = time > 0 ? `${seconds(time)}, ${percent(time / this.all)}` : "";
    if (node.children)
      return [plural(node.to - node.from, "step"), share].filter(text => text).join(", ");
    const [name, , , schedule] = this.steps[node.step];
    const algorithm = schedule >= 0 ? this.schedules[schedule][1] : "";
    return [name, algorithm, share].filter(text => text).join(", ");
  }

  describe(node) {
    if (node.children) return `${this.titleOf(node)}: ${this.subtitleOf(node)}, folded`;
    const [, kernel, , schedule, , nodes] = this.steps[node.step];
    const how = schedule >= 0 ? `, schedule ${this.schedules[schedule][2]}` : "";
    return `${this.titleOf(node)}: ${this.subtitleOf(node)}; ${kernel || "no kernel"} of ` +
           `${plural(nodes.length, "op")}${how}`;
  }

  draw(focus) {
    const shown = shownOf(this.tree, this.open);
    const owner = [];  // by step: the box that it is in
    shown.forEach((node, i) => { for (let at = node.from; at < node.to; at++) owner[at] = i; });
    const boxes = shown.map((node, i) => {
      const needs = new Set();
      for (let at = node.from; at < node.to; at++)
        for (const need of this.steps[at][4]) if (owner[need] !== i) needs.add(owner[need]);
      const lines = this.linesOf(node);
      return {height: kBox.height + lines.length * kBox.line, needs: [...needs], lines};
    });
    const layout = layOut(boxes);
    this.svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
    this.svg.setAttribute("width", layout.width);
    this.svg.setAttribute("height", layout.height);
    this.svg.replaceChildren(
      shape("g", {class: "edges", "aria-hidden": "true"},
            layout.edges.map(edge => shape("path", {d: edgePath(edge.way)}))),
      ...shown.map((node, i) => this.box(node, layout.placed[i], boxes[i].lines)));
    this.path.replaceChildren(...this.crumbs());
    if (!focus) return;
    const target = this.svg.querySelector(`[data-key="${focus.key}"]`);
    if (target) target.focus();
  }

  // The parts that are open, to fold them again.
  crumbs() {
    const open = [];
    const visit = node => {
      if (!node.children) return;
      if (node !== this.tree && this.open.has(node.key)) open.push(node);
      node.children.forEach(visit);
    };
    visit(this.tree);
    return open.map(node => element("button", {type: "button", onclick: () => this.fold(node.children[0])},
                                    `Fold ${shortened(this.titleOf(node), 40)}`));
  }

  box(node, at, lines) {
    const [, , , schedule] = node.children ? [] : this.steps[node.step];
    const colour = schedule >= 0 ? colourOf(this.schedules[schedule][1]) : "none";
    const made = shape("g", {
      class: `box ${node.children ? "folded" : "step"} ${this.found.has(node.key) ? "match" : ""}`,
      transform: `translate(${at.x} ${at.y})`, tabindex: 0, role: "button", "data-key": node.key,
      "aria-expanded": this.open.has(node.key) ? "true" : "false", "aria-label": this.describe(node),
      onclick: () => this.toggle(node), onkeydown: event => this.key(event, node),
      onfocus: () => { this.said.textContent = this.describe(node); }},
      shape("rect", {width: at.width, height: at.height, rx: 5}),
      shape("rect", {class: `edge ${colour}`, width: 5, height: at.height, rx: 2}),
      shape("text", {class: "name", x: 12, y: 17}, shortened(this.titleOf(node), 25)),
      shape("text", {class: "about", x: 12, y: 32}, shortened(this.subtitleOf(node), 32)),
      lines.map((line, i) => shape("text", {class: "op", x: 12, y: 36 + (i + 1) * kBox.line - 3},
                                   shortened(line, 31))));
    made.append(shape("title", {}, this.describe(node)));
    return made;
  }

  key(event, node) {
    if (event.key === "Enter" || event.key === " ") this.toggle(node);
    else if (event.key === "Escape") this.fold(node);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const boxes = [...this.svg.querySelectorAll(".box")];
      const at = boxes.findIndex(box => box.dataset.key === node.key);
      const next = boxes[at + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) next.focus();
    } else return;
    event.preventDefault();
  }

  // ---- Searching

  // Leaves whose names, layers, ops, types or layouts have the words.
  search(text, results) {
    const words = text.toLowerCase().split(/\s+/).filter(word => word !== "");
    this.texts ||= this.steps.map(step => JSON.stringify([...step.slice(0, 3), step[5]]).toLowerCase() +
      (step[3] >= 0 ? this.schedules[step[3]][1] : ""));
    const hits = words.length === 0 ? [] : this.texts.flatMap(
      (known, i) => words.every(word => known.includes(word)) ? [i] : []);
    const leaves = this.leavesOf(hits);
    this.found = new Set(leaves.flatMap(leaf => this.around(leaf).map(node => node.key)));
    results.replaceChildren(...leaves.slice(0, kMostFound).map(leaf => element("li", {},
      element("button", {type: "button", onclick: () => this.show(leaf)}, this.titleOf(leaf)),
      ` ${this.subtitleOf(leaf)}`)));
    this.said.textContent = words.length === 0 ? "" : `${plural(hits.length, "step")} found` +
      (hits.length > kMostFound ? `, the first ${kMostFound} of them below` : "");
    this.draw();
  }

  leavesOf(steps) {
    return steps.map(step => {
      let node = this.tree;
      while (node.children) node = node.children.find(child => step >= child.from && step < child.to);
      return node;
    });
  }

  around(node) {
    const nodes = [];
    for (; node && node !== this.tree; node = node.parent) nodes.push(node);
    return nodes;
  }

  // Folds all else, opens what is around it, and goes there.
  show(leaf) {
    this.open = new Set(this.around(leaf).filter(node => node.children).map(node => node.key));
    this.draw(leaf);
  }
}

function graphPart(graph) {
  const picture = graph.graph;
  if (!picture) return [element("p", {class: "missing"}, "The graph could not be drawn.")];
  if (picture.steps.length === 0)
    return [element("p", {class: "missing"}, "The graph has no steps: nothing is left to compute.")];
  const parts = [new GraphView(graph).element()];
  if (picture.left_out_steps > 0)
    parts.push(element("p", {class: "note"},
                       `${plural(picture.left_out_steps, "later step")} left out.`));
  if (picture.left_out_nodes > 0)
    parts.push(element("p", {class: "note"}, `${plural(picture.left_out_nodes, "op")} left out.`));
  const rows = picture.steps.map((step, i) => ({step, i}));
  parts.push(fold("The steps as a table", table("Steps of the plan, in order", [
    {title: "step", text: row => row.step[0]},
    {title: "place", text: row => `${row.i}`, value: row => row.i},
    {title: "layers", text: row => row.step[2].join(", ")},
    {title: "computes", text: row => row.step[5].map(node => node[1]).join(", ")},
    {title: "types and layouts", text: row => row.step[5].slice(-1).map(
      node => node[2] + (node[3] ? " as " + node[3] : "")).join("")},
    {title: "schedule", text: row => row.step[3] >= 0 ? picture.schedules[row.step[3]][2] : ""},
    {title: "needs", text: row => row.step[4].map(need => picture.steps[need][0]).join(", ")},
  ], rows)));
  return parts;
}
