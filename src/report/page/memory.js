// ---- Memory over time ---------------------------------------------------------------------------

// Neighbours in number are far apart in hue.
const hueOf = index => index * 137 % 360;

// A rectangle for each buffer: from its first step to its last, at its place in the arena.
function memoryMap(memory, stepNames) {
  const nameOf = at => stepNames[at] ? `${at} (${stepNames[at]})` : `${at}`;
  return picture("memory", `${plural(memory.buffers.length, "buffer")} in the arena over ` +
                           `${plural(memory.moments, "step")}`, (svg, width) => {
    const height = Math.min(460, Math.max(300, width * 0.45));
    sized(svg, width, height);
    const x = scale(0, memory.moments, kMargin.left, width - kMargin.right, false);
    const y = scale(0, memory.height, height - kMargin.bottom, kMargin.top, false);
    y.ticks = binaryTicks(memory.height);
    axes(svg, width, height, x, y, ["step of the plan", "offset"], [count, bytes]);
    const shapes = memory.buffers.map((buffer, i) => {
      const [name, type, begin, end, offset, size] = buffer;
      const rectangle = shape("rect", {class: "mark buffer", x: x(begin), y: y(offset + size),
                                       width: Math.max(0.5, x(end) - x(begin)),
                                       height: Math.max(0.5, y(offset) - y(offset + size))});
      rectangle.style.setProperty("--hue", hueOf(i));
      svg.append(rectangle);
      return {shape: rectangle, text: `${name}, ${type}: ${bytes(size)} at ${bytes(offset)}, ` +
              `from step ${nameOf(begin)} to ${nameOf(end - 1)}`};
    });
    svg.append(shape("path", {class: "load", d: loadLine(memory, x, y)}));
    return shapes;
  });
}

// The bytes in use, as a line over the stretches of steps.
function loadLine(memory, x, y) {
  const width = memory.moments / Math.max(1, memory.load.length);
  return memory.load.map((value, i) =>
    `${i === 0 ? "M" + x(0) + " " : "V"}${y(value)}H${x((i + 1) * width)}`).join("");
}

function binaryTicks(high) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, high) / 6)));
  const ticks = [];
  for (let tick = 0; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

function memoryTable(memory) {
  return fold("The buffers as a table", table("Buffers in the arena", [
    {title: "value", text: row => row[0]},
    {title: "type", text: row => row[1]},
    {title: "bytes", text: row => bytes(row[5]), value: row => row[5]},
    {title: "offset", text: row => row[4].toLocaleString("en"), value: row => row[4]},
    {title: "first step", text: row => `${row[2]}`, value: row => row[2]},
    {title: "last step", text: row => `${row[3] - 1}`, value: row => row[3]},
  ], memory.buffers));
}

function memoryPart(graph) {
  const memory = graph.memory;
  if (!memory) return [element("p", {class: "missing"}, "Where its values lie is not known.")];
  const gap = memory.height - memory.bound;
  const parts = [facts([
    ["arena", bytes(memory.height) + (gap > 0 ? "" : ", the least possible")],
    ["no placement takes less than", gap > 0 ? bytes(memory.bound) : ""],
    ["above that", gap > 0 ? percent(gap / memory.bound) : ""],
    ["weights", bytes(memory.constants)],
    ["inputs", bytes(memory.inputs)],
    ["outputs", bytes(memory.outputs)],
  ])];
  if (memory.buffers.length === 0)
    return [...parts, element("p", {class: "missing"}, "No value needs memory of its own.")];
  const steps = graph.graph ? graph.graph.steps.map(step => step[0]) : [];
  parts.push(memoryMap(memory, steps));
  if (memory.left_out > 0)
    parts.push(element("p", {class: "note"}, `${plural(memory.left_out, "small buffer")} left out.`));
  return [...parts, memoryTable(memory)];
}
