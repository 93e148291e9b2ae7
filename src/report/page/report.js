// ---- The page -----------------------------------------------------------------------------------

const profiled = report.graphs.filter(graph => graph.profile);
// Steps of all graphs, each with the part of a run of the model that it takes.
const allSteps = profiled.flatMap(graph => graph.profile.steps)
  .sort((a, b) => b.seconds - a.seconds);
const allSeconds = sum(profiled.map(graph => graph.profile.seconds));
for (const step of allSteps) colourOf(step.algorithm);
const nameOfGraph = graph => graph.sizes ? `${graph.name}, ${graph.sizes}` : graph.name;

function headline() {
  const status = report.failures.length === 0 ? [] : [element("p", {class: "failure", role: "alert"},
    `${plural(report.failures.length, "part")} of this report failed, see below.`)];
  document.getElementById("top").append(
    element("h1", {}, report.model),
    element("p", {class: "headline"}, report.headline.join(" ")),
    element("p", {class: "about"}, `hone ${report.version} on ${report.machine.cpu || report.machine.name}, ` +
            `${plural(report.threads, "thread")}, ${report.time}`), ...status);
}

function failures() {
  if (report.failures.length === 0) return;
  section("failures", "What failed", "The rest of the report shows what is known all the same.",
    ...report.failures.map(one => element("div", {class: "failure"},
      element("h3", {}, `Failed to ${one.what}`),
      element("p", {}, `${one.kind}: ${one.error}`),
      one.where && element("p", {}, `at ${one.where}`),
      one.hint && element("p", {class: "hint"}, `hint: ${one.hint}`))));
}

// ---- Summary ------------------------------------------------------------------------------------

function summary() {
  const known = report.summary;
  const own = report.sides[0], cards = [];
  const card = (value, name) => cards.push(element("div", {class: "card"},
    element("strong", {}, value), element("span", {}, name)));
  if (own) card(seconds(own.median), `a run, ${plural(report.threads, "thread")}`);
  for (const side of report.sides.slice(1))
    card(ratioText(side.ratio, side.interval), side.ratio >= 1 ? `as fast as ${side.name}` : `the speed of ${side.name}`);
  if (allSteps.length > 0) card(`${allSteps.filter(step => step.kernel).length}`, "steps with kernels");
  if (known) {
    card(count(known.operations), "operations");
    card(count(known.parameters), `parameters, ${bytes(known.constant_bytes)}`);
  }
  const arena = largest(report.graphs.map(graph => graph.memory ? graph.memory.height : 0));
  if (arena > 0) card(bytes(arena), "for values on the way");
  const parts = [element("div", {class: "cards"}, cards)];
  if (!known) parts.push(element("p", {class: "missing"}, "The model could not be read."));
  if (known) {
    const port = [{title: "name", text: row => row[0]}, {title: "type", text: row => row[1]}];
    parts.push(element("div", {class: "columns"}, table("Inputs", port, known.inputs),
                       table("Outputs", port, known.outputs)),
      fold(`What it is made of: ${plural(known.nodes, "node")} in ${plural(report.graph_count, "graph")}`,
           table("Ops", [{title: "op", text: row => row[0]},
                         {title: "nodes", text: row => `${row[1]}`, value: row => row[1]}],
                 [...Object.entries(known.composites), ...Object.entries(known.ops)])));
  }
  if (report.stages.length > 0)
    parts.push(fold(`Compiled and run once in ${seconds(report.first)}`,
      table("Stages of compiling", [{title: "stage", text: row => row[0]},
        {title: "time", text: row => seconds(row[1]), value: row => row[1]},
        {title: "graphs", text: row => `${row[2]}`, value: row => row[2]}], report.stages)));
  section("summary", "Summary", null, ...parts);
}

