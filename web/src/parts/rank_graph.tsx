import { useRef } from "preact/hooks";
import { useWidth } from "../lib/size";
import { layoutRanks, node, type RankEdge, type RankPlace } from "./rank_layout";
import { look } from "./state";

export interface RankNode {
  rank: number;
  name: string;
  needs: number[];
  state: string;
  why: string;
  done: number;
  total: number;
  critical: boolean;
  time: string;
}

const margin = node.gapX / 2 + 2;

// The ranks and their dependencies. Selecting one filters the chart below; again shows all.
export function RankGraph(props: {
  ranks: RankNode[];
  chosen: number | undefined;
  onChoose: (rank: number | undefined) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { places, edges, width: used, height } = layoutRanks(props.ranks, width - 2 * margin);
  const critical = new Set(props.ranks.filter((rank) => rank.critical).map(({ rank }) => rank));
  const isBold = ({ from, to }: RankEdge) => critical.has(from) && critical.has(to);
  return (
    <div ref={box} class="rank-graph">
      {width > 0 && (
        <svg
          width={used + 2 * margin}
          height={height + 4}
          viewBox={`${-margin} -2 ${used + 2 * margin} ${height + 4}`}
          role="group"
          aria-label="Ranks and what they need"
        >
          {edges
            .sort((a, b) => Number(isBold(a)) - Number(isBold(b)))
            .map((edge) => (
              <path
                key={`${edge.from}-${edge.to}`}
                d={edge.path}
                class={isBold(edge) ? "edge critical" : "edge"}
              />
            ))}
          {props.ranks.map((rank) => (
            <RankCard
              key={rank.rank}
              rank={rank}
              place={places.get(rank.rank)}
              isChosen={rank.rank === props.chosen}
              onChoose={props.onChoose}
            />
          ))}
        </svg>
      )}
    </div>
  );
}

function RankCard(props: {
  rank: RankNode;
  place: RankPlace | undefined;
  isChosen: boolean;
  onChoose: (rank: number | undefined) => void;
}) {
  const { rank, place } = props;
  if (!place) return null;
  const choose = () => props.onChoose(props.isChosen ? undefined : rank.rank);
  const label =
    `Rank ${rank.rank}, ${rank.name}: ${rank.state}, ${rank.done} of ${rank.total} tasks` +
    (rank.why ? `, ${rank.why}` : "") +
    (rank.critical ? ", on the critical path" : "");
  return (
    <g
      transform={`translate(${place.x} ${place.y})`}
      class={`rank ${look(rank.state)}${rank.critical ? " on-path" : ""}`}
    >
      <g
        role="button"
        tabIndex={0}
        aria-label={label}
        aria-pressed={props.isChosen}
        onClick={choose}
        onKeyDown={(event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose();
        }}
      >
        <title>{label}</title>
        <rect class="card" width={node.width} height={node.height} rx="7" />
      </g>
      <g class="writing" aria-hidden="true">
        <text class="number" x="10" y="19">
          {rank.rank}
        </text>
        <text class="tasks" x={node.width - 10} y="19">
          {rank.done}/{rank.total}
        </text>
        <text class="name" x="10" y="36">
          {clip(rank.name, 16)}
        </text>
        <text class="time" x="10" y="50">
          {rank.time}
        </text>
        <rect class="track" x="0" y={node.height - 4} width={node.width} height="4" />
        <rect
          class="fill"
          x="0"
          y={node.height - 4}
          height="4"
          width={rank.total ? (node.width * rank.done) / rank.total : 0}
        />
      </g>
    </g>
  );
}

function clip(text: string, most: number): string {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}
