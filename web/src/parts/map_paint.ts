import { plural } from "../lib/format";
import type { ItemView } from "../lib/items";
import { colour } from "../lib/theme";
import { cell, type MapLayout } from "./map_layout";

export interface MapPalette {
  [name: string]: string;
}

const names = [
  "text",
  "muted",
  "surface",
  "line-strong",
  "focus",
  "running",
  "running-soft",
  "done-cell",
  "waiting-soft",
  "backoff",
  "backoff-soft",
  "failed",
  "critical",
];

export function mapPalette(): MapPalette {
  return Object.fromEntries(names.map((name) => [name, colour(name)]));
}

export interface MapFrame {
  canvas: HTMLCanvasElement;
  layout: MapLayout;
  palette: MapPalette;
  top: number; // how far it is scrolled
  now: number;
  focused: number;
  item: (index: number) => ItemView;
}

// Paints only what is visible: the cost depends on the window, not the run.
export function paintMap(frame: MapFrame): void {
  const { canvas, layout, palette, top } = frame;
  const scale = devicePixelRatio;
  const context = canvas.getContext("2d");
  if (!context) return;
  const width = canvas.width / scale;
  const height = canvas.height / scale;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "500 12.5px system-ui, sans-serif";
  context.textBaseline = "alphabetic";
  context.lineWidth = 1;
  for (const { group, from, to } of layout.visible(top, top + height)) {
    context.fillStyle = palette["text"] ?? "";
    context.fillText(group.collection, 0, group.top - top + 17);
    const named = context.measureText(group.collection).width;
    context.fillStyle = palette["muted"] ?? "";
    context.fillText(plural(group.count, "item"), named + 8, group.top - top + 17);
    for (let index = from; index < to; index += 1) {
      const place = layout.placeIn(group, index);
      paintItem(context, frame.item(index), place.x, place.y - top, palette, frame.now);
    }
  }
  if (frame.focused >= 0) {
    const { x, y } = layout.place(frame.focused);
    context.strokeStyle = palette["focus"] ?? "";
    context.lineWidth = 2;
    context.strokeRect(x - 1.5, y - top - 1.5, cell.size + 3, cell.size + 3);
  }
}

const hurry = 5_000;

function paintItem(
  context: CanvasRenderingContext2D,
  item: ItemView,
  x: number,
  y: number,
  palette: MapPalette,
  now: number,
): void {
  const size = cell.size;
  const fill = (name: string, left: number, top: number, width: number, height: number) => {
    context.fillStyle = palette[name] ?? "";
    context.fillRect(left, top, width, height);
  };
  switch (item.state) {
    case "done":
      fill("done-cell", x, y, size, size);
      break;
    case "held": {
      fill("running-soft", x, y, size, size);
      const part = Math.round((Math.max(0, item.percent) / 100) * size);
      fill("running", x, y + size - part, size, part);
      // Highlights leases that are about to expire.
      context.strokeStyle =
        palette[item.due && item.due - now < hurry ? "backoff" : "running"] ?? "";
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      break;
    }
    case "backoff":
      fill("backoff-soft", x, y, size, size);
      context.strokeStyle = palette["backoff"] ?? "";
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      fill("backoff", x + 5, y + 5, 4, 4);
      break;
    case "quarantined":
    case "unreadable":
      fill("failed", x, y, size, size);
      context.strokeStyle = palette["surface"] ?? "";
      context.beginPath();
      context.moveTo(x + 4, y + 4);
      context.lineTo(x + size - 4, y + size - 4);
      context.moveTo(x + size - 4, y + 4);
      context.lineTo(x + 4, y + size - 4);
      context.stroke();
      break;
    default:
      fill("waiting-soft", x, y, size, size);
  }
  if (item.attempt > 1 && item.state !== "done")
    corner(context, palette["backoff"], x + size, y, -6, 6);
  if (item.fenced > 0) corner(context, palette["critical"], x, y + size, 6, -6);
}

function corner(
  context: CanvasRenderingContext2D,
  fill: string | undefined,
  x: number,
  y: number,
  dx: number,
  dy: number,
): void {
  context.fillStyle = fill ?? "";
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y);
  context.lineTo(x, y + dy);
  context.fill();
}
