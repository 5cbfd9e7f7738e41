import { collectionOf } from "../lib/items";

// The layout of the map: collections below each other under their names, their items in rows. Only
// the visible part is computed.

export const cell = { size: 14, pitch: 17 };
const heading = 26;
const gap = 12;

export interface MapGroup {
  collection: string;
  first: number; // index of its first item
  count: number;
  top: number; // of its heading
}

export class MapLayout {
  readonly groups: MapGroup[] = [];
  readonly columns: number;
  readonly height: number;

  constructor(names: string[], width: number) {
    this.columns = Math.max(1, Math.floor((width + cell.pitch - cell.size) / cell.pitch));
    let top = 0;
    names.forEach((name, index) => {
      const collection = collectionOf(name);
      const last = this.groups.at(-1);
      if (last?.collection === collection) last.count += 1;
      else this.groups.push({ collection, first: index, count: 1, top: 0 });
    });
    for (const group of this.groups) {
      group.top = top;
      top += heading + Math.ceil(group.count / this.columns) * cell.pitch + gap;
    }
    this.height = top;
  }

  place(index: number): { x: number; y: number } {
    return this.placeIn(this.groupOf(index), index);
  }

  placeIn(group: MapGroup, index: number): { x: number; y: number } {
    const within = index - group.first;
    return {
      x: (within % this.columns) * cell.pitch,
      y: group.top + heading + Math.floor(within / this.columns) * cell.pitch,
    };
  }

  // The item at a point; -1: none.
  at(x: number, y: number): number {
    const group = this.groups.findLast((one) => one.top + heading <= y);
    const column = Math.floor(x / cell.pitch);
    if (!group || column < 0 || column >= this.columns) return -1;
    const within = Math.floor((y - group.top - heading) / cell.pitch) * this.columns + column;
    return within < group.count ? group.first + within : -1;
  }

  // Groups and ranges of items that lie between two heights.
  visible(top: number, bottom: number): { group: MapGroup; from: number; to: number }[] {
    return this.groups.flatMap((group) => {
      const cells = group.top + heading;
      const end = cells + Math.ceil(group.count / this.columns) * cell.pitch;
      if (end < top || group.top > bottom) return [];
      const firstRow = Math.max(0, Math.floor((top - cells) / cell.pitch));
      const lastRow = Math.max(0, Math.ceil((bottom - cells) / cell.pitch));
      return [
        {
          group,
          from: group.first + Math.min(group.count, firstRow * this.columns),
          to: group.first + Math.min(group.count, lastRow * this.columns),
        },
      ];
    });
  }

  private groupOf(index: number): MapGroup {
    const group = this.groups.findLast((one) => one.first <= index);
    if (!group) throw new Error("no such item on the map");
    return group;
  }
}
