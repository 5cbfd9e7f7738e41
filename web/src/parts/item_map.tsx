import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { serverNow } from "../api/live";
import { count } from "../lib/format";
import type { ItemView } from "../lib/items";
import { useWidth } from "../lib/size";
import { useTheme } from "../lib/theme";
import { describeItem, ItemCard } from "./item_card";
import { MapLayout } from "./map_layout";
import { mapPalette, paintMap } from "./map_paint";

const padding = 12;
const beyond = 300;

// All items at a glance, on a canvas: tens of thousands of elements would be slow. The arrow keys go
// from item to item, which is then announced; Enter opens it.
export function ItemMap(props: {
  names: string[];
  item: (name: string) => ItemView;
  chosen: string;
  onChoose: (name: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [hovered, setHovered] = useState(-1);
  const [focused, setFocused] = useState(-1);
  const { names } = props;
  const layout = useMemo(() => new MapLayout(names, width - 2 * padding), [names, width]);
  const palette = useMemo(mapPalette, [theme]);
  const atChosen = props.chosen ? names.indexOf(props.chosen) : -1;
  const marked = focused >= 0 && focused < names.length ? focused : atChosen;

  // The canvas extends beyond the window on both sides: scrolling moves it, and it is repainted only
  // near an edge.
  const painted = useRef({ from: 0, to: 0 });
  const paint = (always: boolean) => {
    const view = box.current;
    if (!canvas.current || !view) return;
    const { from, to } = painted.current;
    const isInside = view.scrollTop >= from && view.scrollTop + view.clientHeight <= to;
    if (isInside && !always) return;
    const top = Math.max(0, view.scrollTop - beyond);
    const height = Math.min(view.clientHeight + 2 * beyond, layout.height + 2 * padding - top);
    painted.current = { from: top, to: top + height };
    fit(canvas.current, Math.max(1, width - 2 * padding), height);
    canvas.current.style.top = `${top}px`;
    paintMap({
      canvas: canvas.current,
      layout,
      palette,
      top: top - padding,
      now: serverNow(),
      focused: marked,
      item: (index) => props.item(names[index] ?? ""),
    });
  };
  const latest = useRef(paint);
  latest.current = paint;

  useLayoutEffect(() => paint(true));
  useEffect(() => {
    let queued = 0;
    const scrolled = () => {
      setHovered(-1);
      cancelAnimationFrame(queued);
      queued = requestAnimationFrame(() => latest.current(false));
    };
    box.current?.addEventListener("scroll", scrolled, { passive: true });
    return () => box.current?.removeEventListener("scroll", scrolled);
  }, []);

  const under = (event: MouseEvent) => {
    if (!box.current) return -1;
    const bounds = box.current.getBoundingClientRect();
    return layout.at(
      event.clientX - bounds.left - padding,
      event.clientY - bounds.top + box.current.scrollTop - padding,
    );
  };
  const move = (to: number) => {
    const next = Math.min(names.length - 1, Math.max(0, to));
    setFocused(next);
    const { y } = layout.place(next);
    const view = box.current;
    if (!view) return;
    if (y < view.scrollTop + 40) view.scrollTop = y - 40;
    if (y > view.scrollTop + view.clientHeight - 40) view.scrollTop = y - view.clientHeight + 40;
  };
  const steps: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -layout.columns,
    ArrowDown: layout.columns,
    PageUp: -layout.columns * 20,
    PageDown: layout.columns * 20,
    Home: -names.length,
    End: names.length,
  };
  const shown = hovered >= 0 ? hovered : -1;
  const focusedName = names[marked];
  return (
    <div class="map-frame">
      <div
        ref={box}
        class="item-map"
        tabIndex={0}
        role="application"
        aria-label={`Map of ${count(names.length)} items. The arrow keys go from item to item, Enter opens one.`}
        onMouseMove={(event) => setHovered(under(event))}
        onMouseLeave={() => setHovered(-1)}
        onClick={(event) => {
          const name = names[under(event)];
          if (name === undefined) return;
          setFocused(-1);
          props.onChoose(name);
        }}
        onKeyDown={(event) => {
          const step = steps[event.key];
          if (step !== undefined) {
            event.preventDefault();
            move(marked < 0 ? 0 : marked + step);
          } else if (event.key === "Enter" && focusedName !== undefined) {
            props.onChoose(focusedName);
          }
        }}
      >
        <div class="map-space" style={{ height: `${layout.height + 2 * padding}px` }}>
          <canvas ref={canvas} aria-hidden="true" />
        </div>
      </div>
      {shown >= 0 && box.current && (
        <MapTip
          layout={layout}
          index={shown}
          box={box.current}
          item={props.item(names[shown] ?? "")}
        />
      )}
      <span class="hidden-text" aria-live="polite">
        {focused >= 0 &&
          focusedName !== undefined &&
          describeItem(props.item(focusedName), serverNow())}
      </span>
    </div>
  );
}

function MapTip(props: { layout: MapLayout; index: number; box: HTMLElement; item: ItemView }) {
  const place = props.layout.place(props.index);
  const left = Math.max(8, Math.min(place.x + 30, props.box.clientWidth - 300));
  const y = place.y - props.box.scrollTop + padding;
  const above = y > props.box.clientHeight - 190;
  const style = above
    ? { left: `${left}px`, bottom: `${props.box.clientHeight - y + 6}px` }
    : { left: `${left}px`, top: `${y + 22}px` };
  return (
    <div class="tip" style={style} aria-hidden="true">
      <ItemCard item={props.item} now={serverNow()} />
    </div>
  );
}

// Resizing a canvas empties and reallocates it, even to the size that it has.
function fit(canvas: HTMLCanvasElement, width: number, height: number): void {
  const scale = devicePixelRatio;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