function speed() {
  const notes = report.notes.map(note => element("p", {class: "note"}, note));
  if (report.sides.length === 0) {
    if (notes.length > 0) section("speed", "Speed", null, ...notes);
    return;
  }
  const columns = [
    {title: "side", text: side => side.name},
    {title: "median", text: side => seconds(side.median), value: side => side.median},
    {title: "least", text: side => seconds(side.min), value: side => side.min},
    {title: "90 % at most", text: side => seconds(side.p90), value: side => side.p90},
    {title: "99 % at most", text: side => seconds(side.p99), value: side => side.p99},
    {title: "runs", text: side => `${side.runs}`, value: side => side.runs},
  ];
  const hasRival = report.sides.length > 1;
  if (hasRival)
    columns.push({title: "time, hone's is 1", text: side => side.ratio ? ratioText(side.ratio, side.interval) : "1"});
  const noise = report.sides.filter(side => side.noise).map(side => element("p", {class: "note"},
    `The times of ${side.name} are noisy: ${side.noise}` +
    (report.load >= 0 ? `; the machine's load was ${digits(report.load)}.` : ".")));
  section("speed", "Speed", !hasRival ? "How long a run takes." :
          "Sides are measured in turns, so that what else the machine does meets them " +
          "alike; the ratio comes with its interval of 99 % confidence. Above 1, hone is faster.",
          sideBars(report.sides), ...noise, ...notes, table("Times of a run", columns, report.sides));
}

function timeParts() {
  if (allSteps.length === 0) return;
  if (allSteps.some(step => step.kernel && step.bytes > 0 && step.seconds > 0)) {
    const drawing = roofline(allSteps);
    section("roofline", "Roofline", "Each circle is a kernel; its area is its share of the time. Where the " +
            "lines of memory and caches rise, bytes are what it waits for; below the flat line, arithmetic. " +
            "Bytes count each operand once, operations are those that are carried out. " +
            "The flat line is the peak of f32; kernels of bytes or on a matrix unit have a peak of their own and " +
            "may lie above it. The further below the lines, the more there is to gain.",
            drawing, legend());
  }
  section("kernels", "Time by kernel", "What a run spends in each kernel. Its roof is the least time that the " +
          "machine's arithmetic and memory allow; data that lies in caches may take less.", kernelTable(allSteps, allSeconds));
  section("layers", "Time by layer", "The same by the model's own names. A kernel that computes several layers " +
          "counts for the one of its contraction.", layerList(layerTree(allSteps), allSeconds));
}

// ---- Of one graph at a time ---------------------------------------------------------------------

// A part of each of several graphs, which a list chooses from.
function choice(id, graphs, part) {
  const host = element("div");
  const show = i => host.replaceChildren(...part(graphs[i]));
  show(0);
  if (graphs.length === 1) return [host];
  const list = element("select", {id: `${id}-choice`, onchange: () => show(Number(list.value))},
    graphs.map((graph, i) => element("option", {value: i}, nameOfGraph(graph))));
  return [element("p", {}, element("label", {for: `${id}-choice`}, "Segment "), list), host];
}

function memory() {
  const graphs = report.graphs.filter(graph => graph.memory);
  if (graphs.length === 0) return;
  section("memory", "Memory over time", "Each rectangle is a value on its way: from the step that makes it to " +
          "the last that reads it, at its place in the arena. The line is what is in use.",
          ...choice("memory", graphs, memoryPart));
}

