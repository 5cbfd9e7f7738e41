import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { clockTime } from "../lib/format";
import { useWidth } from "../lib/size";
import { colour, useTheme } from "../lib/theme";

export interface Line {
  name: string;
  values: number[];
  colour: string; // by its name in the style sheet
}

// Lines over time, and below them their values: the latest, or those under the pointer.
export function Chart(props: {
  label: string;
  at: number[]; // milliseconds
  lines: Line[];
  format: (value: number) => string;
  height?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const width = useWidth(box);
  const theme = useTheme();
  const [under, setUnder] = useState<number>();
  const { at, lines, format, height = 180 } = props;
  const data = [at.map((ms) => ms / 1000), ...lines.map((line) => line.values)];
  const shape = lines.map((line) => line.name).join();

  useEffect(() => {
    if (!box.current || !width) return;
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { stroke: colour("line"), width: 1, size: 4 },
      font: "12px system-ui, sans-serif",
    };
    const chart = new uPlot(
      {
        width,
        height,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { setScale: false } },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          {
            ...axis,
            space: 90,
            size: 28,
            values: (_, ticks) => ticks.map((s) => clockTime(s * 1000)),
          },
          { ...axis, size: 66, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...lines.map((line) => ({
            stroke: colour(line.colour),
            width: 1.75,
            ...(lines.length === 1 ? { fill: colour(line.colour) + "22" } : {}),
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(chart) => setUnder(chart.cursor.idx ?? undefined)] },
      },
      data as uPlot.AlignedData,
      box.current,
    );
    plot.current = chart;
    return () => {
      chart.destroy();
      plot.current = undefined;
    };
  }, [theme, width, height, shape]);
  useEffect(() => plot.current?.setData(data as uPlot.AlignedData));

  const shown = under !== undefined && under < at.length ? under : at.length - 1;
  const value = (line: Line, index: number) => format(line.values[index] ?? 0);
  const latest = lines.map((line) => `${line.name} ${value(line, at.length - 1)}`).join(", ");
  return (
    <div class="chart">
      <div
        ref={box}
        role="img"
        aria-label={`${props.label}, over time; now ${latest}`}
        style={{ minHeight: `${height}px` }}
      />
      <p class="legend">
        <span>{shown === at.length - 1 ? "now" : clockTime(at[shown] ?? 0)}</span>
        {lines.map((line) => (
          <span key={line.name}>
            <i style={{ background: `var(--${line.colour})` }} />
            {line.name} <strong>{value(line, shown)}</strong>
          </span>
        ))}
      </p>
    </div>
  );
}
