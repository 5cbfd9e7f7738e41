// Reads a stream of server-sent events by fetch, not by EventSource: only so can a stream be taken up
// again with Last-Event-ID after the server was gone for long, and a refusal be told to the reader.

export interface StreamEvent {
  id: string;
  name: string;
  data: string;
}

// Takes bytes as they come; gives whole events.
export class EventParser {
  private rest = "";
  private id = "";
  private name = "";
  private data: string[] = [];

  push(text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    // Within a long line nothing is to be done: it would be searched again with every piece.
    if (!/[\r\n]/.test(text)) {
      this.rest += text;
      return events;
    }
    // A carriage return at the end may be the first half of a line's end.
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length) {
          events.push({ id: this.id, name: this.name || "message", data: this.data.join("\n") });
        }
        this.name = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "id") this.id = value;
      else if (field === "event") this.name = value;
      else if (field === "data") this.data.push(value);
    }
    return events;
  }
}