function tuning() {
  const points = [];
  for (const graph of report.graphs) {
    for (const kernel of graph.tuning ? graph.tuning.kernels : [])
      for (const [priced, measured, chosen] of kernel.points)
        points.push({priced, measured, name: kernel.name, kind: chosen ? "own" : "tried"});
  }
  const tried = points.length;
  for (const step of allSteps)
    if (step.priced > 0 && step.seconds > 0)
      points.push({priced: step.priced, measured: step.seconds, name: `${step.label} (${step.step})`,
                   kind: "other"});
  if (points.length === 0) return;
  const parts = [prediction(points), element("ul", {class: "legend", "aria-label": "Colours"},
    [["other", "a step of this plan, measured in the model"], ["tried", "a schedule that was tried, alone"],
     ["own", "the schedule that was chosen, alone"]].slice(0, tried > 0 ? 3 : 1).map(([kind, text]) =>
      element("li", {}, element("span", {class: `key ${kind}`, "aria-hidden": "true"}), text)))];
  for (const graph of report.graphs.filter(graph => graph.tuning)) {
    const {best, progress: steps, kernels, left_out: leftOut} = graph.tuning;
    const tries = sum(kernels.map(kernel => kernel.points.length));
    parts.push(element("h3", {}, `Tuning of ${nameOfGraph(graph)}`),
      element("p", {}, (best ? `The log's best plan was ${ratioText(best.gain, best.interval)} as fast as the ` +
                              "planner's when it was confirmed. " : "The log knows no better plan. ") +
              `It has ${plural(tries + leftOut, "measurement")} of ${plural(kernels.length, "kernel")}.`));
    if (steps.length > 0) parts.push(progress(steps));
  }
  if (tried === 0)
    parts.push(element("p", {class: "note"}, "The log has no measurements of these kernels; " +
                       "'hone tune' makes some, and this part then shows how it went."));
  section("prices", "Predicted and measured", "What the price predicts for a launch, and what it took. On the " +
          "line both are equal; what matters is that cheaper ones are faster.", ...parts);
}

function graphs() {
  const drawn = report.graphs.filter(graph => graph.graph);
  if (drawn.length === 0) return;
  const left = report.left_out_graphs > 0
    ? [element("p", {class: "note"}, `${plural(report.left_out_graphs, "graph")} left out.`)] : [];
  section("graph", "Graph", "The steps of the plan with what they need: each is a group of ops that one kernel " +
          "computes, in the layout that its results have. Large graphs begin folded.",
          ...choice("graph", drawn, graphPart), ...left);
}

// ---- The machine --------------------------------------------------------------------------------

function machine() {
  const it = report.machine;
  const caches = it.caches.map((cache, i) => [`L${i + 1} cache`, `${bytes(cache[0])}` +
    (cache[1] > 1 ? ` for ${cache[1]} cores` : "") + (cache[2] > 0 ? `, ${bytes(cache[2])}/s` : "")]);
  const peaks = Object.entries(it.peaks).filter(([type]) => /^(f32|f64|i8|bf16)$/.test(type))
    .map(([type, rate]) => [`peak ${type}`, `${count(rate)} operations/s a core`]);
  section("machine", "Machine", it.measured ? "The rates were measured." :
          "The rates are estimates; 'hone target probe' measures them.",
    facts([["processor", it.cpu], ["target", it.name], ["instructions", it.isa], ["cores", `${it.cores}`],
           ...caches, ["memory", it.memory_bytes > 0 ? bytes(it.memory_bytes) : ""],
           ["memory, one core", it.memory_one_core > 0 ? `${bytes(it.memory_one_core)}/s` : ""],
           ["memory, all cores", it.memory_all_cores > 0 ? `${bytes(it.memory_all_cores)}/s` : ""],
           ...peaks, ["start of all cores", it.fork_join > 0 ? seconds(it.fork_join) : ""],
           ["load before", report.load >= 0 ? digits(report.load) : ""],
           ["most memory of the process", report.peak_bytes > 0 ? bytes(report.peak_bytes) : ""]]));
}

function reproduce() {
  section("reproduce", "Once more", "These commands make this report, and tell more.",
          element("pre", {tabindex: 0}, report.commands.join("\n")));
}

function contents() {
  const sections = [...document.querySelectorAll("main > section")];
  document.getElementById("contents").append(element("ul", {}, sections.map(one =>
    element("li", {}, element("a", {href: `#${one.id}`}, one.querySelector("h2").textContent)))));
}

for (const part of [headline, failures, summary, speed, shardingPart, devicesPart, placementPart, timeParts, memory, tuning, graphs, machine, reproduce,
                    contents]) part();
document.getElementById("foot").append(
  element("p", {}, `Made by hone ${report.version}. This file holds all that it shows and loads nothing.`));
