import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  kind?: "number" | "words" | "actions"; // aligned right; long text; buttons, without a title
}

// A table. On a phone every row is a card, with the titles beside the values; explicit ARIA roles keep
// it a table for screen readers.
export function Table<T>(props: {
  rows: T[];
  rowKey: (row: T) => string | number;
  columns: Column<T>[];
  chosen?: (row: T) => boolean;
}) {
  return (
    <div class="scroll">
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {props.columns.map(({ title, kind }) => (
              <th key={title} role="columnheader" class={kind}>
                {kind === "actions" ? <span class="hidden-text">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {props.rows.map((row) => (
            <tr
              key={props.rowKey(row)}
              role="row"
              class={props.chosen?.(row) ? "chosen" : undefined}
            >
              {props.columns.map(({ title, cell, kind }) => (
                <td
                  key={title}
                  role="cell"
                  class={kind}
                  data-title={kind === "actions" ? "" : title}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
