// ---- Time by kernel -----------------------------------------------------------------------------

function kernelTable(steps, all) {
  return table("Kernels and copies, the slowest first", [
    {title: "layer", text: step => step.label},
    {title: "time", text: step => seconds(step.seconds), value: step => step.seconds},
    {title: "share", text: step => percent(step.seconds / all), value: step => step.seconds,
     bar: step => step.seconds / steps[0].seconds},
    {title: "step", text: step => step.step + (step.launches > 1 ? ` × ${digits(step.launches)}` : "")},
    {title: "algorithm", text: step => step.algorithm},
    {title: "writes", text: step => step.writes},
    {title: "predicted", text: step => step.priced > 0 ? seconds(step.priced) : "",
     value: step => step.priced},
    {title: "over its roof", text: step => roofTime(step) > 0 ? times(step.seconds / roofTime(step)) : "",
     value: step => roofTime(step) > 0 ? step.seconds / roofTime(step) : 0},
    {title: "computes", text: step => step.kernel},
  ], steps);
}

// ---- Time by layer ------------------------------------------------------------------------------

// Names of layers have parts, "/encoder/layer.0/MatMul": a tree of them, each with its time. What a
// kernel computes counts for the layer that it is called by.
function layerTree(steps) {
  const root = {name: "", seconds: 0, children: new Map()};
  for (const step of steps) {
    const layer = step.layers[0] || step.after || step.computes || step.label;
    let at = root;
    at.seconds += step.seconds;
    for (const part of layer.split(/[/.]/).filter(part => part !== "")) {
      if (!at.children.has(part))
        at.children.set(part, {name: part, seconds: 0, children: new Map()});
      at = at.children.get(part);
      at.seconds += step.seconds;
    }
  }
  // What all of them have in front says nothing.
  let top = root;
  while (top.children.size === 1) top = [...top.children.values()][0];
  return top.children.size > 1 ? top : root;
}

// A chain of parts of which each has but one is one line.
function collapsed(node) {
  while (node.children.size === 1 && node.name !== "") {
    const only = [...node.children.values()][0];
    node = {...only, name: `${node.name}/${only.name}`};
  }
  return node;
}

function layerLine(node, all) {
  const bar = element("span", {class: "bar", "aria-hidden": "true"});
  bar.style.width = `${100 * node.seconds / all}%`;
  return [element("span", {class: "layer-name"}, node.name),
          element("span", {class: "layer-time"}, `${seconds(node.seconds)}, ${percent(node.seconds / all)}`),
          element("span", {class: "layer-bar"}, bar)];
}

const kMostLines = 100;

// Branches are made when they are opened: a model may have tens of thousands of layers.
function layerList(node, all) {
  const children = [...node.children.values()].map(collapsed)
    .sort((a, b) => b.seconds - a.seconds);
  const rest = sum(children.slice(kMostLines).map(child => child.seconds));
  const items = children.slice(0, kMostLines).map(child => {
    if (child.children.size === 0)
      return element("li", {class: "layer leaf"}, layerLine(child, all));
    const branch = element("details", {class: "layer"}, element("summary", {}, layerLine(child, all)));
    branch.addEventListener("toggle", () => {
      if (branch.open && branch.children.length === 1) branch.append(layerList(child, all));
    });
    return element("li", {}, branch);
  });
  if (rest > 0)
    items.push(element("li", {class: "layer leaf"},
                       layerLine({name: `${children.length - kMostLines} others`, seconds: rest}, all)));
  return element("ul", {class: "layers"}, items);
}
