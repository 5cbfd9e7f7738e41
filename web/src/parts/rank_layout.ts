// The layout of a plan's ranks: a column for each step of the longest path, wrapped into lines if the
// page is too narrow.

export interface RankPlace {
  rank: number;
  x: number;
  y: number;
  line: number; // the top of its line
}

export interface RankEdge {
  from: number;
  to: number;
  path: string;
}

export interface RankLayout {
  places: Map<number, RankPlace>;
  edges: RankEdge[];
  width: number;
  height: number;
}

export const node = { width: 136, height: 58, gapX: 30, gapY: 14, gapLine: 30 };

export function layoutRanks(
  ranks: { rank: number; needs: number[] }[],
  available: number,
): RankLayout {
  const layers = layersOf(ranks);
  const pitch = node.width + node.gapX;
  const perLine = Math.max(1, Math.floor((available + node.gapX) / pitch));
  const places = new Map<number, RankPlace>();
  let y = 0;
  for (let first = 0; first < layers.length; first += perLine) {
    const line = layers.slice(first, first + perLine);
    const rows = Math.max(...line.map((layer) => layer.length));
    line.forEach((layer, column) => {
      layer.forEach((rank, row) => {
        places.set(rank, {
          rank,
          x: column * pitch,
          y: y + row * (node.height + node.gapY),
          line: y,
        });
      });
    });
    y += rows * (node.height + node.gapY) - node.gapY + node.gapLine;
  }
  const edges: RankEdge[] = [];
  for (const { rank, needs } of ranks) {
    const to = places.get(rank);
    for (const need of needs) {
      const from = places.get(need);
      if (from && to) edges.push({ from: need, to: rank, path: edgePath(from, to) });
    }
  }
  return {
    places,
    edges,
    width: Math.min(layers.length, perLine) * pitch - node.gapX,
    height: Math.max(0, y - node.gapLine),
  };
}

// Each rank as early as its needs allow.
function layersOf(ranks: { rank: number; needs: number[] }[]): number[][] {
  const needs = new Map(ranks.map(({ rank, needs }) => [rank, needs]));
  const depths = new Map<number, number>();
  const depth = (rank: number): number => {
    const known = depths.get(rank);
    if (known !== undefined) return known;
    depths.set(rank, 0); // breaks a cycle; valid plans have none
    const before = (needs.get(rank) ?? []).filter((need) => needs.has(need)).map(depth);
    const own = before.length ? Math.max(...before) + 1 : 0;
    depths.set(rank, own);
    return own;
  };
  const layers: number[][] = [];
  for (const { rank } of ranks) (layers[depth(rank)] ??= []).push(rank);
  return layers;
}

function edgePath(from: RankPlace, to: RankPlace): string {
  const x1 = from.x + node.width;
  const y1 = from.y + node.height / 2;
  const x2 = to.x;
  const y2 = to.y + node.height / 2;
  if (x2 > x1) {
    const bend = Math.min(40, (x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  // On to a later line: through the gaps between columns and between lines, never over a rank.
  const out = node.gapX / 2;
  const between = to.line - node.gapLine / 2;
  return `M${x1} ${y1}h${out}V${between}H${x2 - out}V${y2}H${x2}`;
}
