// ---- Where the boxes of a graph go --------------------------------------------------------------

const kBox = {width: 190, height: 40, line: 16, across: 28, down: 34, joint: 10, padding: 12};
const kMostJoints = 4000;  // of edges that pass ranks
const kLongEdge = 40;      // ranks; a longer one is drawn without joints

// Boxes: [{height, needs: [indexes of earlier boxes]}]. Gives each x, y and the size of the whole,
// and of each edge the points that it goes through. Ranks are the longest ways from the top.
function layOut(boxes) {
  const ranks = [], rankOf = [];
  boxes.forEach((box, i) => {
    rankOf[i] = box.needs.reduce((most, need) => Math.max(most, rankOf[need] + 1), 0);
    (ranks[rankOf[i]] ||= []).push({box: i, width: kBox.width, height: box.height, from: [], to: []});
  });
  const placed = [];
  for (const rank of ranks) for (const one of rank) placed[one.box] = one;
  const edges = [];
  let joints = 0;
  boxes.forEach((box, to) => box.needs.forEach(from => {
    const way = [placed[from]];
    const span = rankOf[to] - rankOf[from];
    if (span > 1 && span <= kLongEdge && joints + span < kMostJoints) {
      joints += span - 1;
      for (let rank = rankOf[from] + 1; rank < rankOf[to]; rank++) {
        const joint = {width: kBox.joint, height: 0, from: [], to: []};
        ranks[rank].push(joint);
        way.push(joint);
      }
    }
    way.push(placed[to]);
    for (let i = 1; i < way.length; i++) {
      way[i - 1].to.push(way[i]);
      way[i].from.push(way[i - 1]);
    }
    edges.push({from, to, way});
  }));
  order(ranks);
  return {placed, edges, ...place(ranks)};
}

// Each goes where the middle of what it is joined with is, from above and from below in turns.
function order(ranks) {
  const number = rank => rank.forEach((one, i) => { one.part = (i + 0.5) / rank.length; });
  ranks.forEach(number);
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (const rank of down ? ranks : [...ranks].reverse()) {
      for (const one of rank) {
        const others = down ? one.from : one.to;
        one.middle = others.length === 0 ? one.part
                                         : sum(others.map(other => other.part)) / others.length;
      }
      rank.sort((a, b) => a.middle - b.middle);
      number(rank);
    }
  }
}

function place(ranks) {
  const widths = ranks.map(rank => sum(rank.map(one => one.width + kBox.across)) - kBox.across);
  const width = Math.max(kBox.width, largest(widths)) + 2 * kBox.padding;
  let y = kBox.padding;
  ranks.forEach((rank, i) => {
    const height = Math.max(...rank.map(one => one.height), kBox.height);
    let x = (width - widths[i]) / 2;
    for (const one of rank) {
      one.x = x;
      one.y = y;
      one.middle = x + one.width / 2;
      one.low = y + (one.height || height);
      x += one.width + kBox.across;
    }
    y += height + kBox.down;
  });
  return {width, height: y - kBox.down + kBox.padding};
}

// A line from the bottom of a box through joints to the top of another.
function edgePath(way) {
  let path = `M${way[0].middle} ${way[0].low}`;
  for (let i = 1; i < way.length; i++) {
    const from = way[i - 1], to = way[i];
    const half = (from.low + to.y) / 2;
    path += `C${from.middle} ${half} ${to.middle} ${half} ${to.middle} ${to.y}`;
    if (to.height === 0) path += `V${to.low}`;
  }
  return path;
}
