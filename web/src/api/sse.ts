// Parses server-sent events for a stream that is read by fetch, not by EventSource: fetch can resume with
// Last-Event-ID after a long outage, and shows why a request was refused.

export interface StreamEvent {
  id: string;
  name: string;
  data: string;
}

// Takes text as it arrives; returns whole events.
export class EventParser {
  private rest = "";
  private id = "";
  private name = "";
  private data: string[] = [];

  push(text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    // A piece of a long line: searching it again with every piece would be quadratic.
    if (!/[\r\n]/.test(text)) {
      this.rest += text;
      return events;
    }
    // A trailing carriage return may be the first half of a line end.
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
